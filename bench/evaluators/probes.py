"""The probes evaluator: detection of an artificial mark in released images.

Source: the DP-GLOW paper, section 7.2 and figures 3 to 6: an artificial block marker, and situs inversus simulated by a
left-right flip. Such features could identify a person. The paper shows pictures. Here every probe is a score: half of
the private people get the mark, and a detector finds them.

The detector is Eve's. She knows the scheme and the public rows, marks half of the public people herself and releases
them under keys of her own, with new marks for each; she chooses among detectors by public people and a key that she did
not train on. The paper shows its marker only in a picture: here a white square an eighth of the image high and wide,
which begins anywhere in the first quarter of the rows and of the columns, so that no single pixel decides. The same
detector is trained and scored on raw images, as a reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias, cast

import torch
from pydantic import JsonValue

from bench.bob import model_selection, recipes
from bench.contract.seal import check
from bench.evaluators.predictions import sample_predictions, summary
from bench.evidence import ProbeEvidence, UtilityEvidence
from bench.pictures.strips import SHOWN, draw
from bench.plugins.code_digest import code_digest
from bench.progress import stage
from bench.randomness import Secret
from bench.results.store import Artefact
from bench.rows.grouping import hold_out
from bench.rows.row_sets import in_order
from bench.seeds import derive, generator
from bench.statistics.bootstrap import half_samples
from bench.types import Dataset, Evaluator, Key, Measurement, NotApplicable, Picture, Release
from bench.workbench.workbench import Workbench, detector

OWN_KEYS = 4  # keys that Eve trains on
CHOOSING = 0.25  # share of the public rows that she chooses by
BLOCK, CORNER = 8, 4  # image side divided by the block's side, and by the range of its corner

Mark: TypeAlias = "Callable[[torch.Tensor, int], torch.Tensor]"


def paint_block(images: torch.Tensor, seed: int) -> torch.Tensor:
    """Images in [0, 1] with a white block near the upper left."""
    source = generator(seed)
    spans = []
    for length in images.shape[2:]:
        first = torch.randint(max(1, length // CORNER), (len(images), 1), generator=source)
        place = torch.arange(length)
        spans.append((place >= first) & (place < first + max(1, length // BLOCK)))
    block = spans[0][:, None, :, None] & spans[1][:, None, None, :]
    return images.masked_fill(block.to(images.device), 1.0)


def flip(images: torch.Tensor, seed: int) -> torch.Tensor:
    """Images (n, c, h, w) flipped left to right; seed unused."""
    return images.flip(-1)


MARKS: Mapping[str, Mark] = {"block marker": paint_block, "flip": flip}


@dataclass(frozen=True, eq=False)
class Marked:
    """Raw or released rows, some with the mark; their raw rows."""

    rows: Dataset
    carried: torch.Tensor
    origin: torch.Tensor


def deal(data: Dataset, mark: Mark, seed: int) -> Marked:
    """Raw images; those of a random half of people are marked."""
    subjects = None if data.subjects is None else data.subjects.cpu()
    chosen = half_samples(subjects, len(data), 1, seed=derive(seed, "people"))[0].to(data.samples.device)
    samples, carried = data.samples.clone(), data.samples.new_zeros(len(data), 1)
    samples[chosen] = mark(samples[chosen], derive(seed, "mark"))
    carried[chosen] = 1
    return Marked(replace(data, samples=samples), carried, torch.arange(len(data), device=samples.device))


@dataclass(frozen=True)
class Probes(Evaluator[Workbench]):
    """Detection of a mark of the raw image in its release."""

    name: ClassVar[str] = "probes"
    source: ClassVar[str] = "Shibata et al. 2022 (DP-GLOW), section 7.2"
    evidence: ClassVar[type] = ProbeEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Train Eve's detector on her releases; score the owner's, by mark."""
        if bench.private.samples.ndim != 4:
            raise NotApplicable("probes mark images, and these rows are a table's")
        bench.require_public("probes mark public images to learn from")
        scheme = bench.scheme()
        start = time.perf_counter()
        eve = bench.for_eve(scheme)
        own_keys = [eve.sample_key(Secret.of_seed(bench.seed("probe key", number))) for number in range(OWN_KEYS + 1)]
        if bench.outside:  # it knows the public rows, and the number of its owner's
            learning = choosing = bench.private
        else:
            rows = hold_out(bench.public, CHOOSING, bench.seed("probes"))
            learning, choosing = (bench.public.take(some) for some in rows)
        released: dict[str, UtilityEvidence] = {}
        original: dict[str, UtilityEvidence] = {}
        details: dict[str, JsonValue] = {}
        strips: list[torch.Tensor] = []
        for name, mark in MARKS.items():
            stage(f"release {name}")
            seeds = [bench.seed("probe", name, number) for number in range(OWN_KEYS + 2)]
            marked = [
                deal(part, mark, seed) for part, seed in zip([learning] * OWN_KEYS + [choosing], seeds, strict=False)
            ]
            marked.append(deal(bench.private, mark, seeds[-1]))
            released_sets = bench.untouched(
                bench.method.name, partial(_send, bench, marked, [*own_keys, bench.key(scheme, 0)])
            )
            plan = recipes.BobPlan(
                ("resnet18", "sau"), epochs=bench.preset.probe_epochs, width=bench.preset.probe_width
            )  # a mark is small, and anywhere
            stage(f"detect {name}")
            on_release = _detect(bench, released_sets, name, plan)
            stage(f"detect {name}, raw image")
            inputs = {"probe": name, "plan": cast(JsonValue, asdict(plan)), "code": code_digest(Probes)} | (
                {"rows": "private"} if bench.outside else {}
            )
            on_raw = detector(bench, inputs, partial(_detect, bench, marked, name, plan))
            released[name], original[name] = (
                _evidence(bench, released_sets[-1], on_release, name),
                _evidence(bench, marked[-1], on_raw, name),
            )
            details |= {name: dict(on_release.notes), f"{name}, raw image": dict(on_raw.notes)}
            strips += _strips(bench.private, marked[-1], released_sets[-1])
        evidence = ProbeEvidence(released, original)
        seconds = {"probes": time.perf_counter() - start}
        return Measurement({"": evidence}, details, seconds, _knowledge(bench, learning, choosing), strips)

    def pictures(self, bench: Workbench, found: Measurement) -> Mapping[str, Picture]:
        """Strips of raw images, marked ones, and their releases, by mark."""
        strips = cast("list[torch.Tensor]", found.shown)
        return {"marks": Picture("Raw images, the same with a mark, and what is released of those", draw(strips))}

    @classmethod
    def samples(cls) -> Iterator[ProbeEvidence]:
        """Two random columns against a label."""
        single = sample_predictions().single
        yield ProbeEvidence({"mark": single}, {"mark": single})


