"""Syfer: learned layers between a key's random layers, and permuted labels.

The key permutes the identities of the labels. Source: Yala et al., Syfer: Neural Obfuscation for Private Data Release
(2022), section 4.2, Algorithm 1, appendix C. The network is in `bench.nets.obfuscator`, its training in
`bench.nets.obfuscator`, the labels' permutation in `bench.owner.label_code`, each with what it chooses where
the paper is silent.

Differences from the paper, beside those named there:
- The copy of the paper at hand lacks its equations, and with them lambda_reid, lambda_rec and the learning rate: ours
  are guesses.
- The released image holds a square a token: with 16 patches of 16 x 16 and width 256, 64 x 64 pixels again. Tokens are
  as wide as their patch, of colour images and of patches of other sides too, unless `width` says otherwise: what a
  narrower token throws away would count as privacy. A token of a patch that is no even square is a little wider.
- A finding's labels are flipped or not, exclusive classes permuted. Which of the two is settled by the public data.
- On a CPU everything is float32. Training on CUDA may run in bfloat16 and compiled (`cuda_bfloat16`, `cuda_compile`);
  encodings are float32 everywhere.
- The small presets train smaller networks for fewer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, get_args

import torch

from bench.backbones.weights import KNOWN, check_digits, load_checked, read_known
from bench.nets import obfuscator
from bench.nets.network_choices import check_sizes, even_square
from bench.nets.patches import SHRUNK, patched_shape
from bench.nets.training import seeded
from bench.owner.label_code import LabelCode, Unbalanced
from bench.randomness import Secret
from bench.seeds import derive
from bench.types import (
    CAVEAT,
    Dataset,
    Key,
    Method,
    NotApplicable,
    Parameter,
    Release,
    Scheme,
    State,
    by_blocks,
    paired,
)
from bench.validation import at_least, one_of, positive

WIDTH, PATCHES = 256, 16  # of the paper: 16 x 16 pixels, grey, of 64 x 64
SIZES: Mapping[str, Mapping[str, Parameter]] = {
    "smoke": {"width": 64, "blocks": 2, "depth": 1},
    "first-look": {"blocks": 2, "depth": 1},
    "quick": {"blocks": 2, "depth": 1},
    "standard": {"blocks": 5, "depth": 2},
    "paper": {"blocks": 5, "depth": 5},
}
LARGE: Mapping[str, Parameter] = {"batch": 128, "opponent_width": 256, "cuda_compile": True}

ROWS = 256


@dataclass(frozen=True)
class KeyedEncoder(Method):
    """The common part of Syfer and its ablation: sizes and labels.

    The ablation has random obfuscators.

    Args:
        patch_size: Side of a square patch in pixels; it must divide both sides of the image.
        width: Numbers a token, an even square (64, 144, 256), of a grey image; a token of c channels has the next even
            square from c times as many. None stands for as many as the patch has pixels, so that none are lost.
        blocks: Learned stacks, each followed by a random layer; one more random layer ends the network.
        depth: SAU layers a learned stack.
        labels: "encoded" permutes label identities by the key; "raw" releases labels as they are (an ablation).
        unbalanced: What to do with labels to encode whose classes are not equally frequent: "error" refuses them,
            "withhold" releases a random surplus as unknown.
    """

    source: ClassVar[str] = "Yala et al. 2022 (Syfer), section 4.2"
    encodes_labels: ClassVar[bool] = True
    equal_classes: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = SIZES
    sides: ClassVar[Mapping[str, int]] = {"paper": 64}

    patch_size: int = 16
    width: int | None = None
    blocks: int = 2
    depth: int = 1
    labels: Literal["encoded", "raw"] = "encoded"
    unbalanced: Unbalanced = "error"

    def __post_init__(self) -> None:
        at_least(1, patch_size=self.patch_size)
        if self.width is None:
            object.__setattr__(self, "width", even_square(self.patch_size**2))
        check_sizes(width=self._grey, blocks=self.blocks, depth=self.depth)
        one_of(("encoded", "raw"), labels=self.labels)
        one_of(get_args(Unbalanced), unbalanced=self.unbalanced)

    def fit(self, public: Dataset, seed: int) -> SyferScheme:
        """The network, perhaps trained. Raises NotApplicable for tables and indivisible sides."""
        samples, shape = public.samples, patched_shape(self.name, public, self.patch_size)
        network = self.start(samples, shape, seed)
        self._train(network, public, seed)
        return self._scheme(network, shape, public.exclusive)

    def start(self, images: torch.Tensor, shape: tuple[int, int, int], seed: int) -> obfuscator.Obfuscator:
        """The network before training.

        It is standardised by public images (n, c, h, w), on their device.
        """
        with seeded(derive(seed, "obfuscator"), images.device):
            network = self._network(shape)
        network.standardise_by(images)
        return network.to(images.device)

    def load(self, state: State) -> SyferScheme:
        """The scheme that `SyferScheme.state` described. Raises ValueError if it has other sizes."""
        c, h, w, *sizes, exclusive = (int(number) for number in state["sizes"])
        own = [self.patch_size, self._wide(c), self.blocks, self.depth]
        if sizes != own:
            raise ValueError(f"the stored scheme has patch_size, width, blocks, depth {sizes}, this method has {own}")
        with seeded(0):
            network = self._network((c, h, w)).to(state["sizes"].device)
        network.load_state_dict({name: tensor for name, tensor in state.items() if name != "sizes"})
        return self._scheme(network, (c, h, w), bool(exclusive))

    def _network(self, shape: tuple[int, int, int]) -> obfuscator.Obfuscator:
        width = self._wide(shape[0])
        return obfuscator.Obfuscator(
            shape, patch_size=self.patch_size, width=width, blocks=self.blocks, depth=self.depth
        )

    @property
    def _grey(self) -> int:
        """Numbers a token of a grey image."""
        assert self.width is not None, "set on construction"
        return self.width

    def _wide(self, channels: int) -> int:
        """Numbers a token of images of so many channels."""
        return self._grey if channels == 1 else even_square(channels * self._grey)

    def _scheme(self, network: obfuscator.Obfuscator, shape: tuple[int, int, int], exclusive: bool) -> SyferScheme:
        network.eval().requires_grad_(False)
        ratio = shape[0] * self.patch_size**2 / network.width
        return SyferScheme(network, shape, exclusive, self.labels, self.unbalanced, ratio, self._caveat(network))

    def _caveat(self, network: obfuscator.Obfuscator) -> str:
        """The comparison of the sizes with the paper's."""
        own = (len(network.stacks), network.depth, network.width, network.locations)
        ours, paper = (
            f"{blocks} x {depth} learned layers of width {width} for {patches} patches"
            for blocks, depth, width, patches in (
                own,
                (SIZES["paper"]["blocks"], SIZES["paper"]["depth"], WIDTH, PATCHES),
            )
        )
        if ours == paper:
            return "a network of the paper's size"
        return f"a network of {ours}; the paper's is {paper}"

    def _train(self, network: obfuscator.Obfuscator, public: Dataset, seed: int) -> None:
        """Nothing is learned unless a method says so."""


