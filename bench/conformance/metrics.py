"""Checks of a metric, on evidence of the kind it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import torch

from bench.conformance.outcome import PRESET, ROWS, Skip, require
from bench.evidence import (
    AnonymityEvidence,
    AuditEvidence,
    DecodingEvidence,
    DetectionEvidence,
    LearningEvidence,
    LinearProbeEvidence,
    MembershipEvidence,
    PairEvidence,
    PairLevel,
    ProbeEvidence,
    SetEvidence,
    TableEvidence,
    TimingEvidence,
    TransferEvidence,
    UtilityEvidence,
)
from bench.pairs.people import patient_links
from bench.pairs.sweep import PairCounts
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.seeds import generator
from bench.statistics.resampling import half_samples
from bench.types import Metric, PrivacyClaim, column_of, evidence_type


def _carries_its_column(spec: PluginSpec, device: torch.device) -> None:
    cls = registry.load("metrics", spec.name)
    column_of(cls)
    better = getattr(cls, "better", None)
    require(better in ("higher", "lower"), f"{cls.__name__}.better must be 'higher' or 'lower', got {better!r}")


def _metric_is_sound(spec: PluginSpec, device: torch.device) -> None:
    cls = registry.load("metrics", spec.name)
    metric = cast("Metric[object]", registry.build("metrics", spec, PRESET))
    for evidence in _evidence(evidence_type(cls)):
        first, second = metric(evidence), metric(evidence)
        require(first == second, "the same evidence gave two different scores")
        require(first.value == first.value and abs(first.value) != float("inf"), "a score must be finite")
        if first.low is not None and first.high is not None:
            require(first.low <= first.high, f"the interval is upside down: {first.low} to {first.high}")
        require(first.low is not None or first.note != "", "a score without an interval must say why in its note")


def _evidence(kind: type) -> Iterator[object]:
    """Small pieces of evidence of one kind; a kind that this suite does not know is skipped."""
    random = generator(0)
    subjects = torch.arange(ROWS) // 3
    if kind is PairEvidence:
        n = 2 * ROWS  # so that half of them have more than a thousand wrong pairs
        subjects = torch.arange(n) // 3
        links = torch.stack((torch.arange(n), torch.randperm(n, generator=random)), dim=1)
        samples = half_samples(subjects, n, 4, seed=1)
        counts = [[_counts(len(sample), key) for sample in samples] for key in range(2)]
        people = PairLevel(counts, patient_links(links, subjects))
        yield PairEvidence((n, n), PairLevel(counts, links), people, samples, 1)
        sets = [[_counts(n, key + number) for number in range(9)] for key in range(2)]
        own = [_counts(n, key) for key in range(2)]
        images = PairLevel(counts, links, own, sets)
        yield PairEvidence((n, n), images, PairLevel(counts, people.links, own, sets), samples, 1, primary=images)
    elif kind in (
        UtilityEvidence, LinearProbeEvidence, LearningEvidence, TransferEvidence, DetectionEvidence, ProbeEvidence,
    ):  # fmt: skip
        scores = [torch.rand(ROWS, 2, generator=random) for _ in range(2)]
        labels = torch.stack((torch.arange(ROWS) % 2, torch.arange(ROWS) // 2 % 2), dim=1).to(torch.float32)
        labels[0] = torch.nan
        many = UtilityEvidence(scores, labels, subjects, ("first", "second"), 1)
        one = UtilityEvidence(scores[:1], labels, None, ("first", "second"), 1)
        classes = torch.nn.functional.one_hot(torch.arange(ROWS) % 2, 2).float()
        exclusive = UtilityEvidence(scores[:1], classes, subjects, ("first", "second"), 1)
        single = UtilityEvidence([scores[0][:, :1]], classes[:, :1], subjects, ("first",), 1)
        found: dict[type, tuple[object, ...]] = {
            UtilityEvidence: (many, one),
            LinearProbeEvidence: (
                LinearProbeEvidence({0.0: many, 1.0: many}),
                LinearProbeEvidence({0.0: one, 2.0: one}),
            ),
            LearningEvidence: (LearningEvidence({0.25: one, 0.5: one}),),
            TransferEvidence: (TransferEvidence({"p/o": exclusive}),),
            DetectionEvidence: (DetectionEvidence(single, single),),
            ProbeEvidence: (ProbeEvidence({"mark": single}, {"mark": single}),),
        }
        yield from found[kind]
    elif kind is MembershipEvidence:
        members = subjects % 4 != 0
        yield MembershipEvidence([torch.rand(ROWS, generator=random).double() for _ in range(2)], members, subjects, 1)
        yield MembershipEvidence([torch.zeros(ROWS, dtype=torch.float64)], members, None, 1)
        yield MembershipEvidence([members.double()], members, subjects, 1)
    elif kind is TableEvidence:
        rows = torch.rand(ROWS, 3, generator=random)
        yield TableEvidence(rows, rows + 0.1, torch.rand(ROWS, 3, generator=random), ("a", "b", "c"), 1)
    elif kind is AuditEvidence:
        claim = PrivacyClaim("image", 1.0, 0.0, "none", "an example")
        yield from (AuditEvidence(claim, 100, *counts, 0.95) for counts in ((90, 0), (50, 50), (0, 100)))
    elif kind is DecodingEvidence:
        raw = torch.rand(ROWS, 1, 8, 8, generator=random)
        yield DecodingEvidence(raw, (raw + 0.1).clamp(0, 1), raw.mean(dim=0), subjects, 1)
    elif kind is SetEvidence:
        rows = torch.rand(ROWS, 8, generator=random)
        labels = torch.stack((torch.arange(ROWS) % 2, torch.arange(ROWS) // 2 % 2), dim=1).to(torch.float32)
        labels[0] = torch.nan
        both = ("first", "second")
        yield SetEvidence(rows, rows.flip(0).clone(), subjects, subjects.flip(0), 1, labels, labels.flip(0), both)
        yield SetEvidence(rows, torch.zeros(5, 8), None, None, 1, labels, labels[:5], both)
    elif kind is AnonymityEvidence:
        sizes = torch.full((ROWS,), 4)
        yield AnonymityEvidence(sizes, 1 + torch.arange(ROWS) % 4, subjects, 1)
        yield AnonymityEvidence(sizes, sizes, None, 1)
    elif kind is TimingEvidence:
        yield TimingEvidence(100, (0.5, 0.4, 0.6))
    else:
        raise Skip(f"no evidence of the kind {kind.__name__} at hand")


def _counts(n: int, key: int) -> PairCounts:
    """Plausible counts for an n x n grid with distinct scores."""
    others = torch.full((2 * n + 1,), (n * n - n) // (n + 1))
    others[1::2] = 0
    top_1 = torch.rand(n, generator=generator(key)).double()
    return PairCounts((n, n), torch.ones(n, dtype=torch.int64), others, top_1, torch.arange(1, n + 1).double())


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "carries its column": _carries_its_column,
    "score is sound": _metric_is_sound,
}
