"""Real random numbers from words of 64 bits, to the same last bit on every machine.

Vector units and libraries differ in the last bits of logarithm and exponential. Here both are made of sums, products,
quotients and roots, which IEEE 754 rounds in one way only; numpy does not fuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Maker = Callable[[NDArray[np.uint64]], Numbers]

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
    found = from_middle * _ratio(0.180625 - from_middle * from_middle, MIDDLE)
    tail = np.flatnonzero(np.abs(from_middle) > 0.425)
    far = np.sqrt(-logarithm(np.minimum(chance[tail], 1.0 - chance[tail])))
    size = np.where(far <= 5.0, _ratio(far - 1.6, NEAR), _ratio(far - 5.0, FAR))
    found[tail] = np.copysign(size, from_middle[tail])
    return found


def logarithm(values: Numbers) -> Numbers:
    """The natural logarithm of positive, finite numbers, to about 1e-16 of their size.

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
    above, below = (_polynomial(at, each) for each in of)
    return above / below


def _polynomial(at: Numbers, coefficients: Sequence[float]) -> Numbers:
    found = np.full_like(at, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        found *= at
        found += coefficient
    return found
