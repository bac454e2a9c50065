from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.conformance.outcome import sample_data
from bench.contract.seal import ContractError, check, fingerprint, seal
from bench.randomness import Secret
from bench.types import Generator, Release, State, paired


class Empty(Generator):
    def sample(self, count: int, seed: int) -> Release:
        return GOOD

    def state(self) -> State:
        return {}


DATA = sample_data(rows=10)
GOOD = paired(DATA.samples.clone(), DATA.labels)


def test_a_good_release_passes() -> None:
    check(GOOD, DATA)


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (replace(GOOD, samples=GOOD.samples.double()), "float32"),
        (replace(GOOD, samples=GOOD.samples[:, 0]), "images"),
        (replace(GOOD, samples=GOOD.samples[:0]), "at least 1"),
        (replace(GOOD, samples=GOOD.samples.index_fill(0, torch.tensor([3]), torch.nan)), "row 3"),
        (replace(GOOD, labels=torch.zeros(10, 3)), r"shape \(10, 2\), got \(10, 3\)"),
        (replace(GOOD, labels=torch.zeros(10, 2, dtype=torch.int64)), r"float32 tensor \(m, k\), got torch.int64"),
        (replace(GOOD, labels=torch.tensor(0.0)), r"float32 tensor \(m, k\)"),
        (replace(GOOD, labels=torch.full((10, 2), torch.inf)), "some are infinite"),
        (replace(GOOD, links=torch.tensor([[0, 10]])), "links must lie"),
        (replace(GOOD, links=torch.tensor([[0.0, 1.0]])), "int64"),
        (replace(GOOD, links=torch.zeros(0, 2, dtype=torch.int64)), "at least one pair"),
        (replace(GOOD, generator=Empty()), "must hold tensors"),
    ],
)
def test_a_bad_release_is_refused(release: Release, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check(release, DATA)


def test_sealing_hides_the_order_and_keeps_the_links_right() -> None:
    sealed = seal(GOOD, Secret.of_seed(3))
    assert sealed.release.links is None
    assert sealed.links is not None
    assert torch.equal(sealed.release.samples[sealed.links[:, 1]], DATA.samples[sealed.links[:, 0]])
    assert not torch.equal(sealed.links[:, 0], sealed.links[:, 1])
    assert sorted(sealed.links[:, 1].tolist()) == list(range(10))


def test_the_fingerprint_sees_every_tensor() -> None:
    changed = replace(DATA, labels=1 - DATA.labels)  # type: ignore[operator]
    assert fingerprint(DATA) == fingerprint(sample_data(rows=10))
    assert fingerprint(DATA) != fingerprint(changed)
