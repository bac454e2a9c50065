import pytest
import torch

from bench.eve import landmark_matching
from bench.eve.gram_matching import gram, gram_columns, log_posterior, refine
from bench.eve.landmark_matching import BalancedScores, Landmarks, MatchedColumns
from bench.pairs.score_matrices import TableScores
from bench.seeds import generator


def rows_of(m=80, q=12, seed=0):
    rows = torch.nn.functional.normalize(torch.randn(m, q, generator=generator(seed)).double(), dim=1)
    return rows - rows.mean(dim=0)


def test_columns_of_all_rows_are_the_gram_matrix():
    rows = rows_of()
    assert torch.allclose(gram_columns(rows, torch.arange(80)), gram(rows), atol=1e-5)


def test_columns_leave_out_a_row_s_product_with_itself_and_are_centred():
    columns = gram_columns(rows_of(), torch.tensor([5, 2, 70]))
    assert not columns[[5, 2, 70], [0, 1, 2]].any()
    assert columns.sum(dim=1).abs().max() < 1e-5


def test_products_with_columns_that_are_not_formed_are_those_with_the_columns():
    rows, at = rows_of().float(), torch.tensor([5, 2, 70])
    known, some = torch.randn(9, 3, generator=generator(1)), torch.tensor([70, 1, 5])
    expected = 1 + 0.7 * known @ gram_columns(rows, at).T
    columns = MatchedColumns(rows, at, rows.T @ rows)
    total, part = torch.ones(9, 80), torch.ones(9, 3)
    columns.add(total, known, 0.7)
    columns.add(part, known, 0.7, left=known @ columns.matched, cols=some)
    assert torch.allclose(total, expected, atol=1e-5)
    assert torch.allclose(part, expected[:, some], atol=1e-5)


def test_all_candidates_as_landmarks_are_matched_as_without_landmarks():
    known, order = rows_of(), torch.randperm(80, generator=generator(1))
    seen = known[order] @ torch.linalg.qr(torch.randn(12, 12, generator=generator(2)).double())[0]
    start = torch.randn(80, 80, generator=generator(3)).double()
    start[order[:60], torch.arange(60)] += 10
    plain = refine(gram(known)[None], gram(seen)[None], torch.ones(1), start, 0.3)
    every = torch.arange(80)
    landmarks = Landmarks(every, gram_columns(known, every)[None], torch.ones(1))
    matched = landmarks.matched([seen.float()], start, 0.3)
    assert torch.equal(plain.scores.argmax(dim=0), order)
    assert torch.equal(matched.scores(TableScores(start), 0.3).argmax(dim=0), order)
    assert matched.stayed


def test_a_few_landmarks_score_all_candidates(monkeypatch):
    known, order = rows_of(), torch.randperm(80, generator=generator(1))
    seen, at = known[order], torch.arange(0, 80, 2)
    start = torch.randn(80, 80, generator=generator(3)).double()
    start[order[:40], torch.arange(40)] += 10
    landmarks = Landmarks(at, gram_columns(known, at)[None], torch.ones(1))
    matched = landmarks.matched([seen.float()], start[at], 0.3)
    noise = TableScores(torch.randn(80, 80, generator=generator(4)))
    whole = matched.scores(noise, 0.01)
    assert torch.equal(whole.argmax(dim=0), order)
    some = torch.tensor([3, 40, 41])
    assert torch.allclose(matched.scores(TableScores(noise.table[:, some]), 0.01, some), whole[:, some], atol=1e-5)
    monkeypatch.setattr(landmark_matching, "BLOCK", 7)
    assert torch.allclose(matched.scores(noise, 0.01), whole, atol=1e-5)


@pytest.mark.parametrize("m", [30, 20])
def test_probabilities_in_blocks_are_those_of_the_whole_table(m, monkeypatch):
    monkeypatch.setattr(landmark_matching, "BLOCK", 7)
    table = torch.randn(30, m, generator=generator(0))
    scores = BalancedScores(table, 3.0)
    assert torch.allclose(scores.block(slice(None), slice(None)), log_posterior(table.double(), 3.0), atol=1e-4)
    assert torch.equal(scores.block(slice(4, 9), slice(2, 6)), scores.block(slice(None), slice(None))[4:9, 2:6])


def test_probabilities_far_below_the_smallest_float_are_those_of_the_whole_table(monkeypatch):
    monkeypatch.setattr(landmark_matching, "STRIP", 90)
    table = 300 * torch.randn(30, 30, generator=generator(0))
    first = (3 * table).double().log_softmax(dim=0)
    assert first.amax(dim=1).min() < -100  # a row without any chance that float32 holds
    expected = log_posterior(table.double(), 3.0)
    found = BalancedScores(table, 3.0).block(slice(None), slice(None))
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-2)
