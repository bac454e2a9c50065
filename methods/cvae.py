"""CVAE: synthetic vectors from a conditional variational autoencoder of private ones.

Source: Di Salvo et al., Privacy-preserving datasets by capturing feature distributions with conditional VAEs (2024),
and the authors' code. The network, its two formulas and its training are in `bench.nets.cvae`. Vectors only: images
come to it through `--features`. Nothing is learned from public rows. A released row has no raw row behind it, so there
are no links.

Differences from the paper:
- The paper's "100" units of the encoder are mean and log variance of a latent of 50, as in the code.
- `variant="official-code"` trains with the code's divergence, whose prior is N(0, 1/2), and multiplies N(0, I) by
  `variance` itself, as the code does: a `variance` of v gives the latents v^2, which is 2 v^2 of the prior's variance
  (.5, 1 and 1.5 of the paper are then .5, 2 and 4.5 times it). With "corrected" the prior is N(0, I), and `variance` is
  that of the latents.
- Classes are the patterns of labels, a withheld label being a value like any other; for exclusive classes, the paper's.
- Held-out rows for early stopping are whole people among the private rows, not a split of their own. They decide when
  training ends, and so count as rows that the release was made of. People who alone show a class are learned from;
  if that holds out no person, the learned rows themselves are judged by.
- A stored set (`publish="set"`) has the exact class counts of the private rows, as in the code; the decoder
  (`publish="decoder"`, the paper's online form) draws classes by the published proportions, as does the set of the same
  size that is released beside it.
- Columns that are constant stay so; the code divides by zero.

`beta` weighs the divergence against squared errors of columns scaled to [0, 1]. For a linear decoder that is a
probabilistic PCA whose noise has variance beta / 2 a column: a direction of variance v comes out with v - beta / 2, and
is lost below that (Lucas et al. 2019, Don't blame the ELBO). The many columns of a foundation model vary together and
survive the paper's .1; uncorrelated columns (`eigenspace`, a variance near .03 each) do not, and rows become little
more than the prototype of their class. So the weight is by default the paper's .1 in units of the columns' variance:
their variances within classes, summed and shared out among the latent numbers (or the columns that vary, if these
are fewer). A direction with such a share loses a twentieth of it. If no class has two rows that differ there is no
such unit: every class would come out as its own row, and `beta` has to be given. The preset `paper` and
`variant="official-code"` have the paper's .1 as it stands. The unit is a number of the private rows, which is not
published.

Columns are scaled to [0, 1] by the least and greatest private number of each, which the decoder publishes and a stored
set approaches: two people's numbers a column are given away, whatever else is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.nets import cvae
from bench.nets.network_choices import CVAECourse, Formula
from bench.nets.training import start
from bench.owner.generator_state import LabelMix, check_names, check_tensors
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Secret, Stream
from bench.rows.grouping import hold_out
from bench.types import Dataset, Generator, Method, NotApplicable, Parameter, Release, Role, State
from bench.validation import at_least, between, one_of

PAPER_BETA = 0.1

ROWS = 8192
WEIGHTS = ("0.weight", "0.bias", "2.weight", "2.bias")
OTHERS = ("minimum", "extent", "deviation", "centres", "centre classes", "classes", "proportions")


@dataclass(frozen=True)
class CVAE(Method):
    """Vectors drawn from a conditional variational autoencoder of the private feature vectors.

    Args:
        variance: Of the latents that rows are drawn from; 1 is the prior's, less draws nearer to the class's prototype.
            Under `official-code` what standard normal latents are multiplied by.
        variant: The formulas of Kingma and Welling, or those of the authors' code.
        publish: The drawn set, with exact class counts; or the decoder, beside a set drawn from it.
        latent, hidden: Numbers of a latent, and width of the hidden layers.
        beta: Weight of the divergence beside the squared error. None takes .1 of a latent number's share of the
            columns' variance within classes, which has to be above 0; under `official-code` .1.
        epochs, batch, learning_rate, patience: As in `bench.nets.network_choices.CVAECourse`.
        held_out: Share of the private rows, whole people, by which training is stopped, above 0 and below 1; they count
            as rows that the release was made of. No one is held out if `patience` is None.
    """

    name: ClassVar[str] = "cvae"
    source: ClassVar[str] = "Di Salvo et al. 2024, conditional VAE on feature vectors, and the authors' code"
    needs_public: ClassVar[bool] = False
    claims: ClassVar[str] = "no formal guarantee; the least and greatest private number of every feature are given away"
    needs_labels: ClassVar[bool] = True
    uses_subjects: ClassVar[bool] = True
    flattens: ClassVar[bool] = False  # images, on the way in, and gives them their shape again
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"epochs": 50}, "paper": {"beta": PAPER_BETA}}

    variance: float = 1.0
    variant: Formula = "corrected"
    publish: Literal["set", "decoder"] = "set"
    latent: int = 50
    hidden: int = 256
    beta: float | None = None
    epochs: int = 1000
    batch: int = 512
    learning_rate: float = 1e-3
    patience: int | None = 15
    held_out: float = 0.1

    def __post_init__(self) -> None:
        self.course(PAPER_BETA if self.beta is None else self.beta)
        at_least(1, latent=self.latent, hidden=self.hidden)
        if not (self.variance >= 0 and math.isfinite(self.variance)):
            raise ValueError(f"variance must be at least 0 and finite, got {self.variance}")
        between(0, 1, held_out=self.held_out)
        one_of(("set", "decoder"), publish=self.publish)

    def course(self, beta: float) -> CVAECourse:
        """The settings of the network's training."""
        return CVAECourse(self.variant, beta, self.epochs, self.batch, self.learning_rate, self.patience)

    def fit(self, public: Dataset, seed: int) -> CVAEScheme:
        """Nothing to learn. Raises NotApplicable for images."""
        if not self.flattens:
            _require_vectors(public)
        return CVAEScheme(self)

    def load(self, state: State) -> CVAEScheme:
        """The scheme, which has no state."""
        return CVAEScheme(self)

    def weight(self, rows: torch.Tensor, number: torch.Tensor) -> float:
        """`beta` for scaled rows (n, d) of the classes (n,)."""
        if self.beta is not None:
            return self.beta
        if self.variant == "official-code":
            return PAPER_BETA
        share = _share(rows, number, self.latent)
        if not share:
            raise NotApplicable(
                f"{self.name} weighs its divergence by how rows of a class differ, and in no class do two of them: "
                f"every class would be released as it is; set beta (the paper's is {PAPER_BETA})"
            )
        return PAPER_BETA * share

    def centres(
        self, network: cvae.ConditionalVAE, rows: torch.Tensor, number: torch.Tensor, classes: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Centres (q, latent) of latents, here the origin; their classes (q,)."""
        return rows.new_zeros(classes, self.latent), torch.arange(classes, device=rows.device)


@dataclass(frozen=True)
class OverfittedCVAE(CVAE):
    """A conditional autoencoder that overfits, and releases its decoded training rows.

    It has no divergence and does not stop early. Attacks on membership are held against it: it must be caught. Without
    a divergence the latents of the rows are no N(0, I), and draws from that fall between them; so it draws from the
    latents of its training rows (the aggregate posterior), `variance` about each, and gives near copies of them. The
    decoder publishes those latents. A wider latent, smaller batches and a higher rate than the paper's let it learn its
    rows by heart in fewer epochs. Images are learned as vectors of their pixels, so that attacks on releases of images
    have this control too.
    """

    name: ClassVar[str] = "over-fitted-cvae"
    source: ClassVar[str] = "reference row: a conditional VAE with beta = 0, trained to the end on all rows"
    role: ClassVar[Role | None] = "remembers its rows"
    flattens: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"epochs": 40},
        "first-look": {"epochs": 80},
        "quick": {"epochs": 40},
        "standard": {"epochs": 20},
        "paper": {"epochs": 20},
    }

    variance: float = 0.0
    latent: int = 128
    beta: float | None = 0.0
    epochs: int = 100
    batch: int = 32
    learning_rate: float = 2e-3
    patience: int | None = None

    def centres(
        self, network: cvae.ConditionalVAE, rows: torch.Tensor, number: torch.Tensor, classes: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The latent means (n, latent) of rows (n, d), their classes (n,)."""
        return network.encode(rows, torch.nn.functional.one_hot(number, classes).to(rows.dtype))[0], number


@dataclass(frozen=True)
class CVAEKey(SecretKey):
    """A secret: the source of start, held-out people, batches and draws."""

    scheme: CVAEScheme

    def release(self, private: Dataset) -> Release:
        """As many synthetic rows (n, d) as private ones, with labels, shuffled.

        Raises:
            NotApplicable: Images; a single row; all rows are one person's, so none can be held out; or no class
                has two rows that differ, and `beta` is None.
            ValueError: Features that are not finite.
            FloatingPointError: Training diverged.
        """
        shape = private.samples.shape[1:]
        if self.scheme.method.flattens and self.scheme.method.publish == "set":
            private = replace(private, samples=private.samples.flatten(1))
        decoder, number = self.train(private)
        if self.scheme.method.publish == "decoder":
            drawn = decoder.draw(len(private), self.secret.derive("release"))
            return Release(drawn.samples, drawn.labels, None, generator=decoder)
        order = self.secret.stream("order").permutation(len(number)).to(number.device)
        drawn = decoder.rows(number[order], self.secret.derive("release"))
        return replace(drawn, samples=drawn.samples.reshape(-1, *shape))

    def train(self, private: Dataset) -> tuple[Decoder, torch.Tensor]:
        """The decoder, and the private rows' classes (n,) int64; errors as `release`."""
        method, samples = self.scheme.method, private.samples
        _require_vectors(private)
        if len(samples) < 2:
            raise NotApplicable(f"{method.name} needs at least 2 rows to learn from, got {len(samples)}")
        bad = int((~samples.isfinite()).any(dim=1).sum())
        if bad:
            raise ValueError(f"features must be finite: {bad} of {len(samples)} rows of {private.name} are not")
        mix, number = LabelMix.of(private.labels, samples)
        learned, judged = self.parts(private, number)
        minimum, maximum = samples[learned].aminmax(dim=0)
        extent = maximum - minimum
        rows = (samples - minimum) / torch.where(extent > 0, extent, 1)
        d, c = samples.shape[1], len(mix.classes)
        with torch.device("meta"):
            network = cvae.ConditionalVAE(d, c, hidden=method.hidden, latent=method.latent)
        start(network.to_empty(device=samples.device), self.secret.stream("network"))
        condition = torch.nn.functional.one_hot(number, c).to(rows.dtype)
        cvae.train_cvae(
            network, rows[learned], condition[learned], method.course(method.weight(rows[learned], number[learned])),
            judged=(rows[judged], condition[judged]), secret=self.secret.derive("training"),
        )  # fmt: skip
        centres = method.centres(network, rows[learned], number[learned], c)
        official = method.variant == "official-code"
        deviation = method.variance if official else math.sqrt(method.variance)
        return Decoder(network.decoder, mix, minimum, extent, deviation, *centres), number

    def parts(self, private: Dataset, number: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Indices (int64) of rows of each class to learn; others' to judge."""
        rows = torch.arange(len(private), device=number.device)
        if self.scheme.method.patience is None:
            return rows, rows
        learned, held = hold_out(private, self.scheme.method.held_out, self.secret.stream("held out"))
        people = rows if private.subjects is None else private.subjects
        lacking = held[~torch.isin(number[held], number[learned])]
        back = torch.isin(people[held], people[lacking])
        learned, held = torch.cat((learned, held[back])), held[~back]
        return learned, held if len(held) else learned


@dataclass(frozen=True)
class CVAEScheme(SecretScheme):
    """The parameters: there is nothing else that all owners share."""

    key = CVAEKey
    purpose = "cvae"

    method: CVAE

    def load_generator(self, state: State) -> Decoder:
        """The decoder that `Decoder.state` described. Raises ValueError for any other."""
        return Decoder.load(state, hidden=self.method.hidden, latent=self.method.latent)


def _share(rows: torch.Tensor, number: torch.Tensor, latent: int) -> float:
    """The columns' variances within classes, summed, for each latent number needed."""
    exact = rows.double()
    _, place, size = torch.unique(number, return_inverse=True, return_counts=True)
    means = exact.new_zeros(len(size), exact.shape[1]).index_add_(0, place, exact) / size[:, None]
    variances = (exact - means[place]).square().mean(dim=0)
    return float(variances.sum()) / max(1, min(latent, int((variances > 0).sum())))


def _require_vectors(data: Dataset) -> None:
    if data.samples.ndim != 2:
        raise NotApplicable(
            f"cvae learns from feature vectors, and {data.name} is images: choose --features (pixels, eigenspace, ...)"
        )


@dataclass(frozen=True, eq=False)
class Decoder(Generator):
    """Latents from N(centre, deviation^2 I), decoded by class, stretched to the extents.

    Args:
        network: Latents and one-hot classes (m, latent + c) to rows (m, d) in (0, 1), without gradients.
        mix: The c classes and their proportions.
        minimum, extent: (d,) of the columns of the rows that it learned from. If the extent is 0, rows have the
            minimum exactly.
        deviation: Of latents about their centre.
        centres: (q, latent) float32; rows of a class take its centres in turn, in random order.
        centre_classes: (q,) int64, the class of each centre.
    """

    network: torch.nn.Sequential
    mix: LabelMix
    minimum: torch.Tensor
    extent: torch.Tensor
    deviation: float
    centres: torch.Tensor
    centre_classes: torch.Tensor

    @classmethod
    def load(cls, state: State, *, hidden: int, latent: int) -> Decoder:
        """The decoder that `state` described, if its layers have those widths.

        Raises:
            ValueError: Names, shapes, kinds or numbers that no decoder of those widths has; the text says which.
        """
        check_names(state, {*OTHERS, *(f"decoder.{name}" for name in WEIGHTS)})
        mix = LabelMix.load(state)
        c, d, q = len(mix.classes), state["minimum"].numel(), state["centre classes"].numel()
        shapes = zip(WEIGHTS, ((hidden, latent + c), (hidden,), (d, hidden), (d,)), strict=True)
        check_tensors(state, {f"decoder.{name}": shape for name, shape in shapes})
        check_tensors(state, {"minimum": (d,), "extent": (d,), "centres": (q, latent)})
        check_tensors(state, {"deviation": ()}, dtype=torch.float64)
        check_tensors(state, {"centre classes": (q,)}, dtype=torch.int64)
        if torch.unique(state["centre classes"]).tolist() != list(range(c)):
            raise ValueError(f"centre classes must be the numbers 0 to {c - 1}, each at least once")
        for name in ("extent", "deviation"):
            if bool((state[name] < 0).any()):
                raise ValueError(f"{name} must be at least 0, got {float(state[name].min())}")
        with torch.device("meta"):
            network = cvae.decoder(d, c, hidden=hidden, latent=latent)
        network.load_state_dict({name: state[f"decoder.{name}"] for name in WEIGHTS}, assign=True)
        return cls(
            network.requires_grad_(False), mix, state["minimum"], state["extent"], float(state["deviation"]),
            state["centres"], state["centre classes"],
        )  # fmt: skip

    def state(self) -> State:
        """All of it, as tensors."""
        return {
            **{f"decoder.{name}": weight for name, weight in self.network.state_dict().items()},
            **self.mix.state(),
            "minimum": self.minimum,
            "extent": self.extent,
            "deviation": torch.tensor(self.deviation, dtype=torch.float64, device=self.minimum.device),
            "centres": self.centres,
            "centre classes": self.centre_classes,
        }

    def sample(self, count: int, seed: int) -> Release:
        """Rows (count, d), classes by proportion. Raises ValueError for count below 1."""
        return self.draw(count, Secret.of_seed(seed))

    def draw(self, count: int, secret: Secret) -> Release:
        """As `sample`, with rows that only the secret's holder can foretell."""
        return self.rows(self.mix.draw(count, secret.stream("classes")), secret)

    def rows(self, number: torch.Tensor, secret: Secret) -> Release:
        """Fresh rows (m, d) of classes (m,) int64 on the decoder's device."""
        device, latent, c = self.minimum.device, self.centres.shape[1], len(self.mix.classes)
        noise = secret.stream("latents").normal(len(number), latent).to(device, torch.float32)
        latents = self.centres[self._turns(number, secret.stream("centres"))] + self.deviation * noise
        parts = zip(torch.split(latents, ROWS), torch.split(number, ROWS), strict=True)
        rows = torch.cat(
            [self.network(torch.cat((part, torch.nn.functional.one_hot(of, c)), dim=1)) for part, of in parts]
        )
        return Release(self.minimum + self.extent * rows, self.mix.labels(number), None)

    def _turns(self, number: torch.Tensor, stream: Stream) -> torch.Tensor:
        """The centre (m,) of each row, in random turns within its class."""
        chosen = torch.empty_like(number)
        for label in torch.unique(number):
            own, rows = ((of == label).nonzero()[:, 0] for of in (self.centre_classes, number))
            shuffled = own[stream.permutation(len(own)).to(own.device)]
            chosen[rows] = shuffled[torch.arange(len(rows), device=rows.device) % len(own)]
        return chosen
