"""The audit evaluator: a distinguishing game against a method's differential-privacy claim (see `bench.audit.game`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench.audit.game import audit
from bench.evidence import AuditEvidence
from bench.types import Evaluator, Measurement, NotApplicable, PrivacyClaim
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Audit(Evaluator[Workbench]):
    """A distinguishing game that tries to refute a claim of differential privacy."""

    name: ClassVar[str] = "audit"
    source: ClassVar[str] = "Jagielski, Ullman and Oprea 2020; Nasr et al. 2021"
    evidence: ClassVar[type] = AuditEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Choose a test on half of the releases and count what it calls on the other half."""
        start = time.perf_counter()
        scheme = bench.scheme()
        claim = scheme.claim()
        if claim is None:
            raise NotApplicable(f"{bench.method.name} makes no formal claim that an audit could refute")
        rule, evidence, game = bench.untouched(
            bench.method.name,
            lambda: audit(scheme, claim, bench.public, trials=bench.preset.trials, secret=bench.secret("audit")),
        )
        return Measurement(
            {"": evidence},
            {
                "inputs": rule.pair.name,
                "statistic": rule.statistic.name,
                "direction": "above" if rule.sign > 0 else "below",
                "threshold": rule.sign * rule.threshold,
                "trials": evidence.trials,
                "hits": evidence.hits,
                "false_alarms": evidence.false_alarms,
                "confidence": evidence.confidence,
                "rows_a_release": game.copies,
            },
            {"audit": time.perf_counter() - start},
            {
                "knowledge": "the method and both inputs, one of which was released; the key's random numbers are "
                "unknown"
            },
        )

    @classmethod
    def samples(cls) -> Iterator[AuditEvidence]:
        """Games that show much, nothing, and less than nothing."""
        claim = PrivacyClaim("image", 1.0, 0.0, "none", "an example")
        yield from (AuditEvidence(claim, 100, *counts, 0.95) for counts in ((90, 0), (50, 50), (0, 100)))
