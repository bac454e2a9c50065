"""Checks of a method."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

import torch
from torch import Tensor

from bench.audit.noise import check_density, check_reuse, draw_noise
from bench.conformance.bobs_strength import bobs_strength
from bench.conformance.generators import check_draws, check_seeds, check_states, require_equal
from bench.conformance.outcome import PRESET, Noted, Skip, require, sample_data
from bench.conformance.secrecy import check_secrets
from bench.contract.seal import check, fingerprint, seal
from bench.data.splits import balance
from bench.evaluators.honesty import held
from bench.evaluators.questioned import People, Questioned
from bench.evidence import PROMISES
from bench.plugins import registry
from bench.plugins.chosen import to_fit
from bench.plugins.spec import PluginSpec
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, Generator, Key, Method, NotApplicable, Release, Scheme
from bench.workbench.second_owner import releases

Kind = Literal["images", "table"]
PEOPLES_ROWS = (0, 240, 321, 402)  # of private people and of two parts of others, three rows a person


def _method(spec: PluginSpec) -> Method:
    return cast(Method, registry.build("methods", spec, PRESET))


@dataclass(frozen=True, eq=False)
class _Setting:
    """A method fitted on small random rows of a kind; `before` are fingerprints, public and private, from before."""

    kind: Kind
    method: Method
    scheme: Scheme
    public: Dataset
    private: Dataset
    before: tuple[str, str]


class _Fits:
    """The method, fitted once for all checks of it: training is most of what they cost, and a scheme does not change.

    Args:
        spec: Of the method.
        device: Of the rows.
    """

    def __init__(self, spec: PluginSpec, device: torch.device) -> None:
        self.spec, self.device = spec, device
        self._kept: dict[Kind | None, _Setting] = {}

    def __call__(self, kind: Kind | None = None) -> _Setting:
        """The fit that checks share, with rows of one's own to release: a method that writes spoils one check's."""
        if kind not in self._kept:
            self._kept[kind] = self.fresh(kind)
        kept = self._kept[kind]
        public, private = self._rows(kept.kind)
        return replace(kept, public=public, private=private)

    def fresh(self, kind: Kind | None = None) -> _Setting:
        """A fit of one's own, on images, or on tables where the method refuses those, unless `kind` says which."""
        if kind is None:
            try:
                return self.fresh("images")
            except NotApplicable:
                return self.fresh("table")
        method = _method(self.spec)
        public, private = self._rows(kind)
        before = fingerprint(public), fingerprint(private)
        return _Setting(kind, method, method.fit(public, derive(0, "fit")), public, private, before)

    def _rows(self, kind: Kind) -> tuple[Dataset, Dataset]:
        public, private = (sample_data(kind, seed=seed).to(self.device) for seed in (1, 2))
        return public, private


def _release_is_well_formed(fits: _Fits) -> None:
    setting = fits()
    check(setting.scheme.sample_key(Secret.of_seed(1)).release(setting.private), setting.private)


def _tables(fits: _Fits) -> None:
    setting = fits("table")
    check(setting.scheme.sample_key(Secret.of_seed(1)).release(setting.private), setting.private)


def _inputs_stay_untouched(fits: _Fits) -> None:
    setting = fits.fresh()
    public, private, key = setting.public, setting.private, setting.scheme.sample_key(Secret.of_seed(1))
    key.release(private)
    key.query(private.samples)
    after = fingerprint(public), fingerprint(private)
    require(after == setting.before, "fit, release or query wrote into its input")


def _same_seed_same_bits(fits: _Fits) -> None:
    first, second = fits(), fits.fresh()
    _same(
        first.scheme.sample_key(Secret.of_seed(1)),
        second.scheme.sample_key(Secret.of_seed(1)),
        first.private,
        "two fits with one seed",
    )


def _keys_differ(fits: _Fits) -> None:
    setting = fits()
    keys = [setting.scheme.sample_key(Secret.of_seed(seed)) for seed in (1, 2)]
    if not keys[0].state():
        raise Skip("its keys hold no secret")
    a, b = (key.release(setting.private).samples for key in keys)
    require(a.shape != b.shape or not torch.equal(a, b), "two keys gave the same release")


def _saves_and_loads(fits: _Fits) -> None:
    setting = fits()
    shared = to_fit(setting.method)  # what the harness fits, for all methods that differ in `unlearned` alone
    learned = setting.scheme if shared == setting.method else shared.fit(setting.public, derive(0, "fit"))
    loaded = setting.method.load(dict(learned.state()))
    key = setting.scheme.sample_key(Secret.of_seed(1))
    _same(key, loaded.sample_key(Secret.of_seed(1)), setting.private, "a scheme and its loaded state")
    _same(key, loaded.load_key(dict(key.state())), setting.private, "a key and its loaded state")


