"""What comes from a method's process as the judge reads it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bench.contract.seal import ContractError
from bench.isolation.rpc_codec import pack, unpack
from bench.types import Release

PAYLOAD = 0x7FC00000 | 0x2A5A5


def passed_on(labels: Tensor) -> Tensor:
    """Labels as the judge has them, after a method's process has released them."""
    tensors: list[Tensor] = []

    def keep(tensor: Tensor) -> int:
        tensors.append(tensor)
        return len(tensors) - 1

    said = pack(Release(torch.zeros(3, 2), labels, None), keep)
    found = unpack(said, lambda place: tensors[int(str(place))], lambda _: None)
    assert isinstance(found, Release)
    assert found.labels is not None
    return found.labels


def test_a_label_that_is_not_known_carries_no_message() -> None:
    bits = torch.tensor([[0], [PAYLOAD], [0x3F800000]], dtype=torch.int32)
    sent = bits.view(torch.float32)
    assert bool(sent[1].isnan())
    found = passed_on(sent)
    assert found.view(torch.int32).flatten().tolist() == [0, 0x7FC00000, 0x3F800000]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (torch.tensor([[0.0], [torch.inf], [1.0]]), "must be finite"),
        (torch.zeros(3, 1, dtype=torch.float64), "must be a float32 tensor"),
        (torch.zeros(3, 1, dtype=torch.int64), "must be a float32 tensor"),
    ],
)
def test_labels_that_no_method_may_release_are_refused(labels: Tensor, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        passed_on(labels)
