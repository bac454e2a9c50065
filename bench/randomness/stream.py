"""A stream of random numbers from a cipher: the same key gives the same numbers on every machine and any torch version.

Bits are those of AES-256 in counter mode. What is made of them uses integers, and of floating point only operations
that IEEE 754 defines to the last bit (see `bench.randomness.portable`), so that neither the processor's vector units
nor the version of a library shows. Numbers are made on the CPU; the caller moves them to a device.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from bench.randomness import portable
from bench.randomness.discrete import discrete_gaussian, discrete_laplace

CHUNK = 1 << 16  # numbers that are made at a time: they stay in the processor's cache


class Stream:
    """Numbers in order; each call goes on where the one before ended.

    Args:
        key: 32 bytes. Two streams of one key are the same stream.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def bytes(self, count: int) -> NDArray[np.uint8]:
        """(count,) uint8."""
        return np.frombuffer(self._cipher.update(bytes(count)), dtype=np.uint8)

    def words(self, count: int) -> NDArray[np.uint64]:
        """(count,) uint64."""
        return self.bytes(8 * count).view("<u8")

    def integers(self, below: int, *shape: int) -> torch.Tensor:
        """int64 of that shape, uniform in 0 .. below - 1 (Lemire 2019, with rejection: no value is likelier).

        Raises ValueError unless `below` is from 1 to 2^32.
        """
        if not 1 <= below <= 1 << 32:
            raise ValueError(f"below must be from 1 to 2^32, got {below}")
        count = math.prod(shape)
        words = self.bytes(4 * count).view("<u4").astype(np.uint64) * np.uint64(below)
        unfair = (1 << 32) % below
        while len(again := np.flatnonzero((words & np.uint64(0xFFFFFFFF)) < unfair)):
            words[again] = self.bytes(4 * len(again)).view("<u4").astype(np.uint64) * np.uint64(below)
        return torch.from_numpy((words >> np.uint64(32)).astype(np.int64)).view(shape)

    def permutation(self, n: int) -> torch.Tensor:
        """(n,) int64: 0 .. n - 1 in random order."""
        keys = self.words(n)
        while len(np.unique(keys)) < n:  # equal keys would leave their rows in order
            keys = self.words(n)
        return torch.from_numpy(np.argsort(keys, kind="stable"))

    def signs(self, *shape: int) -> torch.Tensor:
        """int8 of that shape: -1 or 1, a bit each."""
        count = math.prod(shape)
        bits = np.unpackbits(self.bytes(-(-count // 8)), count=count).view(np.int8)
        return torch.from_numpy(bits * np.int8(2) - np.int8(1)).view(shape)

    def uniform(self, *shape: int) -> torch.Tensor:
        """float64 of that shape, odd multiples of 2^-53 in (0, 1): never 0, never 1, symmetric about 1/2."""
        return self._made(portable.uniform, shape)

    def normal(self, *shape: int) -> torch.Tensor:
        """float64 of that shape: Gaussian numbers of mean 0 and variance 1, cut at 8.2 (inverse of the distribution).

        Not for noise that a privacy claim rests on: see `bench.randomness.grid`.
        """
        return self._made(portable.normal, shape)

    def exponential(self, *shape: int) -> torch.Tensor:
        """float64 of that shape: exponential numbers of mean 1, at most 37. Not for noise that a claim rests on."""
        return self._made(portable.exponential, shape)

    @staticmethod
    def rows_apart(numbers: int) -> int:
        """Rows of so many Laplace numbers each that can be drawn at a time, and are those that one call would draw."""
        return CHUNK // math.gcd(CHUNK, numbers)

    def laplace_integers(self, scale: Fraction, *shape: int) -> torch.Tensor:
        """int64 of that shape: k with probability proportional to exp(-|k| / scale), exactly (see `discrete`)."""
        return torch.from_numpy(discrete_laplace(self.bytes, self.words, scale, math.prod(shape))).view(shape)

    def gaussian_integers(self, sigma: Fraction, *shape: int) -> torch.Tensor:
        """int64 of that shape: k with probability proportional to exp(-k^2 / 2 sigma^2), exactly (see `discrete`)."""
        return torch.from_numpy(discrete_gaussian(self.bytes, self.words, sigma, math.prod(shape))).view(shape)

    def _made(self, make: portable.Maker, shape: tuple[int, ...]) -> torch.Tensor:
        found = np.empty(math.prod(shape))
        for start in range(0, len(found), CHUNK):
            part = found[start : start + CHUNK]
            part[:] = make(self.words(len(part)))
        return torch.from_numpy(found).view(shape)
