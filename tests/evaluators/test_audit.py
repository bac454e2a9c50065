from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import torch
from made.cells import records_of
from made.leaky_mechanisms import Leaky, Mistake, Unit
from made.toy_methods import toy_seed
from scipy.optimize import brentq
from scipy.stats import binom
from torch import Tensor

from bench.audit.distinguishing_game import CONFIDENCE, Played, audit
from bench.audit.game_plays import ONE_BY_ONE
from bench.cli import main
from bench.conformance.outcome import sample_data
from bench.contract.mechanism import Mechanism
from bench.evaluators.audit import noise_of
from bench.evidence import AuditEvidence
from bench.plugins.registry import build
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.results.records import proved
from bench.results.results import Results
from bench.seeds import generator
from bench.statistics.epsilon_bounds import gaussian_epsilon
from bench.types import Dataset, Key, Method, PrivacyClaim, Release, Scheme, State, paired
from metrics.empirical_epsilon import EmpiricalEpsilon

Locate = Callable[[Tensor], Tensor]
RARE = 0.001


def table(d: int, n: int = 12) -> Dataset:
    samples = torch.rand(n, d, generator=generator(1))
    samples[0], samples[1] = 0, 1
    return Dataset("table", samples, None, None, (), False, True)


@dataclass(frozen=True, eq=False)
class Noisy(Scheme):
    """Laplace noise of the given scale on a code; `seeds` remembers which keys were drawn."""

    locate: Locate
    scale: float
    d: int
    fresh: bool = True
    known: bool = True
    rowwise: bool = True
    pairs: Sequence[tuple[Dataset, Dataset]] = ()
    gaussian: bool = False
    seeds: list[int] = field(default_factory=list)

    def sample_key(self, secret: Secret) -> Key:
        self.seeds.append(toy_seed(secret))
        return NoisyKey(self, toy_seed(secret))

    def load_key(self, state: State) -> Key:
        return NoisyKey(self, int(state["seed"]))

    def mechanism(self) -> Mechanism | None:
        return NoisyMechanism(self) if self.known else None


@dataclass(frozen=True, eq=False)
class NoisyKey(Key):
    scheme: Noisy
    seed: int

    def release(self, private: Dataset) -> Release:
        codes = self.scheme.locate(private.samples.flatten(1))
        shape = codes.shape if self.scheme.fresh else (1, codes.shape[1])
        stream = Secret.of_seed(self.seed).bound_to(private.samples).stream()
        # In float64: float32 noise has more digits below 1/2 than the sum of 1 and noise, which the audit finds.
        if self.scheme.gaussian:
            noise = stream.normal(*shape).double()
        else:
            noise = stream.exponential(*shape).double() - stream.exponential(*shape).double()
        return paired((codes.double() + self.scheme.scale * noise).float(), private.labels)

    def state(self) -> State:
        return {"seed": torch.tensor(self.seed)}


@dataclass(frozen=True, eq=False)
class NoisyMechanism(Mechanism):
    scheme: Noisy

    @property
    def rowwise(self) -> bool:  # type: ignore[override]
        return self.scheme.rowwise

    @property
    def scale(self) -> Tensor:
        return torch.full((self.scheme.d,), max(self.scheme.scale, 1e-3), dtype=torch.float64)

    def locate(self, data: Dataset) -> Tensor:
        return self.scheme.locate(data.samples.flatten(1)).double()

    def observe(self, release: Release) -> Tensor:
        return release.samples.double()

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        return self.scheme.pairs


def inside(samples: Tensor) -> Tensor:
    return samples.clamp(0, 1)


def claim(epsilon: float, delta: float = 0.0, unit: str = "record") -> PrivacyClaim:
    return PrivacyClaim(unit, epsilon, delta, "none", "a test")  # type: ignore[arg-type]


def shown(
    scheme: Scheme, epsilon: float, public: Dataset, *, trials: int = 400, seed: int = 0, delta: float = 0.0
) -> float:
    stated = claim(epsilon, delta)
    return bound(stated, audit(scheme, stated, public, trials=trials, secret=Secret.of_seed(seed)))


def bound(stated: PrivacyClaim, played: Played) -> float:
    return EmpiricalEpsilon()(AuditEvidence(stated, played.calls, CONFIDENCE, one_run=played.one_run)).value


@pytest.mark.parametrize("known", [True, False])
def test_half_the_noise_is_caught(known: bool) -> None:
    assert shown(Noisy(inside, 0.5, 1, known=known), 1.0, table(1)) > 1.0


