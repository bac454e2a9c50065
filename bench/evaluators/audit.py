"""The audit evaluator: a distinguishing game against a method's differential-privacy claim (see `bench.audit.game`)."""

from __future__ import annotations

import time

from bench.audit.game import audit
from bench.types import Attack, NotApplicable
from bench.workbench.measurement import Measurement
from bench.workbench.workbench import Workbench


def run_audit(bench: Workbench, attack: Attack | None) -> Measurement:
    """Choose a test on half of the releases and count what it calls on the other half."""
    start = time.perf_counter()
    scheme = bench.scheme()
    claim = scheme.claim()
    if claim is None:
        raise NotApplicable(f"{bench.method.name} makes no formal claim that an audit could refute")
    rule, evidence, game = bench.untouched(
        bench.method.name,
        lambda: audit(scheme, claim, bench.public, trials=bench.preset.trials, seed=bench.seed("audit")),
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
        {"knowledge": "the method and both inputs, one of which was released; the key's random numbers are unknown"},
    )
