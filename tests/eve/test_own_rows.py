from dataclasses import replace

import pytest
import torch

from bench.eve.own_rows import own_rows
from bench.types import Dataset, View
from methods.identity import Identity

CONTROL = Dataset("made", torch.zeros(3, 2), torch.zeros(3, 1), torch.arange(3), ("b",), False, True)
PUBLIC = Dataset("made", torch.ones(5, 2), torch.tensor([[0.0, 1.0]] * 5), None, ("a", "b"), False, True)


def known(public, control=CONTROL):
    return own_rows(View(public, Identity().fit(public, 0), control, control))


def test_public_rows_of_the_same_collection_count_with_the_control_rows_findings():
    own = known(PUBLIC)
    assert own.samples[:, 0].tolist() == [0] * 3 + [1] * 5
    assert own.labels.tolist() == [[0.0]] * 3 + [[1.0]] * 5
    assert own.findings == ("b",)
    assert own.subjects is None


@pytest.mark.parametrize(
    "public",
    [
        replace(PUBLIC, name="another"),
        replace(PUBLIC, samples=torch.ones(5, 4)),
        replace(PUBLIC, findings=("a", "c")),
        replace(PUBLIC, labels=None),
    ],
)
def test_rows_of_another_kind_stay_out(public):
    assert torch.equal(known(public).samples, CONTROL.samples)


def test_public_rows_count_without_labels_where_none_of_the_control_rows_can_be_scored():
    own = known(PUBLIC, replace(CONTROL, labels=None, findings=()))
    assert own.samples[:, 0].tolist() == [0] * 3 + [1] * 5
    assert own.labels is None