def _links_follow_rows(fits: _Fits) -> None:
    setting = fits()
    release = setting.scheme.sample_key(Secret.of_seed(1)).release(setting.private)
    if release.links is None:
        raise Skip("it releases rows without a raw original")
    require(len(torch.unique(release.links, dim=0)) == len(release.links), "links repeat a pair")
    sealed = seal(release, Secret.of_seed(5))
    links = cast(Tensor, sealed.links)
    raw = release.samples[release.links[:, 1]]
    require(torch.equal(sealed.release.samples[links[:, 1]], raw), "links no longer fit after shuffling")
    _links_name_the_row_that_changed(setting)
    if release.labels is not None and release.labels.shape == cast(Tensor, setting.private.labels).shape:
        require(bool(release.labels.isfinite().all()), "labels that were known became unknown")


def _links_name_the_row_that_changed(setting: _Setting) -> None:
    """Change one raw row: where a single released row follows, it must be linked to it. (Fresh noise moves all.)"""
    row, key = 7, setting.scheme.sample_key(Secret.of_seed(1))
    samples = setting.private.samples.clone()
    samples[row] = 1 - samples[row]
    before, after = (key.release(data) for data in (setting.private, replace(setting.private, samples=samples)))
    links = cast(Tensor, before.links)
    if after.samples.shape != before.samples.shape:
        return
    moved = (after.samples != before.samples).flatten(1).any(dim=1).nonzero().flatten()
    linked = links[links[:, 0] == row, 1]
    require(
        len(moved) != 1 or bool(torch.isin(moved, linked).all()), f"row {row} changed, and a row not linked to it moved"
    )


def _labels_stay_out_of_samples(fits: _Fits) -> None:
    setting = fits()
    if setting.method.uses_labels or setting.method.needs_labels:
        raise Skip("it declares that samples depend on labels")
    key = setting.scheme.sample_key(Secret.of_seed(1))
    flipped = replace(setting.private, labels=1 - cast(Tensor, setting.private.labels))
    same = torch.equal(key.release(setting.private).samples, key.release(flipped).samples)
    require(
        same, "released samples change with the labels, but the method declares neither uses_labels nor needs_labels"
    )


def _rows_do_not_see_their_place(fits: _Fits) -> None:
    setting = fits()
    same = replace(setting.private, samples=setting.private.samples[:1].expand_as(setting.private.samples).clone())
    release = setting.scheme.sample_key(Secret.of_seed(1)).release(same)
    first, last = (release.samples[index].flatten() for index in (0, -1))
    if torch.equal(first, last):
        return
    # Fresh noise on equal rows: then the place must not show in the level. Means of d independent numbers.
    spread = release.samples.flatten(1).std(dim=1).amax() / first.numel() ** 0.5
    drift = torch.corrcoef(
        torch.stack(
            (torch.arange(len(release), dtype=torch.float64), release.samples.flatten(1).mean(dim=1).cpu().double())
        )
    )[0, 1]
    # |r| sqrt(n) is about normal where level and place are unrelated: 4.5 deviations are 7 in a million.
    require(bool(drift.abs() * len(release) ** 0.5 < 4.5) or not bool(spread > 0), "row level drifts with the place")


def _queries_look_like_releases(fits: _Fits) -> None:
    setting = fits()
    key = setting.scheme.sample_key(Secret.of_seed(1))
    query = key.query(setting.private.samples[:5])
    shape = (5, *key.release(setting.private).samples.shape[1:])
    require(tuple(query.shape) == shape, f"query must give rows like the release, {shape}, got {tuple(query.shape)}")
    require(bool(query.isfinite().all()), "query gave numbers that are not finite")
    scores = torch.rand(5, 2, generator=generator(0)).to(fits.device)
    require(key.decode(scores).shape == scores.shape, "decode must keep the shape of the scores")


def _noise_follows_its_density(fits: _Fits) -> None:
    check_density(_noise(fits))


def _noise_is_never_reused(fits: _Fits) -> None:
    check_reuse(_noise(fits))


def _noise(fits: _Fits) -> Mapping[str, Tensor]:
    setting = fits()
    other = sample_data(setting.kind, seed=3).to(fits.device)
    try:
        return draw_noise(setting.scheme, setting.private, other)
    except NotApplicable as reason:
        raise Skip(str(reason)) from reason


