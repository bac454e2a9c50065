"""A method fitted on small random rows: what its checks share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

import torch

from bench.conformance.cause import blaming
from bench.conformance.outcome import PRESET, require, sample_data
from bench.contract.seal import check, fingerprint
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.randomness import Secret
from bench.seeds import derive
from bench.types import Dataset, Key, Method, NotApplicable, Release, Scheme

Kind = Literal["images", "table"]


def method_of(spec: PluginSpec) -> Method:
    """The method at the smallest preset. Raises UsageError."""
    return cast(Method, registry.build("methods", spec, PRESET))


@dataclass(frozen=True, eq=False)
class Setting:
    """A method fitted on small random rows of a kind; `before` are fingerprints, public and private, from before."""

    kind: Kind
    method: Method
    scheme: Scheme
    public: Dataset
    private: Dataset
    before: tuple[str, str]


class Fits:
    """The method, fitted once for all checks of it: training is most of what they cost, and a scheme does not change.

    Args:
        spec: Of the method.
        device: Of the rows.
    """

    def __init__(self, spec: PluginSpec, device: torch.device) -> None:
        self.spec, self.device = spec, device
        self._kept: dict[Kind | None, Setting] = {}

    def __call__(self, kind: Kind | None = None) -> Setting:
        """The fit that checks share, with rows of one's own to release: a method that writes spoils one check's."""
        if kind not in self._kept:
            self._kept[kind] = self.fresh(kind)
        kept = self._kept[kind]
        public, private = self._rows(kept.kind)
        return replace(kept, public=public, private=private)

    def fresh(self, kind: Kind | None = None) -> Setting:
        """A fit of one's own, on images, or on tables where the method refuses those, unless `kind` says which."""
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
