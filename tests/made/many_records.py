"""Records by the thousand, made up, for what has to bear many of them: pages, above all.

    for record in many(10_000, seed=0): ...

Twenty methods on as many data sets as it takes, each cell with the records of a usual run: the judge's word, utility,
eight attacks with figures, intervals, parts and replicates, and here and there one that failed or does not apply.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.contract.replicates import Scale
from bench.results.record_parts import replicates_record
from bench.results.records import PluginRecord, Record, ScoreRecord, dumps
from bench.types import Replicates
from made.board_records import claim, dataset, keyed, plugin, record, score

ATTACKS = ("contrastive", "nearest-neighbour", "relational", "invariants", "moments", "leverage", "surrogate", "prng")
REFERENCES = {"identity": "hides nothing", "noise": "keeps nothing", "hidden-control": "keeps nothing, in secret"}
METHODS = (*REFERENCES, *(f"method-{number:02d}" for number in range(17)))
SETS = 12
KEYS, RESAMPLES, PEOPLE = 5, 100, "0123456789abcdef"


def many(count: int, seed: int = 0) -> Iterator[Record]:
    """So many records, the same for the same seed."""
    made = 0
    for number in range(count):
        for method in METHODS:
            chance = random.Random(f"{seed} {method} {number}")
            for one in _cell(method, f"data-{number % SETS:02d}", number // SETS, chance):
                if made == count:
                    return
                made += 1
                yield one


def write(count: int, folder: Path, seed: int = 0) -> None:
    """A results folder of them, without the care for crashes that the harness takes."""
    for one in many(count, seed):
        path = folder / "cells" / one.cell / f"{one.evaluator}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(one), encoding="utf-8")


def _cell(method: str, name: str, seed: int, chance: random.Random) -> Iterator[Record]:
    role = REFERENCES.get(method)
    plain = plugin(method, {} if role else {"scale": 10.0, "blocks": chance.randrange(1, 9)})
    made: PluginRecord = plain.model_copy(update={"role": role})
    leak = {"hides nothing": 1.0, None: chance.choice((0.0, 0.3 * chance.random(), 1.0))}.get(role, 0.0)
    more: dict[str, Any] = {
        "parameters": made.parameters, "dataset": dataset(name), "seed": seed,
        "cell": f"{name}/{method}-quick-seed{seed}",
        "claim": None if role else claim(round(10 ** chance.uniform(0, 3), 2)),
    }  # fmt: skip

    def one(evaluator: str, kind: str, scores: dict[str, ScoreRecord], **rest: Any) -> Record:
        return keyed(record(method, evaluator, scores, kind=kind, **{**more, **rest}), method=made)

    parts = {name: score(0.0) for name in ("pairs", "labels", "links", "replay")}
    yield one("honesty", "honesty", {"broken-promises": score(0.0, parts=parts)})
    useful = 0.5 + 0.4 * chance.random()
    groups = {f"finding {i}": _figure(useful, 0.5, "higher") for i in range(8)}
    whole = _figure(useful, 0.5, "higher", chance).model_copy(update={"parts": groups})
    yield one("utility", "utility", {"utility-auc": whole})
    yield one("throughput", "throughput", {"throughput": score(chance.uniform(1e2, 1e5), better="higher")})
    for attack in ATTACKS:
        found = leak * chance.random() if role is None else leak
        if role is None and chance.random() < 0.1:
            told = chance.choice([("failed", "out of memory"), ("not-applicable", "it needs links to pairs of rows")])
            yield one(f"reidentification-{attack}", "reidentification", {}, status=told[0], reason=told[1],
                      attack=plugin(attack, {}), phase="attack")  # fmt: skip
            continue
        auc = 1.0 if role == "hides nothing" else 0.5 + 0.5 * found
        guesses = 1.0 if role == "hides nothing" else max(1.0, 100 * (1 - found) ** 3)
        figures = {
            "reid-auc": _figure(auc, 0.5, "lower", chance), "guesswork": _figure(guesses, 100.0, "higher", chance),
            "top-1": _figure(max(0.01, found), 0.01, "lower", chance),
            "person-risk": _figure(max(0.2, found), 0.2, "lower"),
        }  # fmt: skip
        yield one(f"reidentification-{attack}", "reidentification", figures, attack=plugin(attack, {}),
                  threat_model={"key": "unknown", "scheme": "known", "candidates": "the raw images"})  # fmt: skip


def _figure(value: float, null: float, better: Any, chance: random.Random | None = None) -> ScoreRecord:
    spread = 0.1 * abs(null)
    kept = None
    if chance is not None:
        noise = np.random.default_rng(chance.randrange(2**32))
        table = value + spread * noise.standard_normal((KEYS, RESAMPLES))
        scale: Scale = "plain" if null != 100.0 else "log"
        table = np.maximum(table, 0.5) if scale == "log" else table
        by_key = table.mean(axis=1).tolist()
        kept = replicates_record(Replicates(by_key, table.tolist(), float(RESAMPLES), PEOPLE, scale))
    p = 1.0 if abs(value - null) < 2 * spread else 1e-6
    low, high = (value / 1.3, value * 1.3) if null == 100.0 else (value - spread, value + spread)
    return score(
        value, low, high, better=better, null=null, null_low=null - spread, null_high=null + spread, p=p,
        note="95 % interval over people and 5 keys", replicates=kept,
    )  # fmt: skip