def _generator_draws_what_it_is_asked_for(fits: _Fits) -> None:
    setting, release, made = _published(fits)
    check_draws(made, release, setting.private)


def _generator_obeys_its_seed(fits: _Fits) -> None:
    check_seeds(_published(fits)[2])


def _generator_saves_and_loads(fits: _Fits) -> None:
    setting, _, made = _published(fits)
    check_states(made, setting.scheme)


def _published(fits: _Fits) -> tuple[_Setting, Release, Generator]:
    setting = fits()
    release = setting.scheme.sample_key(Secret.of_seed(1)).release(setting.private)
    if release.generator is None:
        raise Skip("it publishes no generator")
    return setting, release, release.generator


def _word_holds(fits: _Fits) -> None:
    """What `bench run` measures as honesty, on random rows."""
    setting, secret = fits(), Secret.of_seed(0, "word")
    if setting.method.role == "remembers its rows":
        raise Skip("it is there to be found out")
    whole = sample_data(setting.kind, rows=PEOPLES_ROWS[-1], seed=4).to(fits.device)
    parts = [whole.take(torch.arange(*ends, device=fits.device)) for ends in itertools.pairwise(PEOPLES_ROWS)]
    private, control, test = (_balanced(part, number) for number, part in enumerate(parts))
    people = People(private, control, test, _balanced)
    key = setting.scheme.sample_key(secret)
    sealed = seal(key.release(people.private), secret)
    question = Questioned.of(people, sealed, seed=0)
    loaded = setting.method.load(dict(setting.scheme.state()))
    again = releases(loaded, dict(key.state()), [people.private, *question.parts(people)])
    found, _ = held(question, sealed, again, secret)
    broken = [f"{PROMISES[name]} ({made.said})" for name, made in found.promises.items() if made.broken]
    require(not broken, "; ".join(broken))


def _bob_keeps_up(fits: _Fits) -> None:
    setting = fits()
    found = bobs_strength(setting.method, setting.scheme, setting.kind, fits.device)
    if found.lead.too_weak:
        raise Noted(
            f"Bob may be too weak here: test AUC {found.bob:.3f} on easy rows, and {found.simple:.3f} by {found.name} "
            f"(ahead by {found.lead.difference:.3f}, at least {found.lead.low:.3f}). Utility of this method may be "
            "understated"
        )


def _balanced(data: Dataset, number: int) -> Dataset:
    labels = balance(cast(Tensor, data.labels).cpu(), number, exclusive=data.exclusive)
    return replace(data, labels=labels.to(data.samples.device))


def _device_moves(fits: _Fits) -> None:
    if not torch.cuda.is_available():
        raise Skip("no CUDA device here")
    setting = _Fits(fits.spec, torch.device("cpu"))()
    cuda = torch.device("cuda")
    state = {name: tensor.to(cuda) for name, tensor in setting.scheme.state().items()}
    release = setting.method.load(state).sample_key(Secret.of_seed(1)).release(setting.private.to(cuda))
    require(release.samples.is_cuda, "released samples must be on the device of the private rows")


def _same(a: Key, b: Key, private: Dataset, what: str) -> None:
    require_equal(a.release(private), b.release(private), what)
    require(torch.equal(a.query(private.samples), b.query(private.samples)), f"{what} gave different queries")


_CHECKS: Mapping[str, Callable[[_Fits], None]] = {
    "release is well-formed": _release_is_well_formed,
    "works on tables": _tables,
    "inputs stay untouched": _inputs_stay_untouched,
    "same seed, same bits": _same_seed_same_bits,
    "different keys differ": _keys_differ,
    "keys cannot be guessed": lambda fits: check_secrets(fits().scheme),
    "saves and loads": _saves_and_loads,
    "links follow the rows": _links_follow_rows,
    "labels stay out of samples": _labels_stay_out_of_samples,
    "rows do not see their place": _rows_do_not_see_their_place,
    "queries look like releases": _queries_look_like_releases,
    "noise follows its density": _noise_follows_its_density,
    "noise is never reused": _noise_is_never_reused,
    "generator draws what it is asked for": _generator_draws_what_it_is_asked_for,
    "generator obeys its seed": _generator_obeys_its_seed,
    "generator saves and loads": _generator_saves_and_loads,
    "its word holds": _word_holds,
    "Bob keeps up with simple models": _bob_keeps_up,
    "device moves": _device_moves,
}


def checks(spec: PluginSpec, device: torch.device) -> Mapping[str, Callable[[], None]]:
    """The checks of a method by title; they share a fit."""
    fits = _Fits(spec, device)
    return {title: partial(work, fits) for title, work in _CHECKS.items()}
