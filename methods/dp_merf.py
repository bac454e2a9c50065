"""DP-MERF: rows drawn from a generator that fits a noisy kernel mean.

Source: Harder, Adamczewski and Park, DP-MERF: Differentially Private Mean Embeddings with Random Features for Practical
Privacy-Preserving Data Generation (AISTATS 2021, arXiv 2002.11603), and the authors' code. A row x with labels y has
features phi(x) g(y)^T: random Fourier features phi (Rahimi and Recht 2007) of a Gaussian kernel,
phi(x) = root(2 / D) (cos(w_i x), sin(w_i x)) for i up to D / 2, of length 1; g one-hot. Their mean over the private
rows is released once with Gaussian noise. A mean over n rows has the sensitivity 2 / n if one is replaced, as phi g^T
has length 1. A generator of z ~ N(0, I) and y is then fitted to it, by the squared distance between the noisy mean and
that of generated rows (the maximum mean discrepancy in random features). Training, generator and any number of rows
drawn from it are post-processing. There are no links: a released row has no raw row behind it.

Frequencies w ~ N(0, I / length^2) are public, drawn at `fit`. The squared lengths in the authors' code are 105 for
MNIST and 127 for FashionMNIST, with pixels in [0, 1]; here it is by default the mean squared distance of public rows,
which is 105.9 for MNIST.

Differences:
- Labels that may come together have no one-hot code but one for each finding (yes, no, unknown), over root k for k
  findings: the kernel of labels is the share of findings in which two rows agree. Findings are drawn independently by
  their noisy frequencies. Exclusive classes are as in the paper.
- Class frequencies are part of the one noisy sum, by `label_share` of its squared length. The paper draws balanced
  classes uniformly, and spends a second release on unbalanced ones.
- epsilon is exact for the Gaussian mechanism (Balle and Wang 2018), not by Renyi divergences; vectors and noise are on
  a public grid, so that the bound holds for the bits published: see `bench.owner.gaussian_sum`.
- Norms by groups in place of batch norms, so that a drawn row depends on no other; the rate falls as a cosine to zero;
  images of any sides. A table's rows are standardised by public ones; its generator has no last sigmoid.
- The paper's size is the preset `paper`: 10,000 features, batches of 500. For few rows fewer features do as well: noise
  lies in each of them, and the generator has to fit none of it.
- The number of rows is taken to be public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.nets.private_training import MOST_DELTA, delta_for
from bench.nets.training import start
from bench.owner.gaussian_sum import EPSILONS, GaussianSum, accounts, calibrated
from bench.owner.secret_key import SecretKey, SecretScheme, bound
from bench.progress import report
from bench.randomness import Secret
from bench.seeds import derive
from bench.types import (
    Dataset,
    Method,
    NotApplicable,
    Parameter,
    PrivacyClaim,
    PrivateStep,
    Release,
    State,
)
from bench.validation import at_least, between, one_of, positive_and_finite, within

SENSITIVITY = 2.0  # of a sum of vectors of length 1, if one is replaced
MOST = 4096  # public rows whose distances give the kernel's length
ROWS = 256
HIDDEN, CHANNELS = 200, (16, 8)  # the authors' generator


@dataclass(frozen=True)
class DPMERF(Method):
    """Rows drawn from a generator fitted to a differentially private kernel mean.

    Args:
        epsilon, delta: The budget. None takes for delta 1 / (10 n) of n rows, 1e-5 at most.
        features: Random features D of a row, an even number.
        length: Length scale of the Gaussian kernel, in units of pixels (0 to 1) or of standardised columns. None takes
            the root of the mean squared distance of public rows.
        label_share: Of the squared length of a row's vector, what its labels get for themselves.
        network: Of images: "dense" has one hidden layer; "convolutional" is the authors', at twenty times the work.
        code: Numbers of a latent z.
        steps, batch, learning_rate: Of the generator's training by Adam.
    """

    name: ClassVar[str] = "dp-merf"
    source: ClassVar[str] = "Harder, Adamczewski and Park 2021 (DP-MERF), and the authors' code"
    claims: ClassVar[str] = (
        "(epsilon, delta)-differential privacy per row, of a generator and all that is drawn from it"
    )
    needs_labels: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"features": 200, "steps": 30, "batch": 32},
        "first-look": {"features": 500, "steps": 300, "batch": 64},
        "paper": {"features": 10_000, "steps": 3000, "batch": 500, "network": "convolutional"},
    }
    unlearned: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "label_share", "network", "code", "steps", "batch", "learning_rate"}
    )

    epsilon: float = 1.0
    delta: float | None = None
    features: int = 1000
    length: float | None = None
    label_share: float = 0.2
    network: Literal["dense", "convolutional"] = "dense"
    code: int = 5
    steps: int = 600
    batch: int = 100
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        within(*EPSILONS, epsilon=self.epsilon)
        between(0, 1, delta=self.delta, label_share=self.label_share)
        at_least(2, features=self.features, batch=self.batch)
        if self.features % 2:
            raise ValueError(f"features must be even (a cosine and a sine for each frequency), got {self.features}")
        one_of(("dense", "convolutional"), network=self.network)
        at_least(1, code=self.code, steps=self.steps)
        positive_and_finite(length=self.length, learning_rate=self.learning_rate)

    def fit(self, public: Dataset, seed: int) -> DPMERFScheme:
        """Frequencies, and what public rows say of scale and length.

        Raises NotApplicable for public rows that are all the same.
        """
        samples, device = public.samples, public.samples.device
        mean, std = torch.zeros(samples.shape[1:], device=device), torch.ones(samples.shape[1:], device=device)
        if samples.ndim == 2:
            std, mean = torch.std_mean(samples.double(), dim=0, correction=0)
            std, mean = torch.where(std > 0, std, 1).float(), mean.float()
        length = self.length
        if length is None:
            some = ((samples[:MOST][:] - mean) / std).flatten(1).double()
            length = math.sqrt(2 * float(some.var(dim=0).sum())) if len(some) > 1 else 0.0
            if not length > 0:
                raise NotApplicable(
                    f"dp-merf takes its kernel's length from distances of public rows, and those of {public.name} are "
                    "all the same, or fewer than 2: set length"
                )
        normal = Secret.of_seed(derive(seed, "frequencies")).stream().normal(self.features // 2, mean.numel())
        return self.load({
            "frequencies": (normal / length).float().to(device), "mean": mean, "std": std,
            "length": torch.tensor(length, dtype=torch.float64),
        })  # fmt: skip

    def load(self, state: State) -> DPMERFScheme:
        """The scheme that `DPMERFScheme.state` described. Raises ValueError for another number of features."""
        if 2 * len(state["frequencies"]) != self.features:
            raise ValueError(
                f"the stored scheme has {2 * len(state['frequencies'])} features, this method has {self.features}"
            )
        return DPMERFScheme(self, dict(state))

    def generator(self, shape: tuple[int, ...], classes: int) -> torch.nn.Sequential:
        """Latents with label codes (b, code + classes) to rows (b, ...)."""
        nn, inputs = torch.nn, self.code + classes
        if len(shape) == 1:
            return nn.Sequential(
                nn.Linear(inputs, HIDDEN), nn.GroupNorm(1, HIDDEN), nn.ReLU(),
                nn.Linear(HIDDEN, HIDDEN), nn.GroupNorm(1, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, shape[0]),
            )  # fmt: skip
        (c, h, w), (first, second) = shape, CHANNELS
        if self.network == "dense":
            return nn.Sequential(
                nn.Linear(inputs, HIDDEN), nn.GroupNorm(1, HIDDEN), nn.ReLU(),
                nn.Linear(HIDDEN, c * h * w), nn.Sigmoid(), nn.Unflatten(1, shape),
            )  # fmt: skip
        small, middle = ((-(-h // by), -(-w // by)) for by in (4, 2))
        return nn.Sequential(
            nn.Linear(inputs, HIDDEN), nn.GroupNorm(1, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, first * math.prod(small)), nn.Unflatten(1, (first, *small)),
            nn.GroupNorm(1, first), nn.ReLU(),
            nn.Upsample(middle, mode="bilinear", align_corners=True), nn.Conv2d(first, second, 5, padding=2), nn.ReLU(),
            nn.Upsample((h, w), mode="bilinear", align_corners=True), nn.Conv2d(second, c, 5, padding=2), nn.Sigmoid(),
        )  # fmt: skip


@dataclass(frozen=True)
class Coding:
    """The coding of labels: `groups` of `kinds` each, 0 for unknown.

    Of exclusive classes, one group, in which 1 and above are the classes; else a group a finding, in which 1 is no and
    2 yes. Rows without labels are one group of unknown ones.
    """

    findings: int
    exclusive: bool

    @classmethod
    def of(cls, data: Dataset) -> Coding:
        """The coding of a data set's labels.

        The number of findings is public.
        """
        return cls(0 if data.labels is None else data.labels.shape[1], data.exclusive)

    @property
    def groups(self) -> int:
        """Labels that are drawn by themselves."""
        return 1 if self.exclusive else max(1, self.findings)

    @property
    def kinds(self) -> int:
        """Kinds of a group."""
        return self.findings + 1 if self.exclusive else 3

    @property
    def columns(self) -> int:
        """Numbers of a code."""
        return self.groups * self.kinds

    def read(self, labels: torch.Tensor | None, count: int) -> torch.Tensor:
        """The kind (n, groups) int64 of each group of labels (n, k)."""
        if labels is None or not self.findings:
            return torch.zeros(count, self.groups, dtype=torch.int64)
        known = ~labels.isnan()
        if self.exclusive:
            return torch.where(known.all(dim=1), labels.nan_to_num().argmax(dim=1) + 1, 0)[:, None].cpu()
        return torch.where(known, (labels > 0.5).long() + 1, 0).cpu()

    def one_hot(self, kinds: torch.Tensor) -> torch.Tensor:
        """Codes (n, columns) float32 of kinds (n, groups)."""
        return torch.nn.functional.one_hot(kinds, self.kinds).flatten(1).float()

    def labels(self, kinds: torch.Tensor) -> torch.Tensor | None:
        """Labels (m, k) of kinds (m, groups); None without findings."""
        if not self.findings:
            return None
        if self.exclusive:
            whole = torch.nn.functional.one_hot(kinds[:, 0], self.findings + 1)[:, 1:].float()
            return torch.where(kinds == 0, torch.nan, whole)
        return torch.where(kinds == 0, torch.nan, (kinds - 1).float())


@dataclass(frozen=True, eq=False)
class DPMERFKey(SecretKey):
    """A secret: the source of noise, start and draws."""

    scheme: DPMERFScheme

    def release(self, private: Dataset) -> Release:
        """As many drawn rows (n, ...) as private ones, unlinked.

        Raises:
            ValueError: Rows of another shape, numbers that are not finite, or a delta that n rows do not allow.
            FloatingPointError: Training diverged.
        """
        scheme, method, n, coding = self.scheme, self.scheme.method, len(private), Coding.of(private)
        mean, chances = scheme.read(self._noisy_sum(private) / n, coding)
        network = self._trained(mean, chances, coding)
        kinds = scheme.draw(chances, self.secret.derive("labels"), n)
        codes = self.secret.stream("release").normal(n, method.code).float()
        with torch.no_grad():
            inputs = torch.cat((codes, coding.one_hot(kinds)), dim=1).to(mean.device)
            rows = [network(part) for part in torch.split(inputs, ROWS)]
        samples = torch.cat(rows) * scheme.learned["std"] + scheme.learned["mean"]
        return Release(samples, coding.labels(kinds.to(samples.device)), None)

    def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
        """The noisy sum, for which the claim holds, as the one step."""
        vectors = torch.cat([self.scheme.vector(part) for part in _parts(probes)])
        see(PrivateStep(self._noisy_sum(private).float(), vectors.float(), 1.0))

    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        """The noisy sum of vectors (c, d), shortened to length 1."""
        noise = self.scheme.noise(len(gradients))
        exact = gradients.double()
        clipped = exact / exact.norm(dim=1, keepdim=True).clamp_min(1)
        total = noise.noisy(noise.added(clipped), self.secret.stream("noise"))
        see(PrivateStep(total.float(), total.new_zeros(0, len(total)).float(), 1.0))

    def _noisy_sum(self, private: Dataset) -> torch.Tensor:
        """The noisy sum (d,) float64, the same at every call."""
        scheme = self.scheme
        noise = scheme.noise(len(private))
        total = torch.zeros(scheme.width(Coding.of(private)), dtype=torch.int64, device=private.samples.device)
        for part in _parts(private):
            total += noise.added(scheme.vector(part))
        return noise.noisy(total, bound(self.secret.derive("noise"), private).stream())

    def _trained(self, mean: torch.Tensor, chances: torch.Tensor, coding: Coding) -> torch.nn.Sequential:
        """A generator whose rows have nearly the features (D, columns) float32."""
        scheme, method, device = self.scheme, self.scheme.method, mean.device
        network = method.generator(scheme.shape, coding.columns).to(device)
        start(network, self.secret.stream("network"))
        optimiser = torch.optim.Adam(network.parameters(), lr=method.learning_rate)
        pace = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, method.steps)
        codes, labels = self.secret.stream("codes"), self.secret.derive("batches")
        for step in range(method.steps):
            label = coding.one_hot(scheme.draw(chances, labels.derive(step), method.batch)).to(device)
            code = codes.normal(method.batch, method.code).float().to(device)
            features = scheme.features(network(torch.cat((code, label), dim=1)))
            loss = (features.T @ label / method.batch - mean).square().sum()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            pace.step()
            if (step + 1) % max(1, method.steps // 20) == 0:
                value = float(loss.detach())
                if not math.isfinite(value):
                    raise FloatingPointError(f"training diverged in step {step + 1}: lower learning_rate")
                report(f"dp-merf, loss {value:.4g}, step", step + 1, method.steps)
        return network.eval().requires_grad_(False)


@dataclass(frozen=True, eq=False)
class DPMERFScheme(SecretScheme):
    """Public numbers of `method`.

    `learned`: `frequencies` (D / 2, d) float32, `mean` and `std` of a row, and the `length` scale.
    """

    key = DPMERFKey
    purpose = "dp-merf"

    method: DPMERF
    learned: State

    def state(self) -> State:
        """All of `learned`."""
        return self.learned

    def notes(self) -> Mapping[str, int | float | str]:
        """The kernel's length scale; the noise in rows.

        It is the deviation at a delta of 1e-5, if none is given.
        """
        delta = MOST_DELTA if self.method.delta is None else self.method.delta
        return {
            "length scale": round(float(self.learned["length"]), 4),
            "noise of a sum, in rows": round(SENSITIVITY / calibrated(self.method.epsilon, delta), 4),
        }

    def claim(self) -> PrivacyClaim:
        """The budget, which the noise is calibrated to exactly."""
        method = self.method
        own = "1 / (10 n) for n rows, 1e-5 at most" if method.delta is None else "as given"
        return PrivacyClaim(
            unit="image" if len(self.shape) == 3 else "record",
            epsilon=method.epsilon,
            delta=MOST_DELTA if method.delta is None else method.delta,
            assumptions=(
                "Neighbours differ in one row, samples and labels; their number is public, and so are rows that scales "
                "and frequencies come from; one release a key; which labels are withheld beforehand (balancing) is "
                "outside the claim; it holds for the noisy sum, and so for the generator and all that it draws, and "
                "for the bits published: vectors and noise are whole steps of a public grid."
            ),
            basis=(
                "Harder et al. 2021, algorithm 1: one Gaussian mechanism of sensitivity 2 on the sum of features of "
                f"length 1, calibrated exactly (Balle and Wang 2018, theorem 8); delta is {own}"
            ),
            family="Gaussian",
            sampling_rate=1.0,
            steps=1,
        )

    def accounts(self, rows: int) -> Mapping[str, float]:
        """The budget spent on rows: exactly, and by dp-accounting (if installed)."""
        delta = delta_for(self.method.delta, rows)
        return accounts(calibrated(self.method.epsilon, delta), delta)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row."""
        return tuple(self.learned["mean"].shape)

    def width(self, coding: Coding) -> int:
        """Numbers of a row's vector."""
        return (self.method.features + 1) * coding.columns

    def noise(self, rows: int) -> GaussianSum:
        """The noise of a sum over so many rows; ValueError as `delta_for`."""
        return GaussianSum(SENSITIVITY / calibrated(self.method.epsilon, delta_for(self.method.delta, rows)))

    def features(self, samples: torch.Tensor) -> torch.Tensor:
        """Features (n, D) of standardised rows (n, ...), of length 1."""
        turns = samples.flatten(1) @ self.learned["frequencies"].T
        return torch.cat((turns.cos(), turns.sin()), dim=1) / math.sqrt(self.method.features / 2)

    def vector(self, data: Dataset) -> torch.Tensor:
        """Rows' vectors (n, (D + 1) columns) float32, of length 1.

        Features by label code, of squared length 1 - `label_share`, then the label code. Raises ValueError for rows of
        another shape.
        """
        if tuple(data.samples.shape[1:]) != self.shape:
            raise ValueError(f"this key takes rows of shape {self.shape}, got {tuple(data.samples.shape[1:])}")
        bad = int((~data.samples.isfinite()).flatten(1).any(dim=1).sum())
        if bad:
            raise ValueError(f"features must be finite: {bad} of {len(data)} rows of {data.name} are not")
        rows = (data.samples - self.learned["mean"]) / self.learned["std"]
        coding = Coding.of(data)
        code = coding.one_hot(coding.read(data.labels, len(data))).to(rows.device) / math.sqrt(coding.groups)
        share = self.method.label_share
        joint = math.sqrt(1 - share) * self.features(rows)[:, :, None] * code[:, None, :]
        return torch.cat((joint.flatten(1), math.sqrt(share) * code), dim=1)

    def read(self, mean: torch.Tensor, coding: Coding) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (D, columns) and chances (groups, kinds) of a noisy mean.

        The mean (d,) is of vectors; the features are float32, by label code.
        """
        columns = coding.columns
        share, root = self.method.label_share, math.sqrt(coding.groups)
        joint = mean[:-columns].reshape(-1, columns) * root / math.sqrt(1 - share)
        chances = (mean[-columns:] * root / math.sqrt(share)).reshape(coding.groups, coding.kinds).clamp_min(0)
        whole = chances.sum(dim=1, keepdim=True)
        return joint.float(), torch.where(whole > 0, chances / whole, 1 / coding.kinds)

    def draw(self, chances: torch.Tensor, secret: Secret, count: int) -> torch.Tensor:
        """Kinds (count, groups) int64, each group by its chances (groups, kinds)."""
        steps = chances.cpu().cumsum(dim=1)
        at = secret.stream().uniform(len(steps), count) * steps[:, -1:]
        return torch.searchsorted(steps, at, right=True).clamp_max(steps.shape[1] - 1).T


def _parts(data: Dataset) -> list[Dataset]:
    """The rows in blocks, one at least."""
    order = torch.arange(len(data), device=data.samples.device)
    return [data.take(part) for part in torch.split(order, ROWS)]
