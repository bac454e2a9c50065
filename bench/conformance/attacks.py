"""Checks of an attack, against a scheme that hides nothing.

Attacks on pairs see images, attacks on membership see tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch

from bench.conformance.outcome import PRESET, ROWS, Skip, blaming, require, sample_data
from bench.contract.seal import fingerprint, seal
from bench.evaluators.membership import mixed
from bench.evidence import MembershipEvidence
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.randomness import Secret
from bench.statistics.confidence_intervals import RARE
from bench.types import Attack, Attacker, Dataset, Key, Metric, PairScores, Release, Scheme, View, paired

PAIRS = 5


class _PlainScheme(Scheme):
    def sample_key(self, secret: Secret) -> Key:
        return _PlainKey()

    def load_key(self, state: object) -> Key:
        return _PlainKey()


class _PlainKey(Key):
    def release(self, private: Dataset) -> Release:
        return paired(private.samples.clone(), private.labels)

    def state(self) -> Mapping[str, torch.Tensor]:
        return {}


def _pairs(device: torch.device, spec: PluginSpec) -> tuple[Attack, View, Release]:
    attack = _attack(spec)
    if attack.scores != "pairs":
        raise Skip("it scores membership, not pairs")
    private = sample_data(seed=2).to(device)
    candidates = replace(private, subjects=None, labels=private.labels if attack.uses_labels else None)
    public, control = sample_data(seed=1).to(device), replace(sample_data(seed=3), subjects=None).to(device)
    sealed = seal(_PlainKey().release(private), Secret.of_seed(5)).release
    known = replace(sample_data(seed=4), subjects=None, labels=None).take(torch.arange(PAIRS)).to(device)
    view = View(public, _PlainScheme(), candidates, control, profile=f"known-pairs[k={PAIRS}]", known=known)
    return attack, view, sealed


def _score(attacker: Attacker, view: View, sealed: Release) -> PairScores:
    """Scores of a release, with known rows as they are."""
    assert view.known is not None
    return attacker.score_knowing(sealed, view.known, Release(view.known.samples.clone(), None, None))


@dataclass(frozen=True, eq=False)
class _Membership:
    """A membership attack, Eve's view, the members and their release."""

    attack: Attack
    view: View
    members: torch.Tensor
    sealed: Release


def _membership(device: torch.device, spec: PluginSpec) -> _Membership:
    attack = _attack(spec)
    if attack.scores != "membership":
        raise Skip("it scores pairs, not membership")
    public, private, control, others = (sample_data("table", seed=seed).to(device) for seed in (1, 2, 3, 4))
    candidates, order = mixed(private, others, Secret.of_seed(6))
    sealed = seal(_PlainKey().release(private), Secret.of_seed(5)).release
    view = View(public, _PlainScheme(), replace(candidates, subjects=None), replace(control, subjects=None))
    return _Membership(attack, view, order < len(private), sealed)


def _attack(spec: PluginSpec) -> Attack:
    return cast(Attack, registry.build("attacks", spec, PRESET))


def _attacker(attack: Attack, view: View) -> Attacker:
    with blaming(type(attack).fit):
        before = _prints(view)
        attacker = attack.fit(view, 1)
        require(isinstance(attacker, Attacker), f"fit must return an Attacker, got {type(attacker).__name__}")
        require(_prints(view) == before, "the attack wrote into its view: work on a copy")
    return attacker


def _prints(view: View, sealed: Release | None = None) -> list[str]:
    """Fingerprints that show if an attack wrote into its inputs."""
    parts = [view.candidates, view.public, view.control, *([] if view.known is None else [view.known])]
    if sealed is not None:
        parts.append(replace(view.candidates, samples=sealed.samples, labels=sealed.labels, subjects=None))
    return [fingerprint(data) for data in parts]


def _scored(attacker: Attacker, view: View, sealed: Release) -> torch.Tensor:
    """All scores of pairs (n, m). Raises ContractError where they are none."""
    with blaming(type(attacker)):
        require(type(attacker).score is not Attacker.score, _undefined(attacker, "score"))
    with blaming(type(attacker).score):
        before = _prints(view, sealed)
        scores = _score(attacker, view, sealed)
        require(isinstance(scores, PairScores), f"score must return PairScores, got {type(scores).__name__}")
        shape = tuple(scores.shape)
        require(shape == (ROWS, ROWS), f"scores must have shape {(ROWS, ROWS)}, got {shape}")
    with blaming(type(scores).block):
        whole = scores.block(slice(0, ROWS), slice(0, ROWS))
        require(bool(whole.isfinite().all()), "scores must be finite")
        part = scores.block(slice(3, 11), slice(7, 40))
        require(torch.equal(part, whole[3:11, 7:40]), "a block must hold the same bits as the whole")
    with blaming(type(attacker).score):
        require(_prints(view, sealed) == before, "the attack wrote into the release or its view: work on a copy")
    return whole


