from __future__ import annotations

import pytest
import torch
from made.dense_scores import DenseScores, diagonal

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.score_blocks import first_guesses
from bench.pairs.sweep import Grid, count_grids
from bench.results.consistency import contradictions
from bench.results.record_parts import ScoreRecord
from bench.results.records import score_record
from bench.statistics.bootstrap import half_samples
from bench.statistics.people_named import Named, found_people, owned_rows
from bench.types import Dataset, Metric
from metrics.guesswork import Guesswork, SuccessWithin
from metrics.pair_roc import Advantage, ReidAUC, TPRAtLowFPR
from metrics.person_risk import PeopleFound, PersonRisk
from metrics.ranks import Top1, Top5

N, KEYS = 48, 9
METRICS: tuple[Metric[PairEvidence], ...] = (
    Guesswork(), SuccessWithin(), ReidAUC(), Advantage(), TPRAtLowFPR(), Top1(), Top5(), PeopleFound(), PersonRisk()
)  # fmt: skip


def scores_of(kind: str) -> dict[str, ScoreRecord]:
    """Figures of one attack: exact groups of three, distinct scores, or a few values."""
    random, rows, links = torch.Generator().manual_seed(0), torch.arange(N), diagonal(N)
    data = Dataset("made", torch.zeros(N, 1), torch.zeros(N, 1), None, ("x",), False, True)
    halves, counts, full, named = half_samples(None, N, 4, seed=0), [], [], []
    for _ in range(KEYS):
        noise = torch.randn(N, N, generator=random).double()
        matrix = {
            "groups": (rows[:, None] // 3 == rows // 3).double(), "distinct": noise + 2 * torch.eye(N),
            "few values": (noise + torch.eye(N)).round(),
        }[kind]  # fmt: skip
        grids = [Grid(half, half, [links[half]]) for half in halves] + [Grid(rows, rows, [links])]
        *parts, whole = (of for (of,) in count_grids(DenseScores(matrix), grids))
        counts.append(parts)
        full.append(whole)
        owned = owned_rows(links, rows)
        named.append(Named(first_guesses(DenseScores(matrix), rows, owned), owned))
    level = PairLevel(counts, links, full=full, owners=[rows] * KEYS)
    evidence = PairEvidence(
        (N, N), level, None, halves, persons=rows, known=False, draws=0, resamples="0" * 16, seed=0,
        people=found_people(named, data),
    )  # fmt: skip
    return {metric.name: score_record(metric(evidence), better=metric.better, unit=metric.unit) for metric in METRICS}


@pytest.mark.parametrize("kind", ["groups", "distinct", "few values"])
def test_figures_of_one_attack_agree(kind: str) -> None:
    assert contradictions(scores_of(kind)) == {}


def test_one_in_three_is_printed_of_everybody_behind_a_form_of_three() -> None:
    scores = scores_of("groups")
    assert scores["people-found"].value == pytest.approx(1 / 3)
    assert scores["people-found"].parts["median person"].value == pytest.approx(1 / 3)
    assert scores["person-risk"].value == pytest.approx(1 / 3 - 1 / N)


@pytest.mark.parametrize(("metric", "value", "withheld"), [
    ("people-found", 0.9, {"people-found", "person-risk"}),
    ("reid-auc", 0.2, {"reid-auc", "advantage"}),
    ("advantage", 0.01, {"advantage"}),
    ("tpr-at-low-fpr", 0.9, {"tpr-at-low-fpr", "advantage"}),
    ("success-within", 0.123, {"success-within"}),
    ("top-1", 0.001, {"people-found", "person-risk"}),
])  # fmt: skip
def test_a_figure_that_contradicts_others_is_named(metric: str, value: float, withheld: set[str]) -> None:
    scores = scores_of("distinct")
    forged = {**scores, metric: scores[metric].model_copy(update={"value": value})}
    assert set(contradictions(forged)) == withheld


@pytest.mark.parametrize("kind", ["groups", "distinct"])
def test_an_earlier_worst_person_whose_ties_were_drawn_once_is_withheld(kind: str) -> None:
    """The mean over people was top-1 all the same; guesswork under ties is no whole number."""
    scores = scores_of(kind)
    risk, guesses = scores["person-risk"], scores["guesswork"]
    earlier = {
        "top-1": scores["top-1"],
        "person-risk": risk.model_copy(update={"parts": {**risk.parts, "all people": scores["people-found"]}}),
        "guesswork": guesses,
    }
    found = contradictions(earlier)
    assert list(found) == ([] if kind == "distinct" else ["person-risk"])
    assert all("once for all keys" in reason for reason in found.values())


def test_several_images_a_person_are_not_compared_with_top_1() -> None:
    scores = scores_of("distinct")
    clustered = {**scores, "people-found": scores["people-found"].model_copy(update={"n": N // 2, "value": 0.9})}
    assert contradictions(clustered) == {}
