"""Streams: the same bits everywhere, and the distributions that they are said to have."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from bench.randomness import Secret, Stream, distributions

SECRET = Secret(bytes(range(32)))
WORDS = [3026775489186212049, 216655245637051380]
NORMALS = ["0x1.835cfe8339556p-1", "-0x1.24597bf05dd7bp-3", "0x1.d3c700244b8adp-1"]
EXPONENTIALS = ["0x1.bca3d46e2341ep-1", "0x1.6b0ab75445462p-1"]
UNIFORMS = ["0x1.b974332fa7d18p-4", "0x1.2d5357e75636dp-1"]
INTEGERS = [7, 9, 5, 8, 3, 0, 5, 8]
PERMUTATION = [0, 6, 4, 3, 7, 2, 5, 1]
LAPLACE = [-1053, 541, -3664, -1090, 328, 1780]
GAUSSIAN = [-66, -794, -629, -666, -504, -850]
LEAST_P = 1e-6  # a fixed stream: the test fails by chance for one stream in a million, and this is not that one


def test_bits_are_those_of_aes_in_counter_mode() -> None:
    # NIST SP 800-38A has no vector from counter zero; the cipher itself, asked for block 2 alone, is the second way.
    key = bytes(range(32))
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update((2).to_bytes(16, "big"))
    assert Stream(key).bytes(48)[32:].tobytes() == block


def test_stored_vectors() -> None:
    stream = SECRET.stream("vectors")
    assert stream.words(2).tolist() == WORDS
    assert [value.hex() for value in stream.normal(3).tolist()] == NORMALS
    assert [value.hex() for value in stream.exponential(2).tolist()] == EXPONENTIALS
    assert [value.hex() for value in stream.uniform(2).tolist()] == UNIFORMS
    assert stream.integers(10, 8).tolist() == INTEGERS
    assert stream.permutation(8).tolist() == PERMUTATION
    assert stream.laplace_integers(Fraction(1000), 6).tolist() == LAPLACE
    assert stream.gaussian_integers(Fraction(1000), 6).tolist() == GAUSSIAN


def test_calls_go_on_where_the_one_before_ended() -> None:
    whole, parts = SECRET.stream("a").words(100), SECRET.stream("a")
    assert np.array_equal(whole, np.concatenate([parts.words(1), parts.words(99)]))


def test_logarithm_and_normal_are_those_of_a_library() -> None:
    words = SECRET.stream("accuracy").words(200_000)
    chance = distributions.uniform(words)
    assert np.allclose(distributions.logarithm(chance), np.log(chance), rtol=1e-14, atol=1e-16)
    assert np.allclose(distributions.normal(words), stats.norm.ppf(chance), rtol=1e-13, atol=1e-14)


def test_extreme_words_give_finite_numbers() -> None:
    words = np.array([0, 2**64 - 1, 2**63, 2**63 - 1], dtype=np.uint64)
    for make in (distributions.uniform, distributions.normal, distributions.exponential):
        assert np.isfinite(make(words)).all()
    assert 0 < distributions.uniform(words).min() <= distributions.uniform(words).max() < 1


@pytest.mark.parametrize("below", [2, 3, 10, 2**31 + 1, 2**32])
def test_integers_are_uniform(below: int) -> None:
    drawn = SECRET.stream("integers", below).integers(below, 60_000)
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) < below
    counts = torch.bincount(drawn * min(below, 10) // below)
    assert stats.chisquare(counts.numpy()).pvalue > LEAST_P


def test_integers_below_one_are_zeros() -> None:
    assert SECRET.stream("one").integers(1, 3).tolist() == [0, 0, 0]


def test_permutations_are_uniform() -> None:
    stream = SECRET.stream("permutations")
    codes = [tuple(stream.permutation(3).tolist()) for _ in range(6_000)]
    assert stats.chisquare([codes.count(each) for each in sorted(set(codes))]).pvalue > LEAST_P
    assert len(set(codes)) == 6


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(40)])
def test_discrete_laplace_has_its_probabilities(scale: Fraction) -> None:
    q = math.exp(-1 / scale)
    _fits(SECRET.stream("laplace", str(scale)).laplace_integers(scale, 200_000),
          lambda k: (1 - q) / (1 + q) * q ** abs(k))  # fmt: skip


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(40)])
def test_discrete_gaussian_has_its_probabilities(sigma: Fraction) -> None:
    whole = sum(math.exp(-(k**2) / (2 * sigma**2)) for k in range(-2000, 2001))
    _fits(SECRET.stream("gaussian", str(sigma)).gaussian_integers(sigma, 200_000),
          lambda k: math.exp(-(k**2) / (2 * sigma**2)) / whole)  # fmt: skip


def test_large_scales_have_the_moments_of_the_continuous_ones() -> None:
    n = 200_000
    laplace = SECRET.stream("large").laplace_integers(Fraction(1 << 20), n).double() / (1 << 20)
    assert abs(float(laplace.abs().mean()) - 1) < 5 / math.sqrt(n)
    gaussian = SECRET.stream("large").gaussian_integers(Fraction(1 << 20), n).double() / (1 << 20)
    assert abs(float(gaussian.square().mean()) - 1) < 5 * math.sqrt(2 / n)


def test_what_float64_cannot_decide_is_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = SECRET.stream("doubt").gaussian_integers(Fraction(7), 3_000)
    monkeypatch.setattr(distributions, "DOUBT", 0.05)  # one in ten is then decided exactly
    exact = SECRET.stream("doubt").gaussian_integers(Fraction(7), 3_000)
    stats_ = stats.ks_2samp(usual.numpy(), exact.numpy())  # other words are used, so only the distribution is the same
    assert stats_.pvalue > LEAST_P


def test_ties_of_first_bytes_are_decided_by_the_words_that_follow() -> None:
    words = (1 << 63, 5, 0)
    given = [np.array([1 << 62, 1 << 63, 1 << 63, 3 << 62], dtype=np.uint64), np.array([4, 5], dtype=np.uint64),
             np.array([0], dtype=np.uint64)]  # fmt: skip
    found = distributions._below(lambda count: given.pop(0), words, 4)
    assert found.tolist() == [True, True, False, False]


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**41)])
def test_scales_that_cannot_be_drawn_are_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match=r"above 0 and at most 2\^40"):
        SECRET.stream().laplace_integers(scale, 3)
    with pytest.raises(ValueError, match=r"above 0 and at most 2\^40"):
        SECRET.stream().gaussian_integers(scale, 3)


def test_integers_refuse_a_range_that_they_cannot_fill() -> None:
    with pytest.raises(ValueError, match="below must be from 1"):
        SECRET.stream().integers(0, 3)


def _fits(drawn: torch.Tensor, chance) -> None:  # type: ignore[no-untyped-def]
    n = len(drawn)
    common = [k for k in range(-2000, 2001) if n * chance(k) >= 20]
    counts = [int((drawn == k).sum()) for k in common]
    rest = n - sum(counts)
    expected = [n * chance(k) for k in common]
    assert stats.chisquare([*counts, rest], [*expected, n - sum(expected)]).pvalue > LEAST_P
