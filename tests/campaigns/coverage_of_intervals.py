"""Coverage and width of 95 % intervals by figure and condition.

`python tests/campaigns/coverage_of_intervals.py [--repeats 400] [--keys 5 33] [--condition NAME ...]` draws people and
keys anew, computes the metrics as they are, and prints how often the intervals hold the truth, with the binomial
margin, the mean width over the ideal, and the share of repeats without an interval. Figures over people and keys are
compared with the mean over all repeats; figures "of these people" (medians and shares over keys) with those of many
keys on the same people. One-sided upper limits stand below them: they must hold .95 of the time.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from made.interval_coverage import CONDITIONS, LOGARITHMS, Condition, Covered, covered, pairs, predictions, simulated

from bench.evidence import PairEvidence
from bench.statistics.confidence_intervals import over_keys
from bench.statistics.order_statistics import median_over_keys
from bench.statistics.pair_statistics import from_halves, from_people, weighted_mean
from bench.statistics.upper_limits import upper_limit
from bench.types import Score
from metrics.guesswork import guesswork, success_within
from metrics.pair_roc import Advantage, PatientReidAUC, ReidAUC, TPRAtLowFPR, reid_auc
from metrics.ranks import Top1, Top5, median_rank, top_1
from metrics.utility_auc import UtilityAUC

OVER_PEOPLE = {metric.name: metric for metric in (ReidAUC(), Top1(), Top5(), Advantage())}
MANY = 40
"""Groups of keys on the same people."""


def limits(evidence: PairEvidence) -> dict[str, Score]:
    """Upper limits as scores from minus infinity."""
    people, keys = int(evidence.persons.max()) + 1, len(evidence.images.full)
    levels = {"limit of reid-auc": evidence.images, "limit of patient-reid-auc": evidence.patients}
    found = {}
    for name, level in levels.items():
        if level is not None:
            table = from_halves(evidence, level, reid_auc, "share")
            found[name] = Score(fmean(table.by_key), -1.0, upper_limit(table, people=people), 0)
    table = from_people(evidence, evidence.images, lambda counts: counts.top_1, weighted_mean, "share")
    most = upper_limit(table, people=people, answers=keys * evidence.shape[0])
    found["limit of top-1"] = Score(fmean(map(top_1, evidence.images.full)), -1.0, most, 0)
    return found


def of_these_people(condition: Condition, keys: int, repeats: int) -> dict[str, Covered]:
    """Coverage of medians and shares over keys, on each of several draws of people."""
    figures = {"guesswork": guesswork, "median-rank": median_rank}
    figures |= {f"success within {guesses}": partial(success_within, guesses=guesses) for guesses in (1, 10, 100)}
    held: dict[str, list[bool]] = {name: [] for name in figures}
    truths: dict[str, list[float]] = {name: [] for name in figures}
    absent: dict[str, int] = dict.fromkeys(figures, 0)
    random = np.random.default_rng(0)
    for _ in range(max(1, repeats // MANY)):
        evidence = pairs(replace(condition, trainings=1), keys * MANY, random, halves=1)
        for name, figure in figures.items():
            values = list(map(figure, evidence.images.full))
            share = name.startswith("success")
            truth = fmean(values) if share else float(median(values))
            truths[name].append(truth)
            for start in range(0, len(values), keys):
                some = values[start : start + keys]
                blank = Score(fmean(some), None, None, 0)
                score = over_keys(blank, keys) if share else median_over_keys(blank, some)
                if score.low is None or score.high is None:
                    absent[name] += 1
                else:
                    held[name].append(score.low <= truth <= score.high)
    return {
        name: Covered(fmean(truths[name]), fmean(of) if of else float("nan"), float("nan"), len(of),
                      absent[name] / (absent[name] + len(of)))
        for name, of in held.items()
    }  # fmt: skip


def measured(condition: Condition, keys: int, repeats: int) -> dict[str, Covered]:
    """All figures under one condition."""
    figures = dict(OVER_PEOPLE)
    if (condition.people * condition.images) ** 2 > 2000:
        figures["tpr-at-low-fpr"] = TPRAtLowFPR()
    if condition.images > 1:
        figures["patient-reid-auc"] = PatientReidAUC()
    random, scores = np.random.default_rng(0), {}
    for _ in range(repeats):
        evidence = pairs(condition, keys, random)
        for name, score in ({name: metric(evidence) for name, metric in figures.items()} | limits(evidence)).items():
            scores.setdefault(name, []).append(score)
    return {name: covered(of, log=name in LOGARITHMS) for name, of in scores.items()} | of_these_people(
        condition, keys, repeats
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--keys", type=int, nargs="+", default=[5, 33])
    parser.add_argument("--condition", action="append", choices=list(CONDITIONS))
    chosen = parser.parse_args()
    for module, draws in (("guesswork", "DRAWS"), ("ranks", "DRAWS"), ("ranks", "MEDIAN_DRAWS"), ("pair_roc", "DRAWS")):
        setattr(importlib.import_module(f"metrics.{module}"), draws, 2)  # what chance gives is not looked at
    print(f"{'condition':24} keys {'figure':26} coverage         width  absent  truth")
    for keys in chosen.keys:
        for name in chosen.condition or CONDITIONS:
            _print(name, keys, measured(CONDITIONS[name], keys, chosen.repeats))
        for effect in (0.0, 0.4):
            scores = simulated({"utility-auc": UtilityAUC()}, partial(predictions, 60, effect, keys), chosen.repeats)
            _print(f"60 people, effect {effect}", keys, {"utility-auc": covered(scores["utility-auc"])})


def _print(condition: str, keys: int, found: dict[str, Covered]) -> None:
    for name, one in found.items():
        width = "" if name.startswith("limit") or np.isnan(one.width) else f"x{one.width:.2f}"
        rate = f"{one.coverage:.3f} +- {one.margin:.3f}" if one.repeats else "no interval"
        print(f"{condition:24} {keys:4} {name:26} {rate:16} {width:6} {one.absent:.2f}    {one.truth:.4g}", flush=True)


if __name__ == "__main__":
    main()
