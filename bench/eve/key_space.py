"""Eve, the attacker, estimates a scheme's number of keys and enumerates them.

A key that is made from few bits can be found by trying them all. Three observations bound their number: bits of a key's
state that never vary from key to key; bits that vary without effect; and keys with the same effect under two secrets
(Chao 1984: the counts of keys that were met once and twice estimate the number of all).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from bench.randomness import SECRET_BYTES, Secret
from bench.types import Key, Scheme, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWN, FEWEST_DRAWN = 1024, 64
NUMBERS = 1 << 22  # of all states that are looked at: fewer of large ones
CLOSE = 2  # bits by which that count may be wrong: going through all keys in turn is sure to meet every one
ROUNDS = 8  # times as many keys as there are, drawn at random: exp(-8) of them are left out
HOPELESS = 64  # keys that are tried where trying is for the measure of it
SECRET_BITS = 8 * SECRET_BYTES
WHOLE = 62  # bits of a number that patterns are counted by
UNFIT = (ValueError, IndexError, RuntimeError)  # what a key may raise that a changed state describes

Bytes: TypeAlias = "NDArray[np.uint8]"
Shown = Callable[[Key], bytes]


@dataclass(frozen=True, eq=False)
class KeySpace:
    """The keys of a scheme.

    Args:
        bits: Binary logarithm of the number of keys, at most.
        basis: The evidence for `bits`, in words.
        keys: All of them in turn; or more and more, drawn at random; or a few of too many.
        drawn, different: Keys that Eve drew, and how many of them did different things.
    """

    bits: float
    basis: str
    keys: Callable[[], Iterator[Key]]
    drawn: int
    different: int


def survey(scheme: Scheme, seed: int, shown: Shown) -> KeySpace:
    """The keys of a scheme: their number, and a way through them.

    Args:
        scheme: The scheme of the keys.
        seed: Draws the secrets of Eve's keys.
        shown: The effect of a key, in bytes: keys with equal effects are the same to Eve.
    """
    first = scheme.sample_key(Secret.of_seed(seed, "space", 0))
    size = sum(tensor.numel() for tensor in first.state().values())
    if not size:
        return KeySpace(0.0, "keys hold no secret", lambda: iter((first,)), 1, 1)
    drawn = min(DRAWN, max(FEWEST_DRAWN, NUMBERS // size))
    keys = [scheme.sample_key(Secret.of_seed(seed, "space", number)) for number in range(drawn)]
    done = [shown(key) for key in keys]
    times = Counter(done)
    # The key whose doing is rarest comes first: bits are tried on it, and of one that does nothing none would count.
    ranked = sorted(range(drawn), key=lambda number: times[done[number]])
    places = _relevant(scheme, [keys[number].state() for number in ranked], shown)
    born = math.log2(_unseen(times) + len(times))
    if len(places) <= min(born + CLOSE, WHOLE):
        return KeySpace(
            len(places), "bits of a key's state that vary and count",
            lambda: _patterns(scheme, first.state(), places), drawn, len(times),
        )  # fmt: skip
    if born < math.inf:
        draws = round(ROUNDS * 2**born)
        return KeySpace(
            born, "keys that do the same under two secrets",
            lambda: (scheme.sample_key(Secret.of_seed(seed, "space", number)) for number in range(draws)),
            drawn, len(times),
        )  # fmt: skip
    bits = min(len(places), SECRET_BITS)
    return KeySpace(
        bits, "bits of a key's state or secret; no two keys met", lambda: iter(keys[:HOPELESS]), drawn, len(times)
    )


def _unseen(times: Counter[bytes]) -> float:
    """Number of keys that were not drawn; infinity if none came twice.

    One that comes again and again among many that do not says nothing of these: some keys do nothing to a lone row.
    """
    once, twice = (sum(n == wanted for n in times.values()) for wanted in (1, 2))
    if not twice and once > len(times) / 2:
        return math.inf
    return once * (once - 1) / (2 * (twice + 1))


def _relevant(scheme: Scheme, states: list[State], shown: Shown) -> NDArray[np.int64]:
    """Bits that vary over keys and, if few, change a key's effect."""
    lengths = {len(_bytes(state)) for state in states}
    if len(lengths) > 1:  # of no fixed shape: every bit of the secret may count
        return np.arange(SECRET_BITS)
    content = np.stack([_bytes(state) for state in states])
    varies = np.flatnonzero(np.unpackbits(np.bitwise_or.reduce(content ^ content[0])))
    if len(varies) > SECRET_BITS:
        return varies
    usual = shown(scheme.load_key(states[0]))
    return np.array(
        [place for place in varies if _changes(scheme, states[0], int(place), shown, usual)], dtype=np.int64
    )


def _changes(scheme: Scheme, state: State, place: int, shown: Shown, usual: bytes) -> bool:
    bits = np.unpackbits(_bytes(state))
    bits[place] ^= 1
    try:
        return shown(scheme.load_key(_state(state, np.packbits(bits)))) != usual
    except UNFIT:
        return True


def _patterns(scheme: Scheme, state: State, places: NDArray[np.int64]) -> Iterator[Key]:
    """Keys of every pattern of the bits at `places`, without invalid ones."""
    bits = np.unpackbits(_bytes(state))
    shifts = np.arange(len(places))
    for number in range(1 << len(places)):
        bits[places] = number >> shifts & 1
        try:
            key = scheme.load_key(_state(state, np.packbits(bits)))
        except UNFIT:
            continue
        yield key


def _bytes(state: State) -> Bytes:
    parts = [state[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() for name in sorted(state)]
    return np.concatenate(parts)


def _state(like: State, content: Bytes) -> State:
    """Tensors of the kinds and shapes of `like` that hold those bytes."""
    tensors, start = {}, 0
    for name in sorted(like):
        tensor = like[name]
        size = tensor.numel() * tensor.element_size()
        part = torch.from_numpy(content[start : start + size].copy())
        tensors[name] = part.view(tensor.dtype).view(tensor.shape).to(tensor.device)
        start += size
    return tensors