def _send(bench: Workbench, dealt: Sequence[Marked], keys: Sequence[Key]) -> list[Marked]:
    """Released form of each part under its own key."""
    released = []
    for part, key in zip(dealt, keys, strict=True):
        release = key.release(part.rows)
        check(release, part.rows)
        if release.samples.ndim != 4:
            raise NotApplicable(f"probes look at images, and {bench.method.name} releases vectors")
        rows_shown, rows = in_order(release, release.links, part.rows, bench.method.name)
        released.append(Marked(rows_shown, part.carried[rows], rows))
    return released


def _detect(bench: Workbench, parts: Sequence[Marked], name: str, plan: recipes.BobPlan) -> Artefact:
    """Scores of the last part; the one before it chose Bob."""
    *learned, chosen, judged = parts
    samples = torch.cat([part.rows.samples for part in learned])
    release = Release(samples, torch.cat([part.carried for part in learned]), None)
    seed = bench.seed("probe detector", name)
    bob = model_selection.train_bob(release, chosen.rows.samples, chosen.carried, exclusive=False, plan=plan, seed=seed)
    return Artefact({"scores": bob.predict(judged.rows.samples).float().cpu()}, summary(bob))


def _evidence(bench: Workbench, judged: Marked, artefact: Artefact, name: str) -> UtilityEvidence:
    subjects = None if judged.rows.subjects is None else judged.rows.subjects.cpu()
    return UtilityEvidence(
        [artefact.tensors["scores"]], judged.carried.cpu(), subjects, (name,), bench.seed("probe", name)
    )


def _strips(raw: Dataset, dealt: Marked, sent: Marked) -> list[torch.Tensor]:
    """First marked images: raw, marked, released."""
    shown = sent.carried[:, 0].nonzero()[:SHOWN, 0]
    origin = sent.origin[shown]
    return [raw.samples[origin], dealt.rows.samples[origin], sent.rows.samples[shown]]


def _knowledge(bench: Workbench, learning: Dataset, choosing: Dataset) -> dict[str, str]:
    """Eve's knowledge, for the record."""
    return {
        "eve": "the mark, the scheme and the owner's images, which she marks and releases herself"
        if bench.outside
        else "the mark, the scheme and public images, which she marks and releases herself",
        "public": "none, for another author's method knows public rows"
        if bench.outside
        else f"{len(learning)} rows of {bench.record.public}, and {len(choosing)} of other people to choose by",
        "scheme": f"known; she trains on {OWN_KEYS} keys of her own and chooses by one more",
        "key": "unknown: scored on 1 key that she never saw",
    }
