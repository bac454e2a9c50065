"""A method fitted on small random rows: what its checks share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

import torch

from bench.conformance.outcome import PRESET, Skip, blaming, require, sample_data
from bench.contract.seal import ContractError, check, fingerprint
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.randomness import Secret
from bench.seeds import derive
from bench.types import Dataset, Generator, Key, Method, NotApplicable, Release, Scheme, State

Kind = Literal["images", "table"]


def method_of(spec: PluginSpec) -> Method:
    """The method at the smallest preset. Raises UsageError."""
    return cast(Method, registry.build("methods", spec, PRESET))


@dataclass(frozen=True, eq=False)
class Setting:
    """A method fitted on small random rows of a kind.

    `before` are fingerprints of its public and private rows before the fit.
    """

    kind: Kind
    method: Method
    scheme: Scheme
    public: Dataset
    private: Dataset
    before: tuple[str, str]


class Fits:
    """The method, fitted once for all its checks, since training costs most.

    Args:
        spec: Of the method.
        device: Of the rows.
    """

    def __init__(self, spec: PluginSpec, device: torch.device) -> None:
        self.spec, self.device = spec, device
        self._kept: dict[Kind | None, Setting] = {}

    def __call__(self, kind: Kind | None = None) -> Setting:
        """The shared fit, with private rows that a method may spoil."""
        if kind not in self._kept:
            self._kept[kind] = self.fresh(kind)
        kept = self._kept[kind]
        public, private = self._rows(kept.kind)
        return replace(kept, public=public, private=private)

    def fresh(self, kind: Kind | None = None) -> Setting:
        """A new fit on images; on tables if the method refuses those.

        `kind` decides if it is given.
        """
        if kind is None:
            try:
                return self.fresh("images")
            except NotApplicable:
                return self.fresh("table")
        method = method_of(self.spec)
        public, private = self._rows(kind)
        before = fingerprint(public), fingerprint(private)
        with blaming(type(method).fit):
            scheme = method.fit(public, derive(0, "fit"))
            require(isinstance(scheme, Scheme), f"fit must return a Scheme, got {type(scheme).__name__}")
        return Setting(kind, method, scheme, public, private, before)

    def key(self, setting: Setting, seed: int = 1) -> Key:
        """A key of the scheme's."""
        with blaming(type(setting.scheme).sample_key):
            key = setting.scheme.sample_key(Secret.of_seed(seed))
            require(isinstance(key, Key), f"sample_key must return a Key, got {type(key).__name__}")
        return key

    def release(self, setting: Setting) -> Release:
        """The setting's private rows, released under one of its keys."""
        key = self.key(setting)
        with blaming(type(key).release):
            release = key.release(setting.private)
            require(isinstance(release, Release), f"release must return a Release, got {type(release).__name__}")
            check(release, setting.private)
            require(not release.samples.requires_grad, "released samples carry gradients: detach them")
        return release

    def _rows(self, kind: Kind) -> tuple[Dataset, Dataset]:
        public, private = (sample_data(kind, seed=seed).to(self.device) for seed in (1, 2))
        return public, private


DRAWN = 20


def check_draws(made: Generator, release: Release, private: Dataset) -> None:
    """It draws the requested number of rows, and refuses to draw none."""
    for count in (1, 7, len(private) + 5):
        rows = made.sample(count, 3)
        check(rows, private)
        require(rows.links is None and rows.generator is None, "a generator's rows have neither links nor generator")
        shape = (count, *release.samples.shape[1:])
        require(tuple(rows.samples.shape) == shape, f"asked for rows {shape}, drew {tuple(rows.samples.shape)}")
        require((rows.labels is None) == (release.labels is None), "draws must have labels if the release has any")
    try:
        made.sample(0, 3)
    except ValueError:
        return
    require(False, "sample(0) must raise ValueError")


def check_seeds(made: Generator) -> None:
    """Equal seeds give equal rows, other seeds others.

    Raises Skip if all its rows are the same.
    """
    first, again, other = (made.sample(DRAWN, seed) for seed in (3, 3, 4))
    require_equal(first, again, "two draws with one seed")
    if bool((first.samples == first.samples[:1]).all()):
        raise Skip("all its rows are the same")
    require(not torch.equal(first.samples, other.samples), "two seeds gave the same rows")


def check_states(made: Generator, scheme: Scheme) -> None:
    """Its state gives an equal generator; unknown tensors are refused."""
    state = dict(made.state())
    require_equal(made.sample(DRAWN, 3), scheme.load_generator(state).sample(DRAWN, 3), "a generator and its state")
    try:
        scheme.load_generator({**state, "unheard-of": torch.zeros(1)})
    except ValueError:
        return
    require(False, "load_generator must raise ValueError for a state with an unknown name")


def require_equal(first: Release, second: Release, what: str) -> None:
    """Raise ContractError unless rows, labels and links agree bit by bit."""
    for part in ("samples", "labels", "links"):
        x, y = getattr(first, part), getattr(second, part)
        same = x is None and y is None if x is None or y is None else torch.equal(x.nan_to_num(-1), y.nan_to_num(-1))
        require(same, f"{what} gave different {part}")


KEYS_DRAWN, FEWEST_KEYS_DRAWN = 1024, 64
NUMBERS = 1 << 22  # of all keys that are drawn: fewer of large ones
FEWEST_BYTES = 16


def check_secrets(scheme: Scheme) -> None:
    """Raise ContractError for keys that are too small or repeat.

    Skip if the keys hold no secret.
    """
    first = scheme.sample_key(Secret.of_seed(0, "space")).state()
    if not first:
        raise Skip("its keys hold no secret")
    size = sum(tensor.numel() * tensor.element_size() for tensor in first.values())
    require(
        size >= FEWEST_BYTES,
        f"a key's state holds {8 * size} bits, which can all be tried: keep a secret of 256 "
        "(`Secret.tensor`), not a seed",
    )
    numbers = sum(tensor.numel() for tensor in first.values())
    count = min(KEYS_DRAWN, max(FEWEST_KEYS_DRAWN, NUMBERS // numbers))
    different = len(set(_digests(scheme, count)))
    require(
        different == count,
        f"{count} secrets gave only {different} different keys: its keys come from few bits (torch's generator keeps "
        "32 of a seed); draw from `secret.stream(NAME)`",
    )


def _digests(scheme: Scheme, count: int) -> Iterator[bytes]:
    for number in range(count):
        yield _digest(scheme.sample_key(Secret.of_seed(number, "space")).state())


def _digest(state: State) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode() + state[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.digest()


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
    """Under one key equal rows are released alike, every time."""
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
