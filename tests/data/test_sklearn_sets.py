"""Digits and diabetes, as scikit-learn carries them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bench.data.sets.sklearn_sets import Diabetes, Digits


def test_digits_are_grey_images_of_one_class_each():
    scan = Digits().scan((), None)
    assert scan.samples.shape == (1797, 1, 8, 8)
    assert scan.samples.dtype == np.uint8
    assert (scan.samples.min(), scan.samples.max()) == (0, 255)
    assert scan.exclusive
    assert scan.findings == tuple("0123456789")
    assert (scan.labels.sum(axis=1) == 1).all()
    assert scan.subjects is None


def test_digits_keep_their_grey_levels_and_classes():
    from sklearn.datasets import load_digits

    bunch, scan = load_digits(), Digits().scan((), None)
    assert np.array_equal(np.rint(scan.samples[:, 0] / 255.0 * 16.0), bunch.images)
    assert np.array_equal(scan.labels.argmax(axis=1), bunch.target)


def test_diabetes_is_a_table_in_its_own_units():
    scan = Diabetes().scan((), None)
    assert scan.samples.shape == (442, 10)
    assert scan.samples.dtype == np.float32
    assert set(np.unique(scan.samples[:, 1])) == {1.0, 2.0}
    assert 18 <= scan.samples[:, 0].min() < scan.samples[:, 0].max() < 100
    assert scan.subjects is None
    assert not scan.exclusive


def test_half_of_the_diabetes_patients_progress_above_the_median():
    from sklearn.datasets import load_diabetes

    target, scan = load_diabetes().target, Diabetes().scan((), None)
    assert scan.findings == ("progression above median",)
    positive = scan.labels[:, 0] == 1
    assert positive.sum() == 221
    assert target[positive].min() > target[~positive].max()


def test_progression_becomes_the_last_column_on_request():
    from sklearn.datasets import load_diabetes

    bunch, plain, wide = load_diabetes(scaled=False), Diabetes().scan((), None), Diabetes("column").scan((), None)
    assert Diabetes().columns == tuple(bunch.feature_names)
    assert Diabetes("column").columns == (*bunch.feature_names, "progression")
    assert np.array_equal(wide.samples[:, :10], plain.samples)
    assert np.array_equal(wide.samples[:, 10], bunch.target.astype(np.float32))
    assert np.array_equal(wide.labels, plain.labels)
    assert (plain.name, wide.name) == ("", "diabetes:column")


def test_a_target_that_is_neither_is_refused():
    with pytest.raises(ValueError, match="target must be label or column, got 'row'"):
        Diabetes("row")  # type: ignore[arg-type]


def test_both_are_their_own_public_set_and_may_be_shared():
    for source in (Digits, Diabetes):
        assert source.public == source.origin == source.name
        assert source.shareable
        assert source.default_size is None


def test_scikit_learn_is_imported_only_when_read():
    code = "import sys, bench.data.sets.sklearn_sets; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
