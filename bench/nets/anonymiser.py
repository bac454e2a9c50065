"""A U-Net that deforms or repaints images against a verifier.

A classifier keeps them useful.

Source: Packhäuser et al., PriCheXy-Net (MICCAI 2023), section 2, and the authors' code; for the repainting form Kim et
al., Privacy-Net (2021), as Packhäuser et al. rebuilt it. The generator G maps an image x1 to a flow field
F = tanh(U(x1)). The image is read at the places grid - mu * F, smoothed by a Gaussian of two pixels (9 x 9), in
coordinates of -1 to 1. It is trained by

    L = w_class * L_class(G(x1), labels) + w_verify * mean(-log(1 - V(G(x1), x2)))

over pairs of images of the same person and of two people, half of each. After every step of the generator, verifier V
(a siamese network: |sigmoid(f(a)) - sigmoid(f(b))|, one linear unit) and classifier learn from the new images. Both are
trained on raw images first.

Differences from the paper and the code:
- Verifier and classifier are ResNet-18s (by default of a quarter of the width) from random weights, in place of a
  ResNet-50 and a DenseNet-121 with weights of ImageNet: they learn from the public images alone.
- The last layer of the U-Net starts at zero, which is the map that the authors train the generator for beforehand (the
  image as it is).
- The displacement is smoothed, not the grid. The code smooths the grid with zeros around it, which also shrinks
  the image's edge.
- The U-Net has fewer levels for images of less than 32 pixels.
- All three rates rise over a tenth of the steps and fall along a cosine; the authors' are constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.checkpoint import steps
from bench.memory.rows import by_blocks
from bench.nets.classifier import label_loss
from bench.nets.convolutional_networks import resnet18
from bench.nets.training import adam, seeded, set_rate
from bench.progress import report
from bench.seeds import derive, generator

LEVELS = 4
LEAST_SIDE = 2
KERNEL = 9
SIGMA = 2.0
CODE = 128
ROWS = 128
JUDGED = 512
"""Pairs that a verifier is judged on."""


class UNet(nn.Module):
    """U-Net: two convolutions a level, channels double as sides halve.

    Args:
        entering: Channels of an image.
        leaving: Channels of the output.
        width: Channels of the first level.
        levels: Halvings.
    """

    def __init__(self, entering: int, leaving: int, width: int, levels: int) -> None:
        super().__init__()
        wide = [width * 2**level for level in range(levels + 1)]
        self.levels = levels
        self.down = nn.ModuleList(_double(*pair) for pair in zip([entering, *wide[:-1]], wide, strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * channels, channels, 2, stride=2) for channels in wide[:-1])
        self.merge = nn.ModuleList(_double(2 * channels, channels) for channels in wide[:-1])
        self.last = nn.Conv2d(width, leaving, 1)
        for part in self.last.parameters():
            nn.init.zeros_(part)

    def forward(self, images: Tensor) -> Tensor:
        """(n, entering, h, w) to (n, leaving, h, w), unbounded."""
        h, w = images.shape[2:]
        step = 2**self.levels
        found = functional.pad(images, (0, -w % step, 0, -h % step), mode="replicate")
        kept = []
        for level, block in enumerate(self.down):
            found = block(found if level == 0 else functional.max_pool2d(found, 2))
            kept.append(found)
        for level in reversed(range(self.levels)):
            found = self.merge[level](torch.cat((self.up[level](found), kept[level]), dim=1))
        out: Tensor = self.last(found)
        return out[:, :, :h, :w]


def _double(entering: int, leaving: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (entering, leaving):
        layers += [nn.Conv2d(channels, leaving, 3, padding=1, bias=False), nn.BatchNorm2d(leaving), nn.ReLU()]
    return nn.Sequential(*layers)


class Anonymiser(nn.Module):
    """Images (n, c, h, w) in [0, 1] to new ones.

    Args:
        shape: Channels, height and width.
        mu: Largest displacement of the places that an image is read at, in halves of a side (a side is 2 long); None
            to paint a new image.
        width: Channels of the U-Net's first level.
    """

    def __init__(self, shape: tuple[int, int, int], mu: float | None, width: int) -> None:
        super().__init__()
        c, h, w = shape
        levels = max(1, min(LEVELS, int(math.log2(max(2, min(h, w) / LEAST_SIDE)))))
        self.mu = mu
        self.unet = UNet(c, c if mu is None else 2, width, levels)

    def displacement(self, images: Tensor) -> Tensor:
        """Displacements (n, 2, h, w) across and down, in half sides.

        Raises ValueError if images are painted.
        """
        if self.mu is None:
            raise ValueError("painted images are not displaced: expected a network with mu, got None")
        flow = torch.tanh(self.unet(images))
        offsets = torch.arange(KERNEL, dtype=flow.dtype, device=flow.device) - (KERNEL - 1) / 2
        line = torch.exp(-0.5 * (offsets / SIGMA).square())
        line = (line / line.sum()).expand(2, 1, 1, KERNEL)
        reach = KERNEL // 2
        flow = functional.pad(flow, (reach,) * 4, mode="replicate")
        return -self.mu * functional.conv2d(
            functional.conv2d(flow, line, groups=2), line.transpose(2, 3), groups=2
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """New images."""
        if self.mu is None:
            # A painting starts as the image itself: its logit, within what float32 tells apart.
            return torch.sigmoid(torch.logit(images, 1e-3) + self.unet(images))
        h, w = images.shape[2:]
        lines = (torch.linspace(-1, 1, side, device=images.device) for side in (h, w))
        down, across = torch.meshgrid(*lines, indexing="ij")
        places = torch.stack((across, down)) + self.displacement(images)
        return functional.grid_sample(images, places.permute(0, 2, 3, 1), padding_mode="border", align_corners=True)


class Siamese(nn.Module):
    """The verifier: logits (n,) that two images show one person."""

    def __init__(self, shape: tuple[int, int, int], width: int) -> None:
        super().__init__()
        self.branch = resnet18(shape, CODE, width=width, narrow=True)
        self.compare = nn.Linear(CODE, 1)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Of images (n, c, h, w) each."""
        one, other = torch.sigmoid(self.branch(torch.cat((first, second)))).chunk(2)
        logits: Tensor = self.compare((one - other).abs())
        return logits[:, 0]


