"""ReID AUC among exchanges of people: equal to the area, exact under chance, one renaming for all keys."""

from __future__ import annotations

import torch
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from bench.evidence import ExchangedAreas
from bench.pairs import exchanged_areas as module
from bench.pairs.exchanged_areas import exchangeable, exchanged_areas, exchanged_people
from bench.pairs.person_links import patient_links
from bench.seeds import generator
from bench.statistics.pair_statistics import among_exchanges
from bench.types import PairScores, Score


class Table(PairScores):
    """Scores in memory."""

    def __init__(self, scores: torch.Tensor) -> None:
        self.scores, self.shape = scores, (scores.shape[0], scores.shape[1])

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        return self.scores[rows, cols]


def links_of(n: int, seed: int = 0) -> torch.Tensor:
    return torch.stack((torch.arange(n), torch.randperm(n, generator=generator(seed))), dim=1)


def test_the_first_area_is_the_reid_auc_with_ties_and_by_person() -> None:
    n, subjects = 60, torch.arange(60) // 3
    scores = torch.randint(0, 9, (n, n), generator=generator(1)).double()
    images = links_of(n)
    for links in (images, patient_links(images, subjects)):
        linked = torch.zeros(n, n)
        linked[links[:, 0], links[:, 1]] = 1
        share = len(links) / n**2
        areas = exchanged_areas(Table(scores), links, exchanged_people(subjects, n, sets=3, seed=2), seed=0)
        # The mid-rank among all pairs holds the linked ones too: their mean is half among themselves.
        expected = (1 - share) * roc_auc_score(linked.flatten(), scores.flatten()) + share / 2
        torch.testing.assert_close(float(areas[0]), float(expected))


def test_an_exchange_is_the_area_of_renamed_links_in_any_block(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    n = 40
    scores, links, renamed = torch.rand(n, n, generator=generator(1)), links_of(n), exchanged_people(None, n, seed=1)
    whole = exchanged_areas(Table(scores), links, renamed, seed=0)
    other = torch.stack((renamed[7, links[:, 0]].long(), links[:, 1]), dim=1)
    assert float(exchanged_areas(Table(scores), other, renamed[:1], seed=0)[0]) == float(whole[7])
    monkeypatch.setattr(module, "COLUMNS", 7)
    monkeypatch.setattr(module, "TOGETHER", 100)
    torch.testing.assert_close(exchanged_areas(Table(scores), links, renamed, seed=0), whole)
    monkeypatch.setattr(module, "MOST_RANKED", 400)
    assert float((exchanged_areas(Table(scores), links, renamed, seed=0) - whole).abs().max()) < 0.1


def test_people_become_people_with_as_many_rows_and_few_alike_stay() -> None:
    subjects = torch.cat((torch.arange(12).repeat_interleave(2), torch.arange(12, 24), torch.tensor([30, 30, 30])))
    renamed = exchanged_people(subjects, len(subjects), sets=20, seed=0).long()
    assert torch.equal(renamed[0], torch.arange(len(subjects)))
    assert torch.equal(renamed.sort(dim=1).values, renamed[:1].expand_as(renamed))
    after = subjects[renamed[:, :24]].reshape(21, 12, 2)
    assert torch.equal(after[..., 0], after[..., 1])
    assert int(after.max()) < 12
    assert torch.equal(renamed[:, 36:], renamed[:1, 36:].expand(21, 3))
    assert exchangeable(subjects, len(subjects)).tolist() == [True] * 36 + [False] * 3


def test_p_keeps_its_level_for_a_method_whose_releases_are_the_same_under_every_key() -> None:
    n, alarms, cells = 30, 0, 200
    for cell in range(cells):
        scores, links = torch.rand(n, n, generator=generator(cell)), links_of(n, cell)
        renamed = exchanged_people(None, n, sets=99, seed=cell)
        areas = torch.stack([exchanged_areas(Table(scores), links, renamed, seed=0) for _ in range(5)]).mean(dim=0)
        p = among_exchanges(score(), ExchangedAreas("image", areas, "0" * 16)).p
        alarms += p is not None and p <= 0.05
    assert binomtest(alarms, cells, 0.05, alternative="greater").pvalue > 0.01


def score() -> Score:
    return Score(0.5, None, None, 30, null=0.5, note="made up")


def test_p_says_that_chance_does_as_well_and_grows_small_beyond_the_exchanges() -> None:
    areas = torch.linspace(0.4, 0.6, 201, dtype=torch.float64)
    for own, least, most in ((0.3, 1.0, 1.0), (0.5, 0.49, 0.52), (0.9, 0.0, 1e-10)):
        made = among_exchanges(score(), ExchangedAreas("image", torch.cat((torch.tensor([own]), areas)), "0" * 16))
        assert made.p is not None
        assert least <= made.p <= most
        assert made.sides == 1
        assert ("a normal tail" in made.note) == (made.p < 1 / 202)
        assert made.exchanges is not None
        assert len(made.exchanges.tails) == 202
        assert made.exchanges.tails[1] in (201, 202)
    same = among_exchanges(score(), ExchangedAreas("image", torch.full((100,), 0.5), "0" * 16))
    assert same.p == 1.0