@dataclass(frozen=True)
class SyferRandom(KeyedEncoder):
    """Syfer whose obfuscators are never trained: random weights that everyone knows."""

    name: ClassVar[str] = "syfer-random"
    source: ClassVar[str] = "Yala et al. 2022 (Syfer), section 5: the Syfer-Random ablation"


@dataclass(frozen=True)
class Syfer(KeyedEncoder):
    """Keyed encoder with public layers trained to hide images.

    They are trained against an attacker, and to keep the images decodable.

    Args:
        steps: Training steps, half of them the obfuscator's and half its opponents'.
        batch: Public images a step.
        lambda_reid, lambda_rec: Weights of hiding and of staying decodable.
        learning_rate: Peak rate of Adam.
        lambda_match: Weight of hiding what `relational` matches rows by (`bench.nets.obfuscator.agreement`): a
            defence of ours; the paper has none.
        opponent_width, opponent_depth: Of the attacker trained against; the decoder has the same width.
        opponent_relations: Tell that attacker how each row stands to the others of its batch; the paper's is not told.
        cuda_bfloat16: On CUDA, train in bfloat16 autocast.
        cuda_compile: On CUDA, compile the network with torch.compile for training.
        weights: Full path of a safetensors file with weights that were trained earlier, which never enters a record.
            Nothing is trained then, and the options of training say how it was.
        weights_sha256: The first 12 or more digits of its SHA-256, which the record shows.
    """

    name: ClassVar[str] = "syfer"
    confidential: ClassVar[frozenset[str]] = frozenset({"weights"})
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {**SIZES["smoke"], "steps": 8, "batch": 16, "opponent_width": 32, "opponent_depth": 1},
        "first-look": {**SIZES["first-look"], "steps": 300},
        "quick": {**SIZES["quick"], "steps": 700},
        "standard": {**SIZES["standard"], **LARGE, "steps": 10_000},
        "paper": {**SIZES["paper"], **LARGE, "steps": 50_000},
    }

    steps: int = 700
    batch: int = 64
    lambda_reid: float = 2.0
    lambda_rec: float = 20.0
    lambda_match: float = 0.0
    learning_rate: float = 1e-3
    opponent_width: int = 128
    opponent_depth: int = 3
    opponent_relations: bool = False
    cuda_bfloat16: bool = True
    cuda_compile: bool = False
    weights: str | None = None
    weights_sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.weights is None) != (not self.weights_sha256):
            raise ValueError("weights and weights_sha256 belong together: a file, and the start of its SHA-256")
        if self.weights is not None:
            check_digits(self.weights_sha256)
        at_least(2, steps=self.steps, batch=self.batch)
        at_least(1, opponent_depth=self.opponent_depth)
        if self.opponent_width < 4 or self.opponent_width % 4:
            raise ValueError(f"opponent_width must be a multiple of 4 (heads), got {self.opponent_width}")
        at_least(0, lambda_reid=self.lambda_reid, lambda_rec=self.lambda_rec, lambda_match=self.lambda_match)
        positive(learning_rate=self.learning_rate)

    def _caveat(self, network: obfuscator.Obfuscator) -> str:
        if self.weights is not None:
            return f"{super()._caveat(network)}; its weights were trained before, SHA-256 {self.weights_sha256}"
        paper = self.presets["paper"]
        return (
            f"{super()._caveat(network)}; trained for {self.steps} steps of {self.batch} images (the paper: "
            f"{paper['steps']} of {paper['batch']}); the weights of its losses, {self.lambda_reid:g} and "
            f"{self.lambda_rec:g}, and its learning rate, {self.learning_rate:g}, are guesses, for the paper at "
            "hand lacks its equations"
        )

    def _train(self, network: obfuscator.Obfuscator, public: Dataset, seed: int) -> None:
        """Algorithm 1 on public images without labels; or the file's weights."""
        if self.weights is not None:
            found = read_known(Path(self.weights).expanduser(), self.weights_sha256)
            load_checked(network, found, heads=(), what=KNOWN)
            return
        if len(public) < 2:
            raise NotApplicable("syfer trains an attacker who tells images apart: needs 2 public images, got 1")
        opponents = self.opponents(public.samples.device)
        obfuscator.train_obfuscator(network, public.samples, opponents, derive(seed, "training"))

    def opponents(self, device: torch.device) -> obfuscator.Opponents:
        """The training on that device."""
        cuda = device.type == "cuda"
        return obfuscator.Opponents(
            steps=self.steps,
            batch=self.batch,
            lambda_reid=self.lambda_reid,
            lambda_rec=self.lambda_rec,
            lambda_match=self.lambda_match,
            learning_rate=self.learning_rate,
            width=self.opponent_width,
            depth=self.opponent_depth,
            relations=self.opponent_relations,
            precision="bfloat16" if cuda and self.cuda_bfloat16 else "float32",
            compiled=cuda and self.cuda_compile,
        )


