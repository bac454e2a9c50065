"""Checks of a published generator."""

from __future__ import annotations

import torch

from bench.conformance.outcome import Skip, require
from bench.contract.seal import check
from bench.types import Dataset, Generator, Release, Scheme

DRAWN = 20


def check_draws(made: Generator, release: Release, private: Dataset) -> None:
    """It draws as many rows as it is asked for, like those of the release, and refuses to draw none."""
    for count in (1, 7, len(private) + 5):
        drawn = made.sample(count, 3)
        check(drawn, private)
        require(drawn.links is None and drawn.generator is None, "a generator's rows have neither links nor generator")
        shape = (count, *release.samples.shape[1:])
        require(tuple(drawn.samples.shape) == shape, f"asked for rows {shape}, drew {tuple(drawn.samples.shape)}")
        require((drawn.labels is None) == (release.labels is None), "draws must have labels if the release has any")
    try:
        made.sample(0, 3)
    except ValueError:
        return
    require(False, "sample(0) must raise ValueError")


def check_seeds(made: Generator) -> None:
    """The same seed gives the same rows, another seed others. Raises Skip where all its rows are the same."""
    first, again, other = (made.sample(DRAWN, seed) for seed in (3, 3, 4))
    require_equal(first, again, "two draws with one seed")
    if bool((first.samples == first.samples[:1]).all()):
        raise Skip("all its rows are the same")
    require(not torch.equal(first.samples, other.samples), "two seeds gave the same rows")


def check_states(made: Generator, scheme: Scheme) -> None:
    """Its state gives an equal generator, and a state with an unknown tensor is refused."""
    state = dict(made.state())
    require_equal(made.sample(DRAWN, 3), scheme.load_generator(state).sample(DRAWN, 3), "a generator and its state")
    try:
        scheme.load_generator({**state, "unheard-of": torch.zeros(1)})
    except ValueError:
        return
    require(False, "load_generator must raise ValueError for a state with an unknown name")


def require_equal(first: Release, second: Release, what: str) -> None:
    """Raise ContractError unless the two have the same rows, labels and links, bit by bit."""
    for part in ("samples", "labels", "links"):
        x, y = getattr(first, part), getattr(second, part)
        same = x is None and y is None if x is None or y is None else torch.equal(x.nan_to_num(-1), y.nan_to_num(-1))
        require(same, f"{what} gave different {part}")
