"""Likelihood: stated noise tells the raw row that best explains released rows.

Source: the Bayes-optimal attack on a mechanism whose noise is public (Eve, the attacker, reads it from the scheme); for
Laplace noise the log density is -sum |z~ - z| / b, for elements that stop at a bound the mass of the tail beyond it.
Every candidate is as likely as any other beforehand. The score is the log odds of the posterior, normalised over the
candidates for each released row (`bench.pairs.score_matrices`): raw densities rank rows well within a column, and badly
across columns.

If the noisy code cannot be read off the release (`Mechanism.exact` is False), or the scheme adds no noise that it
states, the density is measured instead: Eve releases the candidates under keys of her own and fits a linear Gaussian
channel between descriptions of raw and of released rows (`bench.eve.channel`), judged on keys it was not fitted to.
A released row is described by its principal components, a raw row by its code if the scheme has one, and by its
principal components if not. A record says which density ran.

- All candidates are located together, for schemes in which a row's code depends on the others.
- Released labels reach the scheme under the names of the public findings, unknown where no released label has that
  name.
- Labels are outside every claim and released by all methods alike, so that the scores show what the noise leaves. With
  labels=true, if samples depend on labels (so that Eve is given them) and a release of her own shows that they are
  released as they are, a candidate with other labels than the released row's is ruled out: its density falls by
  `OTHER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from bench.eve.channel import FEWEST, Channel, Simulated, axes, measure
from bench.eve.outliers import tamed
from bench.eve.own_releases import own_release
from bench.pair_distances import pair_distances
from bench.pairs.score_matrices import PosteriorScores
from bench.seeds import derive
from bench.types import Attack, Attacker, Dataset, Mechanism, Parameter, Release, View
from bench.validation import at_least

OTHER = 1e6
"""Nats that a candidate with other labels is less likely by: more than noise makes up for, and still finite."""


@dataclass(frozen=True)
class Likelihood(Attack):
    """Posterior odds of candidates under the scheme's noise density, stated or measured.

    Args:
        keys: Releases that Eve simulates if the density has to be measured.
        rows: Candidates in each of them, at most.
        axes: Principal components that describe a row, at most.
        labels: Rule out candidates by their labels if the view has them and the density is stated.
    """

    name: ClassVar[str] = "likelihood"
    source: ClassVar[str] = "Bayes' rule on the mechanism's own noise density"
    makes_releases = True
    knowledge: ClassVar[str] = (
        "the raw rows, the release and the scheme with its noise density; no key. Scores are log odds of the posterior "
        "of the candidates, given each released row"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"keys": 8},
        "standard": {"keys": 32},
        "paper": {"keys": 32},
    }

    keys: int = 16
    rows: int = 1024
    axes: int = 256
    labels: bool = False

    def __post_init__(self) -> None:
        at_least(FEWEST, keys=self.keys)
        at_least(2, rows=self.rows)
        at_least(1, axes=self.axes)

    def fit(self, view: View, seed: int) -> StatedAttacker | MeasuredAttacker:
        """Locate candidates, or measure the density. Raises NotApplicable without links."""
        mechanism = view.scheme.mechanism()
        if mechanism is not None and mechanism.exact and bool((mechanism.scale > 0).any()):
            names = view.candidates.findings, view.public.findings
            agree = self.labels and self._keeps_labels(view, derive(seed, "labels"))
            labels = view.candidates.labels if agree else None
            return StatedAttacker(mechanism, mechanism.locate(view.candidates), *names, labels)
        return self._measure(view, mechanism, seed)

    def _keeps_labels(self, view: View, seed: int) -> bool:
        if view.candidates.labels is None:
            return False
        rows, release = self._simulate(view, seed)
        return release.labels is not None and torch.equal(_known(rows.labels), _known(release.labels))

    def _measure(self, view: View, mechanism: Mechanism | None, seed: int) -> MeasuredAttacker:
        simulated = [self._simulate(view, derive(seed, "simulated", number)) for number in range(self.keys)]
        rows, release = simulated[0]
        ways = Description(
            mechanism, axes(_pixels(rows.samples), self.axes), axes(_pixels(tamed(release.samples)), self.axes)
        )
        channel = measure([Simulated(ways.of_raw(rows), ways.of_released(release)) for rows, release in simulated])
        expected = (ways.of_raw(view.candidates) @ channel.a)[:]  # of rows that lie on disk: now, not for every block
        return MeasuredAttacker(channel, expected, ways, self.keys)

    def _simulate(self, view: View, seed: int) -> tuple[Dataset, Release]:
        return own_release(view, self.rows, seed, "the likelihood attack")


@dataclass(frozen=True, eq=False)
class Description:
    """Numbers that describe a row: components along axes (d, q), or codes.

    They are few, and `[:]` makes an ordinary tensor of those of rows that are read where they are used.
    """

    mechanism: Mechanism | None
    raw: torch.Tensor
    released: torch.Tensor

    def of_raw(self, data: Dataset) -> torch.Tensor:
        """(n, q) float64, centred over the set."""
        numbers = _pixels(data.samples) @ self.raw if self.mechanism is None else self.mechanism.locate(data).double()
        return (numbers - numbers.mean(dim=0))[:]

    def of_released(self, release: Release) -> torch.Tensor:
        """(m, r) float64, centred over the set."""
        numbers = _pixels(tamed(release.samples)) @ self.released
        return (numbers - numbers.mean(dim=0))[:]


def _known(labels: torch.Tensor | None) -> torch.Tensor:
    """Labels (n, k), unknown as one more value; without labels (0, 0)."""
    return torch.zeros(0, 0) if labels is None else labels.nan_to_num(-1)


def _pixels(samples: torch.Tensor) -> torch.Tensor:
    return samples.flatten(1).double()


@dataclass(frozen=True, eq=False)
class StatedAttacker(Attacker):
    """The mechanism, candidates' codes (n, d), names of findings, and candidates' labels.

    Labels (n, k) are those that released labels have to agree with; None if they need not.
    """

    mechanism: Mechanism
    located: torch.Tensor
    findings: tuple[str, ...]
    public: tuple[str, ...]
    labels: torch.Tensor | None = None

    def score(self, sealed: Release) -> PosteriorScores:
        """Log odds under the stated density."""
        observed = self.mechanism.observe(self._named(sealed))
        raw, released = _known(self.labels), _known(sealed.labels)

        def density(rows: slice, cols: slice) -> torch.Tensor:
            log_density = self.mechanism.log_density(self.located[rows], observed[cols])
            if self.labels is None or sealed.labels is None:
                return log_density
            return log_density - OTHER * (raw[rows, None] != released[cols]).any(dim=2)

        return PosteriorScores(density, (len(self.located), len(observed)))

    def _named(self, sealed: Release) -> Release:
        if sealed.labels is None or self.findings == self.public or sealed.labels.shape[1] != len(self.findings):
            return sealed
        labels = sealed.labels.new_full((len(sealed), len(self.public)), torch.nan)
        for column, name in enumerate(self.public):
            if name in self.findings:
                labels[:, column] = sealed.labels[:, self.findings.index(name)]
        return replace(sealed, labels=labels)

    def notes(self) -> Mapping[str, int | float | str]:
        """A note that the density is the scheme's own."""
        return {"density": "stated"} | ({} if self.labels is None else {"labels": "must agree"})


@dataclass(frozen=True, eq=False)
class MeasuredAttacker(Attacker):
    """The channel, its expectations (n, width), the description of rows, simulated keys."""

    channel: Channel
    expected: torch.Tensor
    ways: Description
    keys: int

    def score(self, sealed: Release) -> PosteriorScores:
        """Log odds under the measured density."""
        outputs = (self.ways.of_released(sealed) @ self.channel.b)[:]
        return PosteriorScores(
            lambda rows, cols: -pair_distances(self.expected[rows], outputs[cols], 2),
            (len(self.expected), len(outputs)),
        )

    def notes(self) -> Mapping[str, int | float | str]:
        """The measurement of the density."""
        return {
            "density": "measured",
            "simulated keys": self.keys,
            "held-out loss": self.channel.loss,
            "held-out loss at chance": self.channel.chance,
            "ridge": self.channel.ridge,
            "shrinkage": self.channel.shrinkage,
            "factor": self.channel.factor,
        }