def test_a_correct_mechanism_is_flagged_no_more_often_than_its_confidence_allows() -> None:
    repeats, scheme, public = 16, Noisy(inside, 1.0, 1), table(1)
    flagged = sum(shown(scheme, 1.0, public, trials=120, seed=seed) > 1.0 for seed in range(repeats))
    assert flagged <= binom.ppf(1 - RARE, repeats, 0.05)


def test_a_bound_close_to_the_truth_is_shown() -> None:
    assert 0.8 < shown(Noisy(inside, 1.0, 1), 1.0, table(1), trials=8_000) < 1.0


@pytest.mark.parametrize(("noise", "refuted"), [(1.0, False), (0.5, True)])
def test_gaussian_noise_is_bounded_by_what_it_claims_to_be(noise: float, refuted: bool) -> None:
    mu = brentq(lambda mu: gaussian_epsilon(mu, 1e-5) - 1, 0.01, 1.0)
    stated = PrivacyClaim("record", 1.0, 1e-5, "none", "a test", family="Gaussian")
    scheme = Noisy(inside, noise / mu, 1, known=False, gaussian=True)
    played = audit(scheme, stated, table(1), trials=4000, secret=Secret.of_seed(0))
    assert played.one_run
    found = EmpiricalEpsilon()(AuditEvidence(stated, played.calls, CONFIDENCE, one_run=True)).value
    assert found > 0.33
    assert (found > 1) == refuted


def of_norm(size: float, order: float) -> Locate:
    def locate(samples: Tensor) -> Tensor:
        return size * samples / torch.linalg.vector_norm(samples, ord=order, dim=1, keepdim=True).clamp_min(1e-12)

    return locate


def opposite(first: Tensor) -> list[tuple[Dataset, Dataset]]:
    here, there = (Dataset("", side[None], None, None, (), False, True) for side in (first, -first))
    return [(here, there)]


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_rows_scaled_to_an_l1_norm_differ_by_twice_that_norm(epsilon: float) -> None:
    # CADP as its paper writes it: s z / |z|_1 + Lap(s / epsilon). Twice that noise is enough.
    d, size = 8, epsilon / 2
    pairs = opposite(torch.eye(d)[0])
    paper = Noisy(of_norm(size, 1), size / epsilon, d, pairs=pairs)
    assert epsilon < shown(paper, epsilon, table(d), trials=2000) <= 2 * epsilon
    corrected = Noisy(of_norm(size, 1), 2 * size / epsilon, d, pairs=pairs)
    assert shown(corrected, epsilon, table(d), trials=2000) <= epsilon


def test_a_norm_over_the_batch_bounds_no_row() -> None:
    # CADP's public code takes the matrix 1-norm of the batch: the largest column sum, for one row its largest number.
    d, epsilon = 8, 1.0
    official = Noisy(of_norm(epsilon / 2, math.inf), 0.5, d, rowwise=False, pairs=opposite(torch.ones(d)))
    played = audit(official, claim(epsilon), table(d), trials=1000, secret=Secret.of_seed(0))
    assert bound(claim(epsilon), played) > 2 * epsilon


@pytest.fixture(scope="module")
def learned() -> State:
    return cadp("paper").fit(sample_data("table"), 0).state()


def cadp(variant: str) -> Method:
    return cast(Method, build("methods", parse(f"cadp[epsilon=1,variant={variant}]"), "smoke"))


@pytest.mark.parametrize(
    ("variant", "trials", "violated"), [("paper", 1000, True), ("corrected", 1000, False), ("official-code", 120, True)]
)
def test_cadp_keeps_its_claim_only_when_corrected(variant: str, trials: int, violated: bool, learned: State) -> None:
    scheme = cadp(variant).load(learned)
    stated = scheme.claim()
    assert stated is not None
    found = bound(stated, audit(scheme, stated, sample_data("table"), trials=trials, secret=Secret.of_seed(0)))
    assert (found > stated.epsilon) == violated
    assert stated.derived is not None
    assert found <= stated.derived


@pytest.mark.parametrize("known", [True, False])
def test_a_deterministic_method_is_refuted_up_to_the_ceiling(known: bool) -> None:
    played = audit(Noisy(inside, 0.0, 3, known=known), claim(1.0), table(3), trials=200, secret=Secret.of_seed(0))
    score = EmpiricalEpsilon()(AuditEvidence(claim(1.0), played.calls, CONFIDENCE))
    assert score.value == score.parts["ceiling"].value > 3