def _member_scores(attacker: Attacker, view: View, sealed: Release) -> torch.Tensor:
    """One score a candidate (n). Raises ContractError where they are none."""
    with blaming(type(attacker)):
        require(type(attacker).membership is not Attacker.membership, _undefined(attacker, "membership"))
    with blaming(type(attacker).membership):
        before = _prints(view, sealed)
        scores = attacker.membership(sealed)
        require(isinstance(scores, torch.Tensor), f"membership must return a tensor, got {type(scores).__name__}")
        require(tuple(scores.shape) == (2 * ROWS,), f"scores must have shape {(2 * ROWS,)}, got {tuple(scores.shape)}")
        require(
            scores.dtype in (torch.float32, torch.float64), f"scores must be float32 or float64, got {scores.dtype}"
        )
        require(bool(scores.isfinite().all()), "scores must be finite, also for a release of one row over and over")
        require(_prints(view, sealed) == before, "the attack wrote into the release or its view: work on a copy")
    return scores


def _undefined(attacker: Attacker, name: str) -> str:
    return f"{type(attacker).__name__} must define {name}: docs/how-to/write-a-plug-in.md shows one"


def _scores_are_sound(spec: PluginSpec, device: torch.device) -> None:
    attack, view, sealed = _pairs(device, spec)
    _scored(_attacker(attack, view), view, sealed)


def _attack_repeats(spec: PluginSpec, device: torch.device) -> None:
    attack, view, sealed = _pairs(device, spec)
    with blaming(type(attack).fit):
        first, second = (_scored(_attacker(attack, view), view, sealed) for _ in range(2))
        require(torch.equal(first, second), "one seed gave two different sets of scores")


def _membership_is_sound(spec: PluginSpec, device: torch.device) -> None:
    case = _membership(device, spec)
    attacker = _attacker(case.attack, case.view)
    same = case.sealed.samples[:1].expand_as(case.sealed.samples).clone()
    for sealed in (case.sealed, replace(case.sealed, samples=same)):
        _member_scores(attacker, case.view, sealed)


def _membership_repeats(spec: PluginSpec, device: torch.device) -> None:
    case = _membership(device, spec)
    with blaming(type(case.attack).fit):
        first, second = (_member_scores(_attacker(case.attack, case.view), case.view, case.sealed) for _ in range(2))
        require(torch.equal(first, second), "one seed gave two different sets of scores")


def _members_are_found(spec: PluginSpec, device: torch.device) -> None:
    case = _membership(device, spec)
    scores = case.attack.fit(case.view, 1).membership(case.sealed).double().cpu()
    auc = cast("Metric[MembershipEvidence]", registry.build("metrics", PluginSpec("membership-auc"), PRESET))
    figure = auc(MembershipEvidence([scores], [case.members], None, 1, 1))
    require(
        figure.value > 0.5 and figure.p is not None and figure.p < RARE,
        f"the members' own rows were released, and the attack does not tell them from others: AUC {figure.value:.3f}",
    )


def _does_without_public_rows(spec: PluginSpec, device: torch.device) -> None:
    if _attack(spec).needs_public:
        raise Skip("it needs public rows")
    if _attack(spec).scores == "pairs":
        attack, view, sealed = _pairs(device, spec)
        scores = _score(attack.fit(_bare(view), 1), view, sealed).block(slice(0, ROWS), slice(0, ROWS))
    else:
        case = _membership(device, spec)
        scores = case.attack.fit(_bare(case.view), 1).membership(case.sealed)
    require(bool(scores.isfinite().all()), "scores must be finite, also where there are no public rows")


def _bare(view: View) -> View:
    return replace(view, public=view.public.take(torch.zeros(0, dtype=torch.int64, device=view.public.samples.device)))


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "scores are sound": _scores_are_sound,
    "does without public rows": _does_without_public_rows,
    "same seed, same bits": _attack_repeats,
    "membership scores are sound": _membership_is_sound,
    "same seed, same membership scores": _membership_repeats,
    "members in plain sight are found": _members_are_found,
}
