import pytest
import torch

from bench.eve.tokens import Layout, layouts


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 28, 28), (1, 16, 512), (7,), (60,), (4096,), (2, 1, 1), (1,)])
def test_every_layout_keeps_every_number_once(shape):
    numbers = torch.Size(shape).numel()
    rows = torch.arange(2 * numbers, dtype=torch.float32).reshape(2, *shape)
    found = layouts(shape)
    assert found
    assert len(set(found)) == len(found)
    for layout in found:
        pieces = layout.cut(rows)
        assert sorted(pieces[1].flatten().tolist()) == rows[1].flatten().tolist()
    assert any(layout.cut(rows).shape[1] == 1 for layout in found)


def test_tokens_of_a_code_are_among_the_layouts():
    rows = torch.arange(2 * 6, dtype=torch.float32).reshape(1, 1, 2, 6)
    assert Layout("chunks", 6) in layouts((1, 2, 6))
    assert Layout("chunks", 6).cut(rows)[0, 1].tolist() == [6, 7, 8, 9, 10, 11]
    assert Layout("channels", 0).cut(rows.reshape(1, 6, 1, 2))[0, 1].tolist() == [1, 3, 5, 7, 9, 11]


def test_pieces_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="got 4 for 6 numbers"):
        Layout("chunks", 4).cut(torch.zeros(1, 6))
    with pytest.raises(ValueError, match="cut from images"):
        Layout("patches", 2).cut(torch.zeros(1, 6))