def test_noise_that_rows_share_is_no_noise() -> None:
    assert shown(Noisy(inside, 1.0, 2, fresh=False), 2.0, table(2), trials=1000) > 2.0


@pytest.mark.parametrize(("rowwise", "delta"), [(False, 0.0), (True, 1e-6)])
def test_releases_under_keys_of_their_own_are_limited(rowwise: bool, delta: float) -> None:
    scheme = Noisy(inside, 1.0, 1, rowwise=rowwise)
    played = audit(scheme, claim(1.0, delta), table(1), trials=10 * ONE_BY_ONE, secret=Secret.of_seed(0))
    assert played.calls.trials <= ONE_BY_ONE


def test_what_is_learned_from_noise_shows_nothing() -> None:
    # A dozen releases of 200 numbers each are always told apart by those that a discriminant was learned from.
    d, repeats = 200, 12
    scheme = Noisy(lambda samples: 0 * samples, 1.0, d)
    flagged = sum(shown(scheme, 0.01, table(d), trials=120, seed=seed) > 0.01 for seed in range(repeats))
    assert flagged <= binom.ppf(1 - RARE, repeats, 0.05)


def test_no_key_serves_two_purposes() -> None:
    scheme = Noisy(inside, 0.5, 2)
    audit(scheme, claim(1.0), table(2), trials=400, secret=Secret.of_seed(3))
    assert len(set(scheme.seeds)) == len(scheme.seeds)


@pytest.mark.parametrize(("delta", "refuted"), [(0.0, True), (0.4, False)])
def test_delta_forgives_releases_that_give_all_away(delta: float, refuted: bool) -> None:
    scheme = Telling(0.3)
    assert (shown(scheme, 0.2, table(1), delta=delta) > 0.2) == refuted


@dataclass(frozen=True)
class Telling(Scheme):
    """Tells the input with the given probability, and nothing otherwise."""

    chance: float

    def sample_key(self, secret: Secret) -> Key:
        return TellingKey(self.chance, toy_seed(secret))

    def load_key(self, state: State) -> Key:
        return TellingKey(self.chance, int(state["seed"]))


@dataclass(frozen=True)
class TellingKey(Key):
    chance: float
    seed: int

    def release(self, private: Dataset) -> Release:
        tells = torch.rand(len(private), 1, generator=generator(self.seed)) < self.chance
        return paired(torch.where(tells, private.samples, 0.5), private.labels)

    def state(self) -> State:
        return {"seed": torch.tensor(self.seed)}


def test_an_infinite_claim_is_audited_too() -> None:
    assert shown(Noisy(inside, 0.1, 1), math.inf, table(1)) > 1


def test_the_same_seed_gives_the_same_audit() -> None:
    first, again = (
        audit(Noisy(inside, 1.0, 2), claim(1.0), table(2), trials=200, secret=Secret.of_seed(5)) for _ in range(2)
    )
    assert first == again


# Each has an infinite epsilon, and claims 1.
MISTAKES: list[tuple[Mistake, Unit, int]] = [
    ("raw row", "image", 4000), ("own range", "image", 1000), ("one noise for all rows", "image", 1000),
    ("same noise again", "image", 1000), ("corner pixel", "pixel", 1000),
    ("coarse grid", "pixel", 1000), ("labels", "image", 400),
    ("cut off", "image", 1000), ("fine grid", "pixel", 1000), ("raw near mid-grey", "image", 1000),
    ("raw near mid-grey", "pixel", 1000), ("low bits", "image", 1000), ("whole numbers", "pixel", 1000),
    ("raw in small releases", "image", 1000), ("one raw row of many", "image", 4000), ("few seeds", "image", 4000),
    ("few seeds a key", "image", 4000), ("noise of a row's content", "image", 1000),
    ("raw in a narrow band", "image", 2000), ("raw in a narrow band", "pixel", 2000),
    ("raw by one pixel", "image", 2000), ("raw in releases of 37", "image", 1000),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "unit", "trials"), MISTAKES)
def test_a_mistake_that_leaves_the_noise_its_size_is_found(mistake: Mistake, unit: Unit, trials: int) -> None:
    labels = torch.ones(40, 1) if mistake == "labels" else None
    public = Dataset("", torch.rand(40, 1, 8, 8, generator=generator(2)), labels, None, ("a",), False, True)
    scheme = Leaky(mistake, unit).fit(public, 0)
    stated = scheme.claim()
    assert bound(stated, audit(scheme, stated, public, trials=trials, secret=Secret.of_seed(0))) > 1.0


