import itertools

import torch

from bench.rows.shared_columns import ABSENT, shared_columns
from bench.seeds import generator


def table(n, d, levels=None, seed=0):
    """Numbers (n, d) in [0, 1]; of so many levels, or without ties."""
    rows = torch.rand(n, d, generator=generator(seed))
    return rows if levels is None else (rows * levels).floor() / levels


def noise(m, q, seed=1):
    return torch.randn(m, q, generator=generator(seed))


def shuffled(rows, seed=2):
    return rows[torch.randperm(len(rows), generator=generator(seed))]


def pairs(found):
    return {(one.raw, one.released, one.kind) for one in found}


def released(raw, column, place, change=lambda numbers: numbers, q=40):
    """Noise with a changed raw column at another place, rows in another order."""
    rows = noise(len(raw), q)
    rows[:, place] = change(raw[:, column])
    return shuffled(rows)


def test_a_raw_column_is_found_wherever_it_stands():
    raw = table(200, 40, levels=64)
    (found,) = shared_columns(raw, released(raw, 3, 17))
    assert pairs([found]) == {(3, 17, "order")}
    order = torch.randperm(200, generator=generator(2))
    assert torch.equal(found.raw_level[order], found.released_level)


def test_any_rising_or_falling_function_of_a_column_with_ties_keeps_it():
    raw = table(200, 40, levels=64)
    for change in (torch.exp, lambda numbers: -(numbers**3), lambda numbers: 5 - 0.2 * numbers):
        (found,) = shared_columns(raw, released(raw, 3, 17, change))
        order = torch.randperm(200, generator=generator(2))
        assert (found.raw, found.released) == (3, 17)
        assert torch.equal(found.raw_level[order], found.released_level)


def test_a_column_without_ties_is_found_after_a_change_of_scale():
    raw = table(200, 40)
    for change in (lambda numbers: numbers, lambda numbers: 3 - 7 * numbers):
        (found,) = shared_columns(raw, released(raw, 3, 17, change))
        assert (found.raw, found.released) == (3, 17)
        order = torch.randperm(200, generator=generator(2))
        assert torch.equal(found.raw_level[order], found.released_level)


def test_a_column_is_found_where_rows_are_missing_or_hidden():
    for levels in (64, None):
        raw = table(200, 40, levels)
        rows = released(raw, 3, 17)[:170]
        rows[:20, 17] = 9.0
        (found,) = shared_columns(raw, rows)
        assert pairs([found]) == {(3, 17, "values")}
        assert (found.released_level == ABSENT).sum() == 20


def test_noise_shares_no_column():
    assert not shared_columns(table(200, 40, levels=64), noise(200, 40))
    assert not shared_columns(table(200, 40), noise(200, 40))
    assert not shared_columns(table(200, 40, levels=64), shuffled(table(200, 40, levels=64, seed=5)))


def test_columns_that_many_share_count_for_none_but_their_own_place():
    raw = table(200, 40, levels=64)
    raw[:, 3] = raw[torch.randperm(200, generator=generator(7)), 5]  # as many of each number
    assert not shared_columns(raw, released(raw, 3, 17))
    assert pairs(shared_columns(raw, released(raw, 3, 3))) == {(3, 3, "order")}


def test_constant_columns_tell_nothing():
    raw = table(200, 40, levels=64)
    raw[:, 3] = 0
    assert not shared_columns(raw, released(raw, 3, 3))


def test_columns_with_most_bits_come_first_and_the_others_are_left_out():
    raw = torch.cat((table(200, 20, levels=16), table(200, 20, levels=64)), dim=1)
    found = shared_columns(raw, shuffled(raw), most=10)
    assert len(found) == 10
    assert all(one.raw >= 20 for one in found)
    assert all(late.bits <= early.bits for early, late in itertools.pairwise(found))


def test_numbers_under_other_names_share_their_counts() -> None:
    source = generator(4)
    raw = torch.randint(200, (400, 8), generator=source).float()
    names, order = torch.randperm(200, generator=source), torch.randperm(400, generator=source)
    found = shared_columns(raw, names[raw[order].long()].float()[:, [5, 2]])
    assert {(each.raw, each.released, each.kind) for each in found} == {(5, 0, "counts"), (2, 1, "counts")}
    assert all(torch.equal(each.raw_level[order], each.released_level) for each in found)
    assert not shared_columns(raw, torch.randint(200, (400, 8), generator=source).float())
