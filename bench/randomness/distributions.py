"""Distributions from 64-bit words, with the same bits on every machine.

Vector units and libraries differ in the last bits of logarithm and exponential. Here both are made of sums, products,
quotients and roots, which IEEE 754 rounds in one way only; numpy does not fuse them.

Discrete Laplace and Gaussian numbers: whole numbers whose probabilities are what they are said to be.

Source: Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020). The Laplace number is drawn
otherwise than there, for speed: the binary digits of a geometric number are independent, digit i being 1 with the
probability 1 / (1 + exp(2^i / scale)), so that whole arrays are drawn digit by digit. A digit compares a byte with the
first byte of its probability; where the two are equal (1 in 256), with further words, up to 200 bits in all. The
distribution is that of the formula to less than 2^-190 (total variation), and no real number is rounded anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"
Maker: TypeAlias = "Callable[[NDArray[np.uint64]], Numbers]"

LN_2 = 0.6931471805599453
TERMS = 12  # of the series of the logarithm: what is left out is below 2^-60
# Wichura, Algorithm AS 241 (1988), PPND16: numerators and denominators by rising power, for the middle of the
# distribution and for its near and far tails; relative error about 1e-16.
MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
NEAR = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def uniform(words: NDArray[np.uint64]) -> Numbers:
    """Odd multiples of 2^-53 in (0, 1)."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def exponential(words: NDArray[np.uint64]) -> Numbers:
    """Exponential numbers of mean 1."""
    return -logarithm(uniform(words))


def normal(words: NDArray[np.uint64]) -> Numbers:
    """Gaussian numbers of mean 0 and variance 1."""
    chance = uniform(words)
    from_middle = chance - 0.5
    numbers = from_middle * _ratio(0.180625 - from_middle * from_middle, MIDDLE)
    tail = np.flatnonzero(np.abs(from_middle) > 0.425)
    far = np.sqrt(-logarithm(np.minimum(chance[tail], 1.0 - chance[tail])))
    size = np.where(far <= 5.0, _ratio(far - 1.6, NEAR), _ratio(far - 5.0, FAR))
    numbers[tail] = np.copysign(size, from_middle[tail])
    return numbers


def logarithm(values: Numbers) -> Numbers:
    """Natural logarithm of positive finite numbers, relative error about 1e-16.

    >>> float(logarithm(np.array([1.0]))[0])
    0.0
    """
    mantissa, exponent = np.frexp(values)
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, mantissa + mantissa, mantissa)
    exponent = exponent - low
    part = (mantissa - 1.0) / (mantissa + 1.0)
    square = part * part
    series = np.full_like(square, 1.0 / (2 * TERMS - 1))
    for term in range(TERMS - 2, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return exponent * LN_2 + 2.0 * part * series


def _ratio(at: Numbers, of: tuple[Sequence[float], Sequence[float]]) -> Numbers:
    above, below = (_polynomial(at, part) for part in of)
    return above / below


def _polynomial(at: Numbers, coefficients: Sequence[float]) -> Numbers:
    value = np.full_like(at, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= at
        value += coefficient
    return value


Bytes: TypeAlias = "Callable[[int], NDArray[np.uint8]]"
Words: TypeAlias = "Callable[[int], NDArray[np.uint64]]"
Whole: TypeAlias = "NDArray[np.int64]"

PRECISION = 200  # bits of a probability: one byte, then three words
EXACT = Context(prec=110)
CHUNK = 1 << 16
DOUBT = 2.0**-40  # far beyond the error of float64 in a probability of acceptance
LARGEST = 1 << 40


def discrete_laplace(draw: Bytes, more: Words, scale: Fraction, count: int) -> Whole:
    """(count,) int64: P(k) proportional to exp(-|k| / scale), scale <= 2^40."""
    _check("scale", scale)
    digits = _digits(scale)
    numbers = np.empty(count, dtype=np.int64)
    for start in range(0, count, CHUNK):
        part = numbers[start : start + CHUNK]
        _signed(draw, more, digits, part)
    return numbers


def discrete_gaussian(draw: Bytes, more: Words, sigma: Fraction, count: int) -> Whole:
    """(count,) int64, P(k) proportional to exp(-k^2 / (2 sigma^2)), by algorithm 3."""
    _check("sigma", sigma)
    scale = Fraction(math.floor(sigma) + 1)
    numbers = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        tried = discrete_laplace(draw, more, scale, min(CHUNK, int(1.5 * (count - done)) + 16))
        accepted = tried[_accepted(more, tried, sigma, scale)][: count - done]
        numbers[done : done + len(accepted)] = accepted
        done += len(accepted)
    return numbers


def _check(what: str, value: Fraction) -> None:
    if not 0 < value <= LARGEST:
        raise ValueError(
            f"{what} must be above 0 and at most 2^40 steps of the grid, got {float(value):g}: where it follows from "
            "an epsilon, choose a larger one"
        )


@lru_cache(maxsize=64)
def _digits(scale: Fraction) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """First byte and words of each binary digit's probability, lowest first."""
    digits: list[tuple[int, tuple[int, ...]]] = []
    while True:
        power = EXACT.divide(Decimal(scale.denominator << len(digits)), Decimal(scale.numerator))
        if power > PRECISION:
            return tuple(digits)
        chance = EXACT.divide(Decimal(1), EXACT.add(Decimal(1), EXACT.exp(power)))
        bits = int(EXACT.multiply(chance, Decimal(1 << PRECISION)))
        words = tuple(bits >> shift & (1 << 64) - 1 for shift in (128, 64, 0))
        digits.append((bits >> 192, words))


def _signed(draw: Bytes, more: Words, digits: tuple[tuple[int, tuple[int, ...]], ...], out: Whole) -> None:
    """Fill `out` with geometric numbers of random sign; -0 is drawn again."""
    wanted = np.arange(len(out))
    while len(wanted):
        size = _geometric(draw, more, digits, len(wanted))
        negative = draw(len(wanted)) >= 128
        out[wanted] = np.where(negative, -size, size)
        wanted = wanted[negative & (size == 0)]


def _geometric(draw: Bytes, more: Words, digits: tuple[tuple[int, tuple[int, ...]], ...], count: int) -> Whole:
    """(count,) int64: k with probability proportional to exp(-k / scale)."""
    numbers = np.zeros(count, dtype=np.int64)
    for start in range(0, len(digits), 8):
        eight = np.zeros(count, dtype=np.uint8)
        for place, (first, words) in enumerate(digits[start : start + 8]):
            bytes_ = draw(count)
            digit = bytes_ < first
            tied = np.flatnonzero(bytes_ == first)
            if len(tied):
                digit[tied] = _below(more, words, len(tied))
            eight |= digit.view(np.uint8) << np.uint8(place)
        numbers |= eight.astype(np.int64) << np.int64(start)
    return numbers


def _below(more: Words, words: tuple[int, ...], count: int) -> NDArray[np.bool_]:
    """(count,) bool: whether random bits are below `words`, the first word first."""
    below = np.zeros(count, dtype=bool)
    open_ = np.arange(count)
    for word in words:
        drawn = more(len(open_))
        below[open_] = drawn < np.uint64(word)
        open_ = open_[drawn == np.uint64(word)]
        if not len(open_):
            break
    return below


def _accepted(more: Words, tried: Whole, sigma: Fraction, scale: Fraction) -> NDArray[np.bool_]:
    """(count,) bool, true with probability exp(-(|k| - sigma^2/scale)^2 / (2 sigma^2)), exactly."""
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