@dataclass(frozen=True, eq=False)
class SyferScheme(Scheme):
    """A network for images of `shape` (c, h, w), with label rules.

    The rules depend on `exclusive`. `ratio`: numbers of a patch over those of its token; above 1 some are lost before
    anything is hidden.
    """

    network: obfuscator.Obfuscator
    shape: tuple[int, int, int]
    exclusive: bool
    labels: Literal["encoded", "raw"]
    unbalanced: Unbalanced
    ratio: float
    caveat: str

    def notes(self) -> Mapping[str, int | float | str]:
        """Numbers of a patch per number of token; a caveat on size."""
        return {CAVEAT: self.caveat, SHRUNK: round(self.ratio, 4)}

    def sample_key(self, secret: Secret) -> SyferKey:
        """Fresh random layers and a fresh label code."""
        device = next(self.network.parameters()).device
        layers = [layer.to(device) for layer in self.network.draw(secret.stream("layers").normal)]
        return self._key(layers, secret.derive("labels"))

    def load_key(self, state: State) -> SyferKey:
        """The key that `SyferKey.state` described."""
        layers = [state[f"layer-{number}"] for number in range(len(state) - 1)]
        return self._key(layers, Secret.load(state["label-secret"]))

    def state(self) -> State:
        """The network's weights, and its sizes, int64."""
        network = self.network
        numbers = (*self.shape, network.patch_size, network.width, len(network.stacks), network.depth, self.exclusive)
        weights = {name: tensor.detach() for name, tensor in network.state_dict().items()}
        return {**weights, "sizes": torch.tensor(numbers, device=next(network.parameters()).device)}

    def _key(self, layers: list[torch.Tensor], labels: Secret) -> SyferKey:
        return SyferKey(self, tuple(layers), LabelCode(labels, self.exclusive, self.unbalanced))


@dataclass(frozen=True, eq=False)
class SyferKey(Key):
    """Random layers (locations, width + 1, width), and the label code."""

    scheme: SyferScheme
    layers: tuple[torch.Tensor, ...]
    code: LabelCode

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, 1, h', w'), labels. Raises NotApplicable for unencodable labels."""
        labels = private.labels if self.scheme.labels == "raw" else self.code.encode(private)
        return paired(self.query(private.samples), labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Images encoded as in the release. Raises ValueError for other shapes."""
        if tuple(samples.shape[1:]) != self.scheme.shape:
            raise ValueError(f"this key encodes images of shape {self.scheme.shape}, got {tuple(samples.shape[1:])}")
        with torch.no_grad():
            return by_blocks(samples, lambda rows: self.scheme.network(rows, self.layers), ROWS)

    def decode(self, scores: torch.Tensor) -> torch.Tensor:
        """Predictions (n, k) in [0, 1] for the real labels."""
        return scores if self.scheme.labels == "raw" else self.code.decode(scores)

    def state(self) -> State:
        """The layers by number, and the label code's secret, uint8 (32,)."""
        layers = {f"layer-{number}": layer for number, layer in enumerate(self.layers)}
        return {**layers, "label-secret": self.code.secret.tensor()}