@pytest.mark.parametrize("seed", [3, 7])
def test_rare_raw_rows_are_counted_in_a_game_with_many_releases(seed: int) -> None:
    # Alone, a row shows as often raw as in a set, but in a quarter of the releases.
    public = Dataset("", torch.rand(40, 1, 8, 8, generator=generator(2)), None, None, (), False, True)
    scheme = Leaky("raw row", "image").fit(public, 0)
    stated = scheme.claim()
    played = audit(scheme, stated, public, trials=4000, secret=Secret.of_seed(seed))
    assert played.calls.trials > ONE_BY_ONE
    assert bound(stated, played) > 1.0


@pytest.mark.parametrize("unit", ["image", "pixel"])
def test_the_same_mechanisms_without_a_mistake_keep_their_claim(unit: Unit) -> None:
    public = Dataset("", torch.rand(40, 1, 8, 8, generator=generator(2)), None, None, (), False, True)
    scheme = Leaky("none", unit).fit(public, 0)
    stated = scheme.claim()
    found = [bound(stated, audit(scheme, stated, public, trials=300, secret=Secret.of_seed(seed))) for seed in range(6)]
    assert sum(one > 1.0 for one in found) <= binom.ppf(1 - RARE, len(found), 0.05)
    assert (max(found) > 0.7) == (unit == "pixel")  # all pixels of an image make some thousand coins


def test_a_mechanism_that_is_wrong_in_what_it_says_fails_its_noise_checks() -> None:
    public = table(40, n=64)
    right, wrong = Noisy(inside, 1.0, 40), Noisy(inside, 1.0, 40, fresh=False)
    assert noise_of(right, public)[0] == "holds"
    assert noise_of(wrong, public)[0] == "fails"
    assert noise_of(Noisy(inside, 1.0, 40, known=False), public) == ("unread", "it states no noise")


PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar

from bench.randomness import Secret
from bench.types import Key, Method, PrivacyClaim, Scheme, paired

@dataclass(frozen=True)
class Claims(Method):
    """Says that it hides a row, and adds little noise."""
    name: ClassVar[str] = "claims"
    source: ClassVar[str] = "a test"
    epsilon: float = 1.0
    def fit(self, public, seed):
        return ClaimsScheme(self.epsilon)
    def load(self, state):
        return ClaimsScheme(self.epsilon)

@dataclass(frozen=True)
class ClaimsScheme(Scheme):
    epsilon: float
    def sample_key(self, secret):
        return ClaimsKey(secret)
    def load_key(self, state):
        return ClaimsKey(0)
    def claim(self):
        return PrivacyClaim("image", self.epsilon, 0.0, "none", "a test")

@dataclass(frozen=True)
class ClaimsKey(Key):
    secret: Secret
    def release(self, private):
        stream, shape = self.secret.stream(), private.samples.shape
        noise = (stream.exponential(*shape) - stream.exponential(*shape)).float()
        return paired(private.samples + 0.1 * noise, private.labels)
    def state(self):
        return {}
'''


def test_the_command_line_finds_a_claim_violated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    rest = ["--dataset", "digits", "--preset", "smoke", "--no-site", "--jobs", "1", "--results", str(tmp_path / "r")]
    rest += ["--method", f"{tmp_path}/mine.py:Claims", "--method", "identity"]
    # A run with that metric alone is the same work.
    assert main(["run", "--metric", "empirical-epsilon", "--attack", "none", *rest]) == 0
    capsys.readouterr()
    assert main(["audit", "--confidence", "0.999", *rest]) == 1
    out = capsys.readouterr().out
    assert "0 computed, 2 already there" in out
    assert "violated" in out
    assert "99.9 %" in out
    found = {record.method.name: record for record in records_of(tmp_path / "r")}
    assert found["claims"].kind == found["identity"].kind == "audit"
    assert found["claims"].details["noise"] == "unread"
    assert "all dark, all bright, in sets" in str(found["claims"].details["games"])
    assert found["claims"].scores["empirical-epsilon"].value > 1.0
    assert "no formal claim" in (found["identity"].reason or "")
    fewer = found["claims"].model_copy(update={"details": {**found["claims"].details, "hits": 0}})
    Results(tmp_path / "r").keep(proved(fewer), {})
    capsys.readouterr()
    assert main(["audit", *rest]) == 0
    assert "counts do not give its figure" in re.sub(r"[\s│]+", " ", capsys.readouterr().out)