@dataclass(frozen=True)
class AnonymiserCourse:
    """Training of an anonymiser.

    Args:
        first_steps: Of verifier and classifier on raw images.
        steps: Of the generator, each followed by one of verifier and classifier.
        batch: Pairs a step.
        learning_rate: Peak of Adam's rate.
        verify: Weight of the verifier's loss.
        classify: Weight of the classifier's loss.
    """

    first_steps: int
    steps: int
    batch: int
    learning_rate: float
    verify: float
    classify: float


@dataclass(frozen=True, eq=False)
class Lessons:
    """Images to learn from.

    Args:
        images: (n, c, h, w).
        labels: (n, k), NaN for unknown; None if there are none.
        people: (n,) int64.
        exclusive: As of `Dataset`.
    """

    images: Tensor
    labels: Tensor | None
    people: Tensor
    exclusive: bool

    def pairs(self, count: int, order: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """First and second row (count,), and 1 for one person (count,).

        Half of the pairs show one person, in two images. People with one image stand in false pairs alone.
        """
        people, order_of_people = self.people.sort(stable=True)
        sizes = torch.unique_consecutive(people, return_counts=True)[1]
        size = sizes.repeat_interleave(sizes)
        begin = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
        several = (size > 1).nonzero()[:, 0]
        same = torch.arange(count, device=people.device) < count // 2

        def below(limits: Tensor) -> Tensor:
            """A random number below each limit."""
            drawn = torch.rand(count, generator=order, dtype=torch.float64, device=people.device)
            return (drawn * limits).long()

        first = below(torch.where(same, len(several), len(people)))
        first = torch.where(same, several[first.clamp_max(len(several) - 1)], first)
        # Which of the others of the person, or which of all rows but the person's, counted without those.
        chosen = below(torch.where(same, size[first] - 1, len(people) - size[first]))
        within = begin[first] + chosen + (begin[first] + chosen >= first).long()
        outside = chosen + torch.where(chosen >= begin[first], size[first], 0)
        second = torch.where(same, within, outside)
        return order_of_people[first], order_of_people[second], same.float()


def train_anonymiser(
    network: Anonymiser, lessons: Lessons, course: AnonymiserCourse, width: int, seed: int
) -> tuple[float, float]:
    """Train `network` in place against a verifier of its own.

    Same seed, same bits on a CPU. Raises FloatingPointError for a loss that is not finite.

    Args:
        network: Left in evaluation mode.
        lessons: To learn from.
        course: Of the training.
        width: Channels of the first stage of verifier and classifier.
        seed: Of pairs and opponents.

    Returns:
        AUC of the verifier that was trained on raw images and of the one that was trained on new images, each on
        `JUDGED` pairs of such images of the people that it learned from.
    """
    images, device = lessons.images, lessons.images.device
    shape = (images.shape[1], images.shape[2], images.shape[3])
    order = generator(derive(seed, "pairs"), device)
    with seeded(derive(seed, "opponents"), device):
        verifier = Siamese(shape, width).to(device)
        classes = 0 if lessons.labels is None else lessons.labels.shape[1]
        classifier = resnet18(shape, classes, width=width, narrow=True).to(device) if classes else None
    nets = [network, verifier, *([] if classifier is None else [classifier])]
    optimisers = [adam(net.parameters(), course.learning_rate, device) for net in nets]
    loss_of = label_loss(lessons.exclusive)

    def learn(rewrites: bool) -> Tensor:
        """One step of all networks, or of the opponents alone.

        Returns the verifier's loss before it.
        """
        first, second, same = lessons.pairs(course.batch, order)
        labels = None if lessons.labels is None else lessons.labels[first]
        shown, other = images[first], images[second]
        if rewrites:
            network.train()
            shown = network(shown)
            verifier.eval()
            loss = course.verify * functional.softplus(verifier(shown, other)).mean()  # -log(1 - sigmoid(logit))
            if classifier is not None and labels is not None:
                classifier.eval()
                loss = loss + course.classify * loss_of(classifier(shown), labels)
            _step(optimisers[0], loss)
            shown = shown.detach()
        verifier.train()
        verified = functional.binary_cross_entropy_with_logits(verifier(shown, other), same)
        _step(optimisers[1], verified)
        if classifier is not None and labels is not None:
            classifier.train()
            _step(optimisers[2], loss_of(classifier(shown), labels))
        return verified.detach()

    def judged() -> float:
        """AUC of the verifier, an image of each pair new."""
        network.eval()
        verifier.eval()
        first, second, same = lessons.pairs(JUDGED, generator(derive(seed, "judged pairs"), device))
        with torch.no_grad():
            parts = zip(torch.split(first, ROWS), torch.split(second, ROWS), strict=True)
            logits = torch.cat([verifier(network(images[one]), images[other]) for one, other in parts])
        true, false = logits[same == 1, None], logits[same == 0]
        return float(((true > false).double() + 0.5 * (true == false).double()).mean())

    found = []
    for rewrites, length in ((False, course.first_steps), (True, course.steps)):
        rise = max(1, length // 10)
        for step in steps(length, *nets, *optimisers, order):
            fall = 0.5 * (1 + math.cos(math.pi * max(0, step - rise) / max(1, length - rise)))
            for optimiser in optimisers:
                set_rate(optimiser, course.learning_rate * min((step + 1) / rise, fall))
            loss = learn(rewrites)
            if (step + 1) % max(1, length // 20) == 0 or step + 1 == length:
                value = float(loss)
                if not math.isfinite(value):
                    raise FloatingPointError(
                        f"training diverged by step {step + 1}: the loss must be finite, got {value}; "
                        "lower learning_rate"
                    )
                which = "new" if rewrites else "raw"
                report(f"anonymiser, loss of the verifier on {which} images {value:.4f}, step", step + 1, length)
        found.append(judged())
    network.eval().requires_grad_(False)
    return found[0], found[1]


def _step(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def anonymised(network: Anonymiser, images: Tensor) -> Tensor:
    """New images (n, c, h, w) float32 in [0, 1], without gradients."""
    with torch.no_grad():
        return by_blocks(images, lambda part: network(part).clamp(0, 1), ROWS)


def mean_displacement(network: Anonymiser, images: Tensor) -> float:
    """Mean length of the displacement in pixels; 0 for painted images."""
    if network.mu is None:
        return 0.0
    h, w = images.shape[2:]
    half = images.new_tensor(((w - 1) / 2, (h - 1) / 2)).reshape(1, 2, 1, 1)
    with torch.no_grad():
        parts = [(network.displacement(part) * half).norm(dim=1).mean(dim=(1, 2)) for part in torch.split(images, ROWS)]
    return float(torch.cat(parts).mean())
