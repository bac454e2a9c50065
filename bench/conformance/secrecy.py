"""Whether a key can be guessed: how much its state holds, and whether keys of different secrets meet.

A method that feeds its secret to a generator of few bits has few keys. Of 2^16 keys, two of 1,024 are the same in all
but 3 of 10,000 cases (birthdays); of 2^32, in 1 of 10,000, so that a state must hold 128 bits besides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from bench.conformance.outcome import Skip, require
from bench.randomness import Secret
from bench.types import Scheme, State

DRAWN, FEWEST_DRAWN = 1024, 64
NUMBERS = 1 << 22  # of all keys that are drawn: fewer of large ones
FEWEST_BYTES = 16


def check_secrets(scheme: Scheme) -> None:
    """Raise ContractError for keys that hold too little to be secret, or that come again; Skip where none is."""
    first = scheme.sample_key(Secret.of_seed(0, "space")).state()
    if not first:
        raise Skip("its keys hold no secret")
    size = sum(tensor.numel() * tensor.element_size() for tensor in first.values())
    require(
        size >= FEWEST_BYTES,
        f"a key's state holds {8 * size} bits, and whoever tries them all has the key: keep a secret of 256 "
        "(`Secret.tensor`), not a seed",
    )
    numbers = sum(tensor.numel() for tensor in first.values())
    drawn = min(DRAWN, max(FEWEST_DRAWN, NUMBERS // numbers))
    different = len(set(_digests(scheme, drawn)))
    require(
        different == drawn,
        f"{drawn} secrets gave only {different} different keys: its keys come from few bits (torch's generator keeps "
        "32 of a seed); draw from `secret.stream(NAME)`",
    )


def _digests(scheme: Scheme, count: int) -> Iterator[bytes]:
    for number in range(count):
        yield _digest(scheme.sample_key(Secret.of_seed(number, "space")).state())


def _digest(state: State) -> bytes:
    found = hashlib.sha256()
    for name in sorted(state):
        found.update(name.encode() + state[name].detach().cpu().contiguous().numpy().tobytes())
    return found.digest()
