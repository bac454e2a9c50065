"""Audits of every built-in mechanism that claims something, and of planted faults: prints a table.

`python tests/campaigns/audit_of_mechanisms.py` audits each case once: the claim, the epsilon shown, what the best test
was expected to show, and the most that the game could show. With `--repeats 200 --trials 300 scalar pixel`, it counts
how often correct mechanisms are refuted. Of audits at 95 % confidence no more than 5 % may be; the share stands with
its Clopper-Pearson interval.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from made.leaky_mechanisms import Leaky, Mistake, Unit
from made.private_faults import TRAINING_FAULTS, TrainingFault, faulty, stated
from made.sampled_steps import WIDTH, SampledSteps

from bench.audit.distinguishing_game import CONFIDENCE, audit
from bench.audit.gradient_canaries import GradientCanaries
from bench.conformance.outcome import sample_data
from bench.evidence import AuditEvidence
from bench.plugins.registry import build
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.statistics.confidence_intervals import clopper_pearson
from bench.types import Dataset, Method, PrivacyClaim, Scheme, Score
from metrics.empirical_epsilon import EmpiricalEpsilon


@dataclass(frozen=True, eq=False)
class Case:
    """What is audited."""

    scheme: Scheme
    claim: PrivacyClaim
    public: Dataset
    fault: TrainingFault | None = None


def images(side: int) -> Dataset:
    return Dataset("", torch.rand(64, 1, side, side, generator=generator(2)), None, None, (), False, True)


def made(mistake: Mistake, unit: Unit, side: int) -> Case:
    scheme = Leaky(mistake, unit).fit(images(side), 0)
    return Case(scheme, scheme.claim(), images(side))


def built_in(spec: str, kind: str) -> Case:
    public = sample_data("table" if kind == "table" else "images", rows=96)
    method = cast(Method, build("methods", parse(spec), "smoke"))
    scheme = method.load(dict(method.fit(public, derive(0, "fit")).state()))
    claim = scheme.claim()
    assert claim is not None
    return Case(scheme, claim, public)


def trained(epsilon: float, fault: TrainingFault | None) -> Case:
    """`dp-sgd` on small images of two classes."""
    labels = (torch.arange(64) % 2).float()[:, None]
    public = Dataset("", torch.rand(64, 1, 8, 8, generator=generator(2)), labels, None, ("a",), False, True)
    method = cast(Method, build("methods", parse(f"dp-sgd[epsilon={epsilon:g}]"), "smoke"))
    scheme = stated(method.load(dict(method.fit(public, derive(0, "fit")).state())), fault)
    claim = scheme.claim()
    assert claim is not None
    return Case(scheme, claim, public, fault)


def sampled(noise: float, replaced: bool = False) -> Case:
    """Steps of a private training alone, at the edge of their claim."""
    scheme = SampledSteps(noise, replaced)
    return Case(scheme, scheme.claim(), images(8))


CASES: dict[str, Callable[[], Case]] = {
    "scalar": lambda: made("none", "image", 1),
    "image": lambda: made("none", "image", 8),
    "pixel": lambda: made("none", "pixel", 8),
    "dp-simple": lambda: built_in("dp-simple[epsilon=1]", "images"),
    "dp-simple, table": lambda: built_in("dp-simple[epsilon=1]", "table"),
    "dp-image": lambda: built_in("dp-image[epsilon=1,clip=3]", "images"),
    "mosaic": lambda: built_in("mosaic[epsilon=1]", "images"),
    "mosaic, pixel": lambda: built_in("mosaic[epsilon=1,neighbour_pixels=1]", "images"),
    "cadp, table": lambda: built_in("cadp[epsilon=1]", "table"),
    "steps, 10": lambda: sampled(0.84),
    "steps, 10, replaced": lambda: sampled(0.84, replaced=True),
    "steps, 1": lambda: sampled(4.1),
    "dp-sgd, 1": lambda: trained(1.0, None),
    "dp-sgd, 10": lambda: trained(10.0, None),
    **{
        f"dp-sgd, {epsilon}, {fault}": lambda epsilon=epsilon, fault=fault: trained(float(epsilon), fault)
        for epsilon in (1, 10)
        for fault in TRAINING_FAULTS
    },
    "dp-glow": lambda: built_in("dp-glow[epsilon=1,variant=corrected]", "images"),
    **{
        f"{mistake}, {unit}": lambda mistake=mistake, unit=unit: made(mistake, unit, 8)
        for mistake in (
            "raw row", "corner pixel", "coarse grid", "one noise for all rows", "noise of a row's content",
            "same noise again", "own range", "fine grid", "raw near mid-grey", "few seeds", "few seeds a key",
            "low bits", "one raw row of many", "whole numbers", "raw in small releases", "half the noise",
            "raw in a narrow band", "raw by one pixel", "raw in releases of 37",
        )
        for unit in ("image", "pixel")
    },
}  # fmt: skip


def shown(case: Case, trials: int, seed: int) -> Score:
    """The audit's figure, with its parts."""
    if isinstance(case.scheme, SampledSteps):
        return shown_by_steps(case, trials, seed)
    with faulty(case.fault):
        played = audit(case.scheme, case.claim, case.public, trials=trials, secret=Secret.of_seed(seed))
    evidence = AuditEvidence(
        case.claim, played.calls, CONFIDENCE, one_run=played.one_run, coins=played.coins, runs=played.runs,
        black_box=played.black_box, reach=played.reach,
    )  # fmt: skip
    return EmpiricalEpsilon()(evidence)


def shown_by_steps(case: Case, trials: int, seed: int) -> Score:
    """The same of the game with gradient canaries alone."""
    game = GradientCanaries(case.scheme, case.claim, case.public, 2 * trials, WIDTH, 1.0)
    secret, coins = Secret.of_seed(seed), game.coins(CONFIDENCE)
    _, guess = game.choose(secret.derive("choice"), coins, confidence=CONFIDENCE)
    calls = game.count(secret.derive("count"), guess, coins)
    return EmpiricalEpsilon()(
        AuditEvidence(
            case.claim, calls, CONFIDENCE, one_run=True, coins="include" if game.included else "replace",
            runs=coins // game.each if guess.apart else 1,
        )
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"of: {'; '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    for name in options.cases:
        case, start = CASES[name](), time.perf_counter()
        scores = [shown(case, options.trials, options.start + repeat) for repeat in range(options.repeats)]
        found = [score.value for score in scores]
        refuted = sum(value > case.claim.epsilon for value in found)
        low, high = (float(end) for end in clopper_pearson(refuted, options.repeats, 0.025))
        parts = {part: score.value for part, score in scores[0].parts.items() if part != "games"}
        print(
            f"{name:32} claims {case.claim.epsilon:<6.4g} shown {min(found):.2f} to {max(found):.2f}, mean "
            f"{sum(found) / len(found):.3f}; refuted {refuted} of {options.repeats} ({low:.3f} to {high:.3f}); "
            f"{', '.join(f'{part} {value:.2f}' for part, value in parts.items())}; "
            f"{(time.perf_counter() - start) / options.repeats:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
