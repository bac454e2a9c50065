"""Checks of an attack, against a scheme that hides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from bench import registry
from bench.conformance.outcome import PRESET, ROWS, require, sample_data
from bench.contract import fingerprint, seal
from bench.spec import PluginSpec
from bench.types import Attack, Dataset, Key, Release, Scheme, View, paired


class _PlainScheme(Scheme):
    def sample_key(self, seed: int) -> Key:
        return _PlainKey()

    def load_key(self, state: object) -> Key:
        return _PlainKey()


class _PlainKey(Key):
    def release(self, private: Dataset) -> Release:
        return paired(private.samples.clone(), private.labels)

    def state(self) -> Mapping[str, Tensor]:
        return {}


def _view(device: torch.device, attack: Attack) -> tuple[View, Release]:
    private = sample_data(seed=2).to(device)
    candidates = replace(private, subjects=None, labels=private.labels if attack.uses_labels else None)
    public, control = sample_data(seed=1).to(device), replace(sample_data(seed=3), subjects=None).to(device)
    sealed = seal(_PlainKey().release(private), 5).release
    return View(public, _PlainScheme(), candidates, control), sealed


def _attack(spec: PluginSpec) -> Attack:
    return cast(Attack, registry.build("attacks", spec, PRESET))


def _scores_are_sound(spec: PluginSpec, device: torch.device) -> None:
    attack = _attack(spec)
    view, sealed = _view(device, attack)
    before = fingerprint(view.candidates), fingerprint(view.public), fingerprint(view.control)
    scores = attack.fit(view, 1).score(sealed)
    after = fingerprint(view.candidates), fingerprint(view.public), fingerprint(view.control)
    require(before == after, "the attack wrote into its view")
    require(tuple(scores.shape) == (ROWS, ROWS), f"scores must have shape {(ROWS, ROWS)}, got {tuple(scores.shape)}")
    whole = scores.block(slice(0, ROWS), slice(0, ROWS))
    require(bool(whole.isfinite().all()), "scores must be finite")
    part = scores.block(slice(3, 11), slice(7, 40))
    require(torch.equal(part, whole[3:11, 7:40]), "a block must hold the same bits as the whole")


def _attack_repeats(spec: PluginSpec, device: torch.device) -> None:
    attack = _attack(spec)
    view, sealed = _view(device, attack)
    first, second = (attack.fit(view, 1).score(sealed).block(slice(0, ROWS), slice(0, ROWS)) for _ in range(2))
    require(torch.equal(first, second), "one seed gave two different sets of scores")


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "scores are sound": _scores_are_sound,
    "same seed, same bits": _attack_repeats,
}
