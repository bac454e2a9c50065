"""Checks of a method."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

import torch

from bench.audit.noise_checks import check_density, check_reuse, draw_noise
from bench.conformance.bob_strength import bobs_strength
from bench.conformance.method_basics import (
    CORE,
    Fits,
    Setting,
    check_draws,
    check_secrets,
    check_seeds,
    check_states,
    same,
)
from bench.conformance.outcome import Noted, Skip, blaming, require, sample_data
from bench.contract.seal import seal
from bench.data.scorable import balance
from bench.evaluators.honesty import People, Questioned, held
from bench.evaluators.membership import CLOSE
from bench.eve.shadow_classifiers import checked_answers
from bench.evidence import PROMISES
from bench.plugins.configured import to_fit
from bench.plugins.spec import PluginSpec
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, Generator, NotApplicable, Release
from bench.workbench.workbench import releases


def links_follow_rows(fits: Fits) -> None:
    """Links name pairs once, follow shuffled rows, and name changed rows."""
    setting = fits()
    release = fits.release(setting)
    if release.links is None:
        raise Skip("it releases rows without a raw original")
    with blaming(type(fits.key(setting)).release):
        _links_hold(setting, release, release.links)


def _links_hold(setting: Setting, release: Release, stated: torch.Tensor) -> None:
    require(len(torch.unique(stated, dim=0)) == len(stated), "links repeat a pair")
    sealed = seal(release, Secret.of_seed(5))
    links = cast(torch.Tensor, sealed.links)
    raw = release.samples[stated[:, 1]]
    require(torch.equal(sealed.release.samples[links[:, 1]], raw), "links no longer fit after shuffling")
    _links_name_the_row_that_changed(setting)
    if release.labels is not None and release.labels.shape == cast(torch.Tensor, setting.private.labels).shape:
        require(bool(release.labels.isfinite().all()), "labels that were known became unknown")


def _links_name_the_row_that_changed(setting: Setting) -> None:
    """Change one raw row: the one changed released row links to it.

    Fresh noise changes all rows.
    """
    row, key = 7, setting.scheme.sample_key(Secret.of_seed(1))
    samples = setting.private.samples.clone()
    samples[row] = 1 - samples[row]
    before, after = (key.release(data) for data in (setting.private, replace(setting.private, samples=samples)))
    links = cast(torch.Tensor, before.links)
    if after.samples.shape != before.samples.shape:
        return
    moved = (after.samples != before.samples).flatten(1).any(dim=1).nonzero().flatten()
    linked = links[links[:, 0] == row, 1]
    require(
        len(moved) != 1 or bool(torch.isin(moved, linked).all()), f"row {row} changed, and a row not linked to it moved"
    )


def labels_stay_out_of_samples(fits: Fits) -> None:
    """Samples do not depend on labels, unless the method declares it."""
    setting = fits()
    if setting.method.uses_labels or setting.method.needs_labels:
        raise Skip("it declares that samples depend on labels")
    key = setting.scheme.sample_key(Secret.of_seed(1))
    flipped = replace(setting.private, labels=1 - cast(torch.Tensor, setting.private.labels))
    with blaming(type(key).release):
        same = torch.equal(key.release(setting.private).samples, key.release(flipped).samples)
        message = (
            "released samples change with the labels, but the method declares neither uses_labels nor needs_labels"
        )
        require(same, message)


def declares_what_it_reads(fits: Fits) -> None:
    """Releases depend on labels and subjects only as declared.

    Without a declaration, released labels are the raw ones.
    """
    setting = fits()
    method, private = setting.method, setting.private
    key = setting.scheme.sample_key(Secret.of_seed(1))
    with blaming(type(key).release):
        whole = key.release(private)
        if not method.uses_subjects:
            other = key.release(private.nameless())
            require(
                torch.equal(whole.samples, other.samples),
                "the release changes with the subjects, but the method does not declare uses_subjects: at work it gets "
                "none",
            )
        if method.uses_labels or method.needs_labels or method.encodes_labels:
            return
        bare = key.release(replace(private, labels=None, findings=()))
        missing = "it declares neither uses_labels, needs_labels nor encodes_labels, so that at work it gets none"
        require(bare.labels is None, f"it released labels of rows that had none: {missing}")
        require(torch.equal(whole.samples, bare.samples), f"it releases other rows without labels: {missing}")
        if whole.labels is None:
            return
        links = whole.links if whole.primary is None or whole.links is None else whole.links[whole.primary]
        require(links is not None, f"it releases labels, and no links by which raw ones could be added: {missing}")
        raw = cast(torch.Tensor, private.labels)[cast(torch.Tensor, links)[:, 0]]
        released = whole.labels[cast(torch.Tensor, links)[:, 1]]
        same = released.shape == raw.shape and torch.equal(released.nan_to_num(-1), raw.nan_to_num(-1))
        require(same, f"it releases other labels than the raw ones: {missing}")


def rows_do_not_see_their_place(fits: Fits) -> None:
    """Equal rows are released alike, wherever they stand."""
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
    )[0, 1].nan_to_num()  # a level that is the same everywhere drifts nowhere
    # |r| sqrt(n) is about normal where level and place are unrelated: 4.5 deviations are 7 in a million.
    with blaming(type(fits.key(setting)).release):
        unrelated = bool(drift.abs() * len(release) ** 0.5 < 4.5) or not bool(spread > 0)
        require(unrelated, "row level drifts with the place")


def queries_look_like_releases(fits: Fits) -> None:
    """New rows have the shape of released ones; scores keep theirs."""
    setting = fits()
    key = setting.scheme.sample_key(Secret.of_seed(1))
    shape = (5, *key.release(setting.private).samples.shape[1:])
    with blaming(type(key).query):
        query = key.query(setting.private.samples[:5])
        message = f"query must give rows like the release, {shape}, got {tuple(query.shape)}"
        require(tuple(query.shape) == shape, message)
        require(bool(query.isfinite().all()), "query gave numbers that are not finite")
        require(not query.requires_grad, "rows from query carry gradients: detach them")
    scores = torch.rand(5, 2, generator=generator(0)).to(fits.device)
    with blaming(type(key).decode):
        require(key.decode(scores).shape == scores.shape, "decode must keep the shape of the scores")


PEOPLES_ROWS = (0, 240, 321, 402)  # of private people and of two parts of others, three rows a person


def _tables(fits: Fits) -> None:
    fits.release(fits("table"))


def _keys_differ(fits: Fits) -> None:
    setting = fits()
    keys = [setting.scheme.sample_key(Secret.of_seed(seed)) for seed in (1, 2)]
    if not keys[0].state():
        raise Skip("its keys hold no secret")
    with blaming(type(keys[0]).release):
        a, b = (key.release(setting.private).samples for key in keys)
        differ = a.shape != b.shape or not torch.equal(a, b)
        require(differ, "two keys gave the same release, and each holds a secret: release must use it")


def _saves_and_loads(fits: Fits) -> None:
    setting = fits()
    shared = to_fit(setting.method)  # what the harness fits, for all methods that differ in `unlearned` alone
    learned = setting.scheme if shared == setting.method else shared.fit(setting.public, derive(0, "fit"))
    with blaming(type(setting.method).load):
        loaded = setting.method.load(dict(learned.state()))
        key = fits.key(setting)
        same(key, loaded.sample_key(Secret.of_seed(1)), setting.private, "a scheme and its loaded state")
    with blaming(type(loaded).load_key):
        same(key, loaded.load_key(dict(key.state())), setting.private, "a key and its loaded state")


def _does_without_public_rows(fits: Fits) -> None:
    setting = fits()
    if setting.method.needs_public:
        raise Skip("it needs public rows")
    none = setting.public.take(torch.zeros(0, dtype=torch.int64, device=fits.device))
    with blaming(type(setting.method).fit):
        bare = replace(setting, scheme=setting.method.fit(none, derive(0, "fit")))
    fits.release(bare)


def _noise_follows_its_density(fits: Fits) -> None:
    check_density(_noise(fits))


def _noise_is_never_reused(fits: Fits) -> None:
    check_reuse(_noise(fits))


def _noise(fits: Fits) -> Mapping[str, torch.Tensor]:
    setting = fits()
    other = sample_data(setting.kind, seed=3).to(fits.device)
    try:
        return draw_noise(setting.scheme, setting.private, other)
    except NotApplicable as reason:
        raise Skip(str(reason)) from reason


def _generator_draws_what_it_is_asked_for(fits: Fits) -> None:
    setting, release, made = _published(fits)
    check_draws(made, release, setting.private)


def _generator_obeys_its_seed(fits: Fits) -> None:
    check_seeds(_published(fits)[2])


def _generator_saves_and_loads(fits: Fits) -> None:
    setting, _, made = _published(fits)
    check_states(made, setting.scheme)


def _published(fits: Fits) -> tuple[Setting, Release, Generator]:
    setting = fits()
    release = setting.scheme.sample_key(Secret.of_seed(1)).release(setting.private)
    if release.generator is None:
        raise Skip("it publishes no generator")
    return setting, release, release.generator


def _word_holds(fits: Fits) -> None:
    """The honesty measurement of `bench run`, on random rows."""
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


def _bob_keeps_up(fits: Fits) -> None:
    setting = fits()
    strength = bobs_strength(setting.method, setting.scheme, setting.kind, fits.device)
    if strength.lead.too_weak:
        lead = strength.lead
        raise Noted(
            f"Bob may be too weak here: test AUC {strength.bob:.3f} on easy rows, and {strength.simple:.3f} by "
            f"{strength.name} (ahead by {lead.difference:.3f}, at least {lead.low:.3f}). Utility of this method may be "
            "understated"
        )


def _balanced(data: Dataset, number: int) -> Dataset:
    labels = balance(cast(torch.Tensor, data.labels).cpu(), number, exclusive=data.exclusive)
    return replace(data, labels=labels.to(data.samples.device))


def _device_moves(fits: Fits) -> None:
    if not torch.cuda.is_available():
        raise Skip("no CUDA device here")
    setting = Fits(fits.spec, torch.device("cpu"))()
    cuda = torch.device("cuda")
    state = {name: tensor.to(cuda) for name, tensor in setting.scheme.state().items()}
    release = setting.method.load(state).sample_key(Secret.of_seed(1)).release(setting.private.to(cuda))
    require(release.samples.is_cuda, "released samples must be on the device of the private rows")


def _classifier_answers_row_by_row(fits: Fits) -> None:
    setting = fits()
    key, private = setting.scheme.sample_key(Secret.of_seed(1)), setting.private
    others, findings = sample_data(setting.kind, seed=4).to(fits.device).samples, len(private.findings)
    with blaming(type(key).classifier):
        classify = key.classifier(private)
        if classify is None:
            raise Skip("it publishes no classifier")
        among = checked_answers(classify, torch.cat((others, private.samples)), findings)[: len(others)].double()
        alone = checked_answers(classify, others, findings).double()
        alike = torch.allclose(among, alone, rtol=CLOSE, atol=CLOSE * float(alone.abs().max()))
        require(alike, "a classifier must answer every row by itself, and its answers depend on the rows beside them")


NEEDS = {"its word holds": "saves and loads", "device moves": "saves and loads"}
"""What single checks take for granted beside the core."""
_CHECKS: Mapping[str, Callable[[Fits], None]] = {
    **CORE,
    "works on tables": _tables,
    "does without public rows": _does_without_public_rows,
    "different keys differ": _keys_differ,
    "keys cannot be guessed": lambda fits: check_secrets(fits().scheme),
    "saves and loads": _saves_and_loads,
    "links follow the rows": links_follow_rows,
    "labels stay out of samples": labels_stay_out_of_samples,
    "declares what it reads": declares_what_it_reads,
    "rows do not see their place": rows_do_not_see_their_place,
    "queries look like releases": queries_look_like_releases,
    "noise follows its density": _noise_follows_its_density,
    "noise is never reused": _noise_is_never_reused,
    "classifier answers every row by itself": _classifier_answers_row_by_row,
    "generator draws what it is asked for": _generator_draws_what_it_is_asked_for,
    "generator obeys its seed": _generator_obeys_its_seed,
    "generator saves and loads": _generator_saves_and_loads,
    "its word holds": _word_holds,
    "Bob keeps up with simple models": _bob_keeps_up,
    "device moves": _device_moves,
}


def checks(spec: PluginSpec, device: torch.device) -> Mapping[str, Callable[[], None]]:
    """The checks of a method by title; they share a fit."""
    fits = Fits(spec, device)
    return {title: partial(work, fits) for title, work in _CHECKS.items()}
