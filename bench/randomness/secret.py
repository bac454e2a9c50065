"""A 256-bit secret, and the secrets and streams that are derived from it by name."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Self

import torch
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.poly1305 import Poly1305

from bench.randomness.stream import Stream

SECRET_BYTES = 32
HASHED_ROWS = 256


@dataclass(frozen=True)
class Secret:
    """32 bytes that nobody can guess. They are left out of its text.

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
        """A secret that is none, for keys that are simulated or tested: whoever knows the seed knows it."""
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
        """Another secret, by name (HKDF-Expand, RFC 5869); it tells nothing of this one or of others."""
        return Secret(HKDFExpand(SHA256(), SECRET_BYTES, b"veil-bench secret" + _text(names)).derive(self.content))

    def stream(self, *names: str | int) -> Stream:
        """The stream of that name, from its beginning."""
        return Stream(self.derive("stream", *names).content)

    def bound_to(self, samples: torch.Tensor) -> Secret:
        """Another secret for every content and shape of `samples`, float32 or any other kind.

        Two releases of one owner must never share their noise: their difference would be free of it. Rows are hashed by
        Poly1305 under a key of their own, whose collisions nobody can look for who does not hold this secret.
        """
        tag = Poly1305(self.derive("content").content)
        for part in torch.split(samples, HASHED_ROWS):  # rows may lie on disk
            tag.update(part.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        return self.derive("bound", str(samples.dtype), *samples.shape, tag.finalize().hex())

    def number(self) -> int:
        """A seed below 2^63, for draws that nobody may foresee and that need no more than a seed."""
        return int.from_bytes(self.derive("number").content[:8], "big") >> 1

    def commitment(self) -> str:
        """64 hex digits that tell nothing of the secret, and that no other secret has."""
        return self.derive("commitment").content.hex()


def _text(names: tuple[str | int, ...]) -> bytes:
    """Names as bytes, so that no two lists of names have the same."""
    return json.dumps(names).encode()


def _size(content: object) -> str:
    return f"{len(content)}" if isinstance(content, bytes) else type(content).__name__
