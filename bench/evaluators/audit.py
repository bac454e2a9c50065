"""The audit evaluator: distinguishing games against a differential-privacy claim (see `bench.audit`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import torch
from pydantic import JsonValue

from bench.audit.distinguishing_game import CONFIDENCE, Played, audit
from bench.audit.game_plays import SET
from bench.audit.noise_checks import check_density, check_reuse, draw_noise
from bench.contract.seal import ContractError
from bench.evidence import AuditEvidence, Calls, Noise
from bench.types import Dataset, Evaluator, Measurement, NotApplicable, PrivacyClaim, Scheme
from bench.workbench.workbench import Workbench

ROWS = 48  # public rows whose noise is compared with its density
MOST_COMPLETED = 1 << 22  # numbers of the owner's rows up to which each call of another author's method is completed


@dataclass(frozen=True)
class Audit(Evaluator[Workbench]):
    """A distinguishing game that tries to refute a claim of differential privacy."""

    name: ClassVar[str] = "audit"
    source: ClassVar[str] = "Jagielski, Ullman and Oprea 2020; Nasr et al. 2021; Steinke, Nasr and Jagielski 2023"
    evidence: ClassVar[type] = AuditEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Choose a test, count it on other releases, check the noise."""
        start = time.perf_counter()
        scheme = bench.scheme()
        claim = scheme.claim()
        if claim is None:
            raise NotApplicable(f"{bench.method.name} makes no formal claim that an audit could refute")
        bench.require_public("an audit makes its inputs of public rows")
        # Another author's method knows the public rows, and the number of its owner's.
        inputs, size = (bench.control, len(bench.private)) if bench.outside else (bench.public, SET)
        called = bench.for_eve(scheme) if bench.private.samples.numel() <= MOST_COMPLETED else scheme
        played = bench.untouched(
            bench.method.name,
            lambda: audit(called, claim, inputs, trials=bench.preset.trials, secret=bench.secret("audit"), size=size),
        )
        audited = time.perf_counter()
        noise, checks = noise_of(bench.for_eve(scheme), bench.private if bench.outside else bench.public)
        evidence = AuditEvidence(
            claim, played.calls, CONFIDENCE, one_run=played.one_run, games=played.games, noise=noise,
            coins=played.coins, runs=played.runs, black_box=played.black_box, reach=played.reach,
        )  # fmt: skip
        return Measurement(
            {"": evidence},
            {
                **_game_details(played),
                **(_form(called is not scheme, size) if bench.outside else {}),
                "accounting": dict(scheme.accounts(len(bench.private))),
                "noise": noise,
                "noise_checks": checks,
                "confidence": CONFIDENCE,
                "family": claim.family,
                "sampling_rate": claim.sampling_rate,
                "steps": claim.steps,
            },
            {"audit": audited - start, "noise checks": time.perf_counter() - audited},
            {"knowledge": "the method and both inputs, one of them released; the key's random numbers are unknown"},
        )

    @classmethod
    def samples(cls) -> Iterator[AuditEvidence]:
        """Games that show much, nothing, and less than nothing."""
        claim = PrivacyClaim("image", 1.0, 0.0, "none", "an example")
        counts = (90, 0, 0, 80), (50, 50, 50, 50), (0, 100, 100, 0)
        yield from (AuditEvidence(claim, Calls(200, 100, *four), 0.95) for four in counts)


def _form(completed: bool, size: int) -> dict[str, JsonValue]:
    """Calls of another author's method, for the record."""
    others = "completed to that" if completed else "not completed: these would hold too many numbers"
    return {"calls of the method": f"{size} control rows; smaller calls are {others}"}


def _game_details(played: Played) -> dict[str, JsonValue]:
    """The counted game, for the record."""
    calls = played.calls
    return {
        "inputs": played.inputs,
        "statistic": played.statistic,
        "second_below": played.thresholds[0],
        "first_above": played.thresholds[1],
        "one_run": played.one_run,
        "coins": played.coins,
        "runs": played.runs,
        "black_box": None if played.black_box is None else asdict(played.black_box),
        "reach": played.reach,
        "searched": played.searched,
        "games": list(played.games),
        "guesses": calls.guesses,
        "correct": calls.correct,
        **asdict(calls),
    }


def noise_of(scheme: Scheme, public: Dataset) -> tuple[Noise, str]:
    """Verdict on the noise of released public rows, and its reason."""
    half = min(ROWS, len(public) // 2)
    if half < 2:
        return "unread", f"noise is compared on 4 public rows at least, got {len(public)}"
    order = torch.arange(2 * half, device=public.samples.device)
    private, other = (replace(public.take(part), subjects=None) for part in (order[:half], order[half:]))
    try:
        added = draw_noise(scheme, private, other)
    except NotApplicable as reason:
        return "unread", str(reason)
    try:
        check_density(added)
        check_reuse(added)
    except ContractError as reason:
        return "fails", str(reason)
    return "holds", f"{sum(part.numel() for part in added.values()):,} numbers follow the stated density, none twice"
