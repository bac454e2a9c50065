"""Methods that take exclusive classes only where these are equally frequent get them so; all others as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from made.cells import opened

from bench.types import NotApplicable

SYFER = "syfer-random[patch_size=4,width=16]"


def test_a_method_that_asks_for_equal_classes_gets_them_and_others_all_labels(tmp_path: Path) -> None:
    asking, other = opened(tmp_path, SYFER), opened(tmp_path, "identity")
    assert asking.private.labels is not None
    assert other.private.labels is not None
    counts = asking.private.labels.nan_to_num().sum(dim=0)
    whole = other.private.labels.sum(dim=0)
    assert len(set(whole.tolist())) > 1
    assert counts.tolist() == [float(whole.min())] * 10
    assert f"until {int(whole.min())} private rows of each class have one" in asking.withheld
    assert other.withheld == ""
    assert other.natural is None
    assert asking.natural is not None
    assert torch.equal(asking.natural, other.private.labels)
    assert torch.equal(asking.private.samples, other.private.samples)
    assert asking.record == other.record


def test_syfer_releases_unequal_classes_once_their_surplus_is_withheld(tmp_path: Path) -> None:
    bench = opened(tmp_path, SYFER)
    scheme = bench.scheme()
    labels = bench.key(scheme, 0).release(bench.private).labels
    assert labels is not None
    assert len(set(labels.nan_to_num().sum(dim=0).tolist())) == 1
    plain = opened(tmp_path, "identity")
    with pytest.raises(NotApplicable, match="equally frequent"):
        bench.key(scheme, 0).release(plain.private)


def test_a_method_that_counts_people_is_refused_where_none_are_known(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="those of digits are not known: name them in a column `subject`"):
        opened(tmp_path, "k-same[unit=person]").scheme()
    opened(tmp_path, "k-same[unit=image]").scheme()


def test_labels_stay_where_nothing_is_to_be_withheld(tmp_path: Path) -> None:
    bench = opened(tmp_path, SYFER, balance=False)
    assert bench.withheld == ""
    assert bench.private.labels is not None
    assert not bench.private.labels.isnan().any()
