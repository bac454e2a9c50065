"""Discrete Laplace and Gaussian numbers: whole numbers whose probabilities are what they are said to be.

Source: Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020). The Laplace number is drawn
otherwise than there, for speed: the binary digits of a geometric number are independent, digit i being 1 with the
probability 1 / (1 + exp(2^i / scale)), so that whole arrays are drawn digit by digit. A digit compares a byte with the
first byte of its probability; where the two are equal (1 in 256), with further words, up to 200 bits in all. The
distribution is that of the formula to less than 2^-190 (total variation), and no real number is rounded anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Bytes = Callable[[int], NDArray[np.uint8]]
Words = Callable[[int], NDArray[np.uint64]]
Whole = NDArray[np.int64]

PRECISION = 200  # bits of a probability: one byte, then three words
EXACT = Context(prec=110)
CHUNK = 1 << 16
DOUBT = 2.0**-40  # far beyond the error of float64 in a probability of acceptance
LARGEST = 1 << 40


def discrete_laplace(draw: Bytes, more: Words, scale: Fraction, count: int) -> Whole:
    """(count,) int64: k with probability proportional to exp(-|k| / scale).

    Args:
        draw, more: The next bytes, and words, of a stream.
        scale: Above 0 and at most 2^40.
        count: How many.
    """
    _check("scale", scale)
    digits = _digits(scale)
    found = np.empty(count, dtype=np.int64)
    for start in range(0, count, CHUNK):
        part = found[start : start + CHUNK]
        _signed(draw, more, digits, part)
    return found


def discrete_gaussian(draw: Bytes, more: Words, sigma: Fraction, count: int) -> Whole:
    """(count,) int64: k with probability proportional to exp(-k^2 / (2 sigma^2)) (the paper's algorithm 3).

    Args:
        draw, more: The next bytes, and words, of a stream.
        sigma: Above 0 and at most 2^40.
        count: How many.
    """
    _check("sigma", sigma)
    scale = Fraction(math.floor(sigma) + 1)
    found = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        tried = discrete_laplace(draw, more, scale, min(CHUNK, int(1.5 * (count - done)) + 16))
        kept = tried[_accepted(more, tried, sigma, scale)][: count - done]
        found[done : done + len(kept)] = kept
        done += len(kept)
    return found


def _check(what: str, value: Fraction) -> None:
    if not 0 < value <= LARGEST:
        raise ValueError(
            f"{what} must be above 0 and at most 2^40 steps of the grid, got {float(value):g}: where it follows from "
            "an epsilon, choose a larger one"
        )


@lru_cache(maxsize=64)
def _digits(scale: Fraction) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """For every binary digit, from the lowest, the first byte and the words of its probability."""
    found: list[tuple[int, tuple[int, ...]]] = []
    while True:
        power = EXACT.divide(Decimal(scale.denominator << len(found)), Decimal(scale.numerator))
        if power > PRECISION:
            return tuple(found)
        chance = EXACT.divide(Decimal(1), EXACT.add(Decimal(1), EXACT.exp(power)))
        bits = int(EXACT.multiply(chance, Decimal(1 << PRECISION)))
        words = tuple(bits >> shift & (1 << 64) - 1 for shift in (128, 64, 0))
        found.append((bits >> 192, words))


def _signed(draw: Bytes, more: Words, digits: tuple[tuple[int, tuple[int, ...]], ...], out: Whole) -> None:
    """Fill `out`: a geometric number with a random sign, drawn again where it is -0 (0 would come twice)."""
    wanted = np.arange(len(out))
    while len(wanted):
        size = _geometric(draw, more, digits, len(wanted))
        negative = draw(len(wanted)) >= 128
        out[wanted] = np.where(negative, -size, size)
        wanted = wanted[negative & (size == 0)]


def _geometric(draw: Bytes, more: Words, digits: tuple[tuple[int, tuple[int, ...]], ...], count: int) -> Whole:
    """(count,) int64: k with probability proportional to exp(-k / scale)."""
    found = np.zeros(count, dtype=np.int64)
    for start in range(0, len(digits), 8):
        eight = np.zeros(count, dtype=np.uint8)
        for place, (first, words) in enumerate(digits[start : start + 8]):
            bytes_ = draw(count)
            digit = bytes_ < first
            tied = np.flatnonzero(bytes_ == first)
            if len(tied):
                digit[tied] = _below(more, words, len(tied))
            eight |= digit.view(np.uint8) << np.uint8(place)
        found |= eight.astype(np.int64) << np.int64(start)
    return found


def _below(more: Words, words: tuple[int, ...], count: int) -> NDArray[np.bool_]:
    """(count,) bool: whether random bits are below `words`, the first word first."""
    found = np.zeros(count, dtype=bool)
    open_ = np.arange(count)
    for word in words:
        drawn = more(len(open_))
        found[open_] = drawn < np.uint64(word)
        open_ = open_[drawn == np.uint64(word)]
        if not len(open_):
            break
    return found


def _accepted(more: Words, tried: Whole, sigma: Fraction, scale: Fraction) -> NDArray[np.bool_]:
    """(count,) bool: true with the probability exp(-(|k| - sigma^2 / scale)^2 / (2 sigma^2)).

    Decided in float64, and exactly wherever that could be wrong.
    """
    middle = sigma * sigma / scale
    power = (np.abs(tried) - float(middle)) ** 2 / (2 * float(sigma) ** 2)
    chance, drawn = np.exp(-power), more(len(tried))
    distance = drawn.astype(np.float64) * 2.0**-64 - chance
    accepted: NDArray[np.bool_] = distance < 0
    for doubtful in np.flatnonzero(np.abs(distance) < DOUBT):
        off = abs(Fraction(int(tried[doubtful]))) - middle
        exact = off * off / (2 * sigma * sigma)
        bound = EXACT.exp(-EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
        low, high = (int(word) for word in more(2))
        bits = int(drawn[doubtful]) << 128 | high << 64 | low
        accepted[doubtful] = bits < int(EXACT.multiply(bound, Decimal(1 << 192)))
    return accepted
