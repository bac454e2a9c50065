"""Secrets of 256 bits, and their streams of random numbers.

Bits are those of AES-256 in counter mode. Numbers are made of them by integers, and by floating-point operations that
IEEE 754 defines to the last bit (see `bench.randomness.distributions`), so the same key gives the same numbers on every
machine and any version of a library. Numbers are made on the CPU; the caller moves them to a device. Secrets and
streams are derived by name.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.poly1305 import Poly1305

from bench.randomness.distributions import Maker, discrete_gaussian, discrete_laplace, exponential, normal, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        """int64, uniform below `below`, by exact rejection (Lemire 2019).

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
        """float64 of that shape: odd multiples of 2^-53 in (0, 1), symmetric."""
        return self._made(uniform, shape)

    def normal(self, *shape: int) -> torch.Tensor:
        """float64, standard normal, cut at 8.2; not for noise of a claim."""
        return self._made(normal, shape)

    def exponential(self, *shape: int) -> torch.Tensor:
        """float64, exponential of mean 1; not for noise of a claim."""
        return self._made(exponential, shape)

    @staticmethod
    def rows_apart(numbers: int) -> int:
        """Most rows of `numbers` Laplace draws per chunk that equal one call's."""
        return CHUNK // math.gcd(CHUNK, numbers)

    def laplace_integers(self, scale: Fraction, *shape: int) -> torch.Tensor:
        """int64 of that shape, P(k) ~ exp(-|k| / scale), exactly."""
        return torch.from_numpy(discrete_laplace(self.bytes, self.words, scale, math.prod(shape))).view(shape)

    def gaussian_integers(self, sigma: Fraction, *shape: int) -> torch.Tensor:
        """int64 of that shape, P(k) ~ exp(-k^2 / 2 sigma^2), exactly."""
        return torch.from_numpy(discrete_gaussian(self.bytes, self.words, sigma, math.prod(shape))).view(shape)

    def _made(self, make: Maker, shape: tuple[int, ...]) -> torch.Tensor:
        numbers = np.empty(math.prod(shape))
        for start in range(0, len(numbers), CHUNK):
            part = numbers[start : start + CHUNK]
            part[:] = make(self.words(len(part)))
        return torch.from_numpy(numbers).view(shape)


SECRET_BYTES = 32
HASHED_ROWS = 256


@dataclass(frozen=True)
class Secret:
    """32 secret bytes, left out of its text.

    Args:
        content: The bytes.

    >>> a = Secret(bytes(32))
    >>> a.derive("key", 3) == a.derive("key", 3), a.derive("key", 3) == a.derive("key", 4), a
    (True, False, Secret())
    """

    content: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.content, bytes) or len(self.content) != SECRET_BYTES:
            raise ValueError(f"a secret must be {SECRET_BYTES} bytes, got {_size(self.content)}")

    @classmethod
    def fresh(cls) -> Self:
        """A new secret from the operating system."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    @classmethod
    def of_seed(cls, seed: int, *names: str | int) -> Self:
        """A simulated secret for tests; the seed determines it."""
        return cls(hashlib.sha256(b"simulated" + _text((seed, *names))).digest())

    @classmethod
    def load(cls, state: torch.Tensor) -> Self:
        """The secret that `tensor` gave. Raises ValueError for anything but uint8 (32,)."""
        if state.dtype != torch.uint8 or tuple(state.shape) != (SECRET_BYTES,):
            raise ValueError(
                f"a secret must be uint8 of shape ({SECRET_BYTES},), got {state.dtype} {tuple(state.shape)}"
            )
        return cls(bytes(state.tolist()))

    def tensor(self) -> torch.Tensor:
        """uint8 (32,), for `Key.state`."""
        return torch.tensor(list(self.content), dtype=torch.uint8)

    def derive(self, *names: str | int) -> Secret:
        """Another secret, by name (HKDF-Expand, RFC 5869), revealing no other one."""
        return Secret(HKDFExpand(SHA256(), SECRET_BYTES, b"veil-bench secret" + _text(names)).derive(self.content))

    def stream(self, *names: str | int) -> Stream:
        """The stream of that name, from its beginning."""
        return Stream(self.derive("stream", *names).content)

    def bound_to(self, samples: torch.Tensor) -> Secret:
        """Another secret for every content, shape and dtype of `samples`.

        Two releases of one owner must never share their noise: their difference would be free of it. Collisions
        of the hash (Poly1305 under a key of its own) cannot be found without this secret.
        """
        tag = Poly1305(self.derive("content").content)
        for part in torch.split(samples, HASHED_ROWS):  # rows may lie on disk
            tag.update(part.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        return self.derive("bound", str(samples.dtype), *samples.shape, tag.finalize().hex())

    def number(self) -> int:
        """A seed below 2^63, for unpredictable draws that need only a seed."""
        return int.from_bytes(self.derive("number").content[:8], "big") >> 1

    def commitment(self) -> str:
        """64 hex digits that identify the secret and reveal nothing of it."""
        return self.derive("commitment").content.hex()


def _text(names: tuple[str | int, ...]) -> bytes:
    """Names as bytes, unique to the list of names."""
    return json.dumps(names).encode()


def _size(content: object) -> str:
    return f"{len(content)}" if isinstance(content, bytes) else type(content).__name__
