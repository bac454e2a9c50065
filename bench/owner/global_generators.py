"""Global random generators under a secret, for code that draws from them.

The code of papers' authors draws keys and noise from the generators of Python, numpy and torch. A seed would leave them
32 bits, which an attacker can try; here their whole state comes from a secret. They are Mersenne Twisters all the
same: 624 numbers that somebody sees give the rest away. On CUDA, torch's generator keeps 63 bits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from bench.randomness import Secret

WORDS = 624
"""Words of 32 bits in the state of a Mersenne Twister."""
HEAD_BYTES = 24
"""Before the words in torch's state, which holds each in 8 bytes: seed, numbers left, and place."""


@contextmanager
def drawn_from(secret: Secret) -> Iterator[None]:
    """Let global generators draw by a secret, and restore them.

    Those of Python, numpy and torch.

    >>> with drawn_from(Secret(bytes(32))):
    ...     first = torch.rand(1), np.random.rand(), random.random()
    >>> with drawn_from(Secret(bytes(32))):
    ...     first == (torch.rand(1), np.random.rand(), random.random())
    True
    """
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    words = {name: _words(secret, name) for name in ("python", "numpy", "torch")}
    random.setstate((3, (*words["python"].tolist(), WORDS), None))
    np.random.set_state(("MT19937", words["numpy"], WORDS, 0, 0.0))
    # The state of a fresh generator, all of its words used up: the next number makes new ones.
    state = torch.Generator().get_state().numpy().copy()
    state[HEAD_BYTES : HEAD_BYTES + 8 * WORDS] = words["torch"].astype("<u8").view(np.uint8)
    torch.set_rng_state(torch.from_numpy(state))
    if cuda is not None:
        torch.cuda.manual_seed_all(secret.derive("cuda").number())
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def _words(secret: Secret, name: str) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The words of a generator's state (624,)."""
    return secret.stream(name).words(WORDS).astype(np.uint32)
