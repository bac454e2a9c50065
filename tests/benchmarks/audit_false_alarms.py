"""How often audits flag correct mechanisms, and how surely they flag wrong ones: prints a table.

`python tests/benchmarks/audit_false_alarms.py --repeats 1000 --trials 300 scalar` takes minutes. Of audits at 95 %
confidence no more than 5 % may flag a mechanism that keeps its claim; the bound beside the count is what a binomial
number of that rate exceeds once in a thousand.
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
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[1]))

from made.leaky_mechanisms import Leaky, Mistake, Unit

from bench.audit.distinguishing_game import CONFIDENCE, audit
from bench.conformance.outcome import sample_data
from bench.evidence import AuditEvidence
from bench.plugins.registry import build
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, Method, PrivacyClaim, Scheme
from metrics.empirical_epsilon import EmpiricalEpsilon


@dataclass(frozen=True, eq=False)
class Case:
    """What is audited."""

    scheme: Scheme
    claim: PrivacyClaim
    public: Dataset


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
    "dp-sgd": lambda: built_in("dp-sgd[epsilon=1]", "images"),
    "dp-sgd, 10": lambda: built_in("dp-sgd[epsilon=10]", "images"),
    "dp-glow": lambda: built_in("dp-glow[epsilon=1,variant=corrected]", "images"),
    **{
        f"{mistake}, {unit}": lambda mistake=mistake, unit=unit: made(mistake, unit, 8)
        for mistake in (
            "raw row", "corner pixel", "coarse grid", "one noise for all rows", "noise of a row's content",
            "same noise again", "own range", "fine grid", "raw near mid-grey", "few seeds", "few seeds a key",
            "low bits", "one raw row of many", "whole numbers", "raw in small releases", "half the noise",
        )
        for unit in ("image", "pixel")
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["scalar", "image", "pixel"], help=f"of: {'; '.join(CASES)}")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    for name in options.cases:
        case, start = CASES[name](), time.perf_counter()
        found = []
        for seed in range(options.start, options.start + options.repeats):
            played = audit(case.scheme, case.claim, case.public, trials=options.trials, secret=Secret.of_seed(seed))
            evidence = AuditEvidence(
                case.claim, played.calls, CONFIDENCE, one_run=played.one_run, coins=played.coins
            )  # fmt: skip
            found.append(EmpiricalEpsilon()(evidence).value)
        flagged = sum(one > case.claim.epsilon for one in found)
        limit = int(binom.ppf(0.999, options.repeats, 1 - CONFIDENCE))
        print(
            f"{name:34} claims {case.claim.epsilon:<8.4g} flagged {flagged} of {options.repeats} (at most {limit} if "
            f"correct); shown {min(found):.2f} to {max(found):.2f}, mean {sum(found) / len(found):.3f}; "
            f"{(time.perf_counter() - start) / options.repeats:.2f} s an audit",
            flush=True,
        )


if __name__ == "__main__":
    main()
