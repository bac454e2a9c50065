"""What every other check of a method takes for granted: it fits, draws keys, releases, and does so again alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from bench.conformance.cause import blaming
from bench.conformance.fitted import Fits, method_of
from bench.conformance.generators import require_equal
from bench.conformance.outcome import require
from bench.contract.seal import ContractError, fingerprint
from bench.types import Dataset, Key


def can_be_built(fits: Fits) -> None:
    """It takes its parameters."""
    method_of(fits.spec)


def fits_public_rows(fits: Fits) -> None:
    """Fitting public rows gives a scheme, whose state are tensors."""
    setting = fits()
    with blaming(type(setting.scheme).state):
        state = setting.scheme.state()
        require(_are_tensors(state), f"Scheme.state must return tensors by name, got {state!r:.80}")


def draws_keys(fits: Fits) -> None:
    """The scheme gives keys, whose state are tensors."""
    key = fits.key(fits())
    with blaming(type(key).state):
        state = key.state()
        require(_are_tensors(state), f"Key.state must return tensors by name, got {state!r:.80}")


def release_is_well_formed(fits: Fits) -> None:
    """A key releases rows as the contract has them."""
    fits.release(fits())


def inputs_stay_untouched(fits: Fits) -> None:
    """Nothing writes into what it is given."""
    setting = fits.fresh()
    key = fits.key(setting)
    steps: list[tuple[object, Callable[[], object]]] = [
        (type(setting.method).fit, lambda: None),
        (type(key).release, lambda: key.release(setting.private)),
        (type(key).query, lambda: key.query(setting.private.samples)),
    ]
    for work, step in steps:
        with blaming(work):
            step()
            after = fingerprint(setting.public), fingerprint(setting.private)
            require(after == setting.before, f"{getattr(work, '__name__', '')} wrote into its input: work on a copy")


def one_key_one_release(fits: Fits) -> None:
    """Under one key the same rows are released alike, as often as that is asked."""
    setting = fits()
    key = fits.key(setting)
    with blaming(type(key).release):
        first, second = key.release(setting.private), key.release(setting.private)
        try:
            require_equal(first, second, "release")
        except ContractError as error:
            raise ContractError(
                "release gives something else each time that it is called under one key: draw from the key's secret "
                f"(`secret.stream(NAME)`), and from nothing else ({error})"
            ) from None
    with blaming(type(key).query):
        same = torch.equal(key.query(setting.private.samples), key.query(setting.private.samples))
        require(same, "query gives something else each time that it is called under one key")


def same_seed_same_bits(fits: Fits) -> None:
    """Two fits with one seed give schemes that release alike."""
    first, second = fits(), fits.fresh()
    with blaming(type(first.method).fit):
        same(fits.key(first), fits.key(second), first.private, "two fits with one seed")


def _are_tensors(state: object) -> bool:
    return isinstance(state, Mapping) and all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in state.items()
    )


def same(a: Key, b: Key, private: Dataset, what: str) -> None:
    """Raise ContractError unless both keys release and encode alike."""
    require_equal(a.release(private), b.release(private), what)
    require(torch.equal(a.query(private.samples), b.query(private.samples)), f"{what} gave different queries")


CORE: Mapping[str, Callable[[Fits], None]] = {
    "can be built": can_be_built,
    "fits public rows": fits_public_rows,
    "draws keys": draws_keys,
    "release is well-formed": release_is_well_formed,
    "inputs stay untouched": inputs_stay_untouched,
    "one key, one release": one_key_one_release,
    "same seed, same bits": same_seed_same_bits,
}
"""Each of them takes those before it for granted."""
