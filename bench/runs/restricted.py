"""Records of data that may not be shared: figures and bounds only.

Names, words and numbers of a plug-in may hold data that it has seen: pixels, paths and identifiers have left in notes,
in the names of stages and of exceptions, and in texts that explain refusals. The figures themselves stay, each with its
interval: they are what the record is for. Their replicates go: they are enough numbers for an image, and reveal figures
of single people to those who know the resamples.
"""

from __future__ import annotations

import re

import torch

from bench.results.disclosure_check import PEAKS, harmless, shortages
from bench.results.reason import UNSAID, withheld
from bench.results.records import DatasetRecord, FeatureRecord, ScoreRecord
from bench.rows.person_groups import IMAGES
from bench.runs.answers import Evaluation, Fitted
from bench.workbench.machine import hardware

PARTS = frozenset({
    "ceiling", "half samples", "first guess", "raw image", "two releases", "varying columns", "primary constituent",
    "games", "noise checks", "if Gaussian", "1 %", "1 guess", "10 guesses", "100 guesses",
    "pairs", "labels", "links", "replay", "all people", "median person", "person at 95 %", "most often found",
    "worst", "bound without a hit",
})  # fmt: skip
POINT = re.compile(r"(within|1 false in) [1-9][0-9]{0,6}")
"""Points of a curve."""
SECONDS = ("open", "total")
MOST_THREADS = 10_000


def restricted(
    found: Evaluation, data: DatasetRecord, device: str, *, own_attack: bool, own_method: bool
) -> Evaluation:
    """The evaluation without words of plug-ins; this process describes the machine.

    `own_attack` and `own_method` as in `bench.results.disclosure_check.harmless`.
    """
    groups = {"finding": data.findings, "images": IMAGES, **data.attributes}
    names = PARTS.union(data.findings, (f"{name}: {group}" for name, of in groups.items() for group in of))
    said = {name: value for name, value in found.details.items() if name != PEAKS}  # measured outside of the worker
    threads = found.hardware.get("threads")
    machine = hardware(torch.device(device)) | ({"threads": threads} if threads in range(1, MOST_THREADS) else {})
    return Evaluation(
        scores={name: _figure(score, names) for name, score in found.scores.items()},
        not_applicable=dict.fromkeys(found.not_applicable, withheld("not-applicable")),
        broken=dict.fromkeys(found.broken, withheld("metric")),
        seconds={name: round(found.seconds[name], 3) for name in SECONDS if name in found.seconds},
        hardware=machine,
        details=harmless(said, data.findings, own_attack=own_attack, own_method=own_method),
    )


def restricted_fit(fitted: Fitted) -> Fitted:
    """A method's bounds without its words, and what ran short."""
    claim = fitted.claim
    if claim is not None:
        claim = claim.model_copy(update={"assumptions": UNSAID, "basis": UNSAID})
    return Fitted(claim=claim, notes=shortages(fitted.notes), seconds=fitted.seconds)


def restricted_data(data: DatasetRecord) -> DatasetRecord:
    """The data record without notes of extractors."""

    def quiet(reader: FeatureRecord | None) -> FeatureRecord | None:
        return None if reader is None else reader.model_copy(update={"notes": {}})

    return data.model_copy(update={"features": quiet(data.features), "scored_in": quiet(data.scored_in)})


def _figure(score: ScoreRecord, names: frozenset[str]) -> ScoreRecord:
    """A figure whose parts are named by findings, fixed words or place."""
    parts = {
        name if name in names or POINT.fullmatch(name) else f"part {place}": _figure(part, names)
        for place, (name, part) in enumerate(score.parts.items(), start=1)
    }
    return score.model_copy(update={"note": UNSAID, "parts": parts, "replicates": None})
