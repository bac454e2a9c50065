"""The probes evaluator: does a release still show a mark that its raw image carried?

Source: the DP-GLOW paper, section 7.2 and figures 3 to 6: an artificial block marker, and situs inversus simulated by a
left-right flip; things that would tell a person apart. The paper shows pictures. Here every probe is a score: half of
the private people get the mark, and a detector says who.

The detector is Eve's. She knows the scheme and the public rows, marks half of the public people herself and releases
them under keys of her own, dealing the marks anew for each; she chooses among detectors by public people and a key that
she did not train on. The paper's marker is given by its picture only: here a white square an eighth of the image high
and wide, which begins anywhere in the first quarter of the rows and of the columns, so that no single pixel tells.
Beside it stands the same detector trained and scored on raw images: what there was to hide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias, cast

import torch
from pydantic import JsonValue

from bench.bob import model_selection, recipes
from bench.contract.seal import check
from bench.evaluators.predictions import sample_predictions, summary
from bench.evidence import ProbeEvidence, UtilityEvidence
from bench.pictures.strips import SHOWN, draw
from bench.plugins.source_hash import modules_hash
from bench.progress import stage
from bench.randomness import Secret
from bench.results.store import Artefact
from bench.rows.person_groups import hold_out
from bench.rows.row_sets import in_order
from bench.seeds import derive, generator
from bench.statistics.bootstrap import half_samples
from bench.types import Dataset, Evaluator, Key, Measurement, NotApplicable, Picture, Release
from bench.workbench.detectors import detector
from bench.workbench.workbench import Workbench

OWN_KEYS = 4  # that Eve trains on
CHOOSING = 0.25  # share of the public rows that she chooses by
BLOCK, CORNER = 8, 4  # as a part of the image's height and width: the block, and where it begins

Mark: TypeAlias = "Callable[[torch.Tensor, int], torch.Tensor]"


def paint_block(images: torch.Tensor, seed: int) -> torch.Tensor:
    """Images (n, c, h, w) in [0, 1] with a white block each, at a place of its own in the upper left corner."""
    source = generator(seed)
    spans = []
    for length in images.shape[2:]:
        first = torch.randint(max(1, length // CORNER), (len(images), 1), generator=source)
        place = torch.arange(length)
        spans.append((place >= first) & (place < first + max(1, length // BLOCK)))
    block = spans[0][:, None, :, None] & spans[1][:, None, None, :]
    return images.masked_fill(block.to(images.device), 1.0)


def flip(images: torch.Tensor, seed: int) -> torch.Tensor:
    """Images (n, c, h, w) with left and right exchanged, whatever the seed."""
    return images.flip(-1)


MARKS: Mapping[str, Mark] = {"block marker": paint_block, "flip": flip}


@dataclass(frozen=True, eq=False)
class Marked:
    """Rows, raw or released, some of which carry the mark.

    Args:
        rows: The rows, with the labels and people of their raw ones.
        carried: (n, 1) float32: 1 with the mark, 0 without.
        origin: (n,) int64: the raw row of each.
    """

    rows: Dataset
    carried: torch.Tensor
    origin: torch.Tensor


def deal(data: Dataset, mark: Mark, seed: int) -> Marked:
    """Raw images of which those of a random half of the people carry the mark."""
    subjects = None if data.subjects is None else data.subjects.cpu()
    chosen = half_samples(subjects, len(data), 1, seed=derive(seed, "people"))[0].to(data.samples.device)
    samples, carried = data.samples.clone(), data.samples.new_zeros(len(data), 1)
    samples[chosen] = mark(samples[chosen], derive(seed, "mark"))
    carried[chosen] = 1
    return Marked(replace(data, samples=samples), carried, torch.arange(len(data), device=samples.device))


@dataclass(frozen=True)
class Probes(Evaluator[Workbench]):
    """Whether a release still shows a mark that its raw image carried."""

    name: ClassVar[str] = "probes"
    source: ClassVar[str] = "Shibata et al. 2022 (DP-GLOW), section 7.2"
    evidence: ClassVar[type] = ProbeEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """For each mark, train Eve's detector on releases of her own and score the owner's under the first key."""
        if bench.private.samples.ndim != 4:
            raise NotApplicable("probes mark images, and these rows are a table's")
        bench.require_public("probes mark public images to learn from")
        scheme = bench.scheme()
        start = time.perf_counter()
        own = [scheme.sample_key(Secret.of_seed(bench.seed("probe key", number))) for number in range(OWN_KEYS + 1)]
        learning, choosing = (
            bench.public.take(rows) for rows in hold_out(bench.public, CHOOSING, bench.seed("probes"))
        )
        released: dict[str, UtilityEvidence] = {}
        original: dict[str, UtilityEvidence] = {}
        details: dict[str, JsonValue] = {}
        strips: list[torch.Tensor] = []
        for name, mark in MARKS.items():
            stage(f"release {name}")
            seeds = [bench.seed("probe", name, number) for number in range(OWN_KEYS + 2)]
            dealt = [
                deal(part, mark, seed) for part, seed in zip([learning] * OWN_KEYS + [choosing], seeds, strict=False)
            ]
            dealt.append(deal(bench.private, mark, seeds[-1]))
            sent = bench.untouched(bench.method.name, partial(_send, bench, dealt, [*own, bench.key(scheme, 0)]))
            plan = recipes.BobPlan(
                ("resnet18", "sau"), epochs=bench.preset.probe_epochs, width=bench.preset.probe_width
            )  # a mark is small, and anywhere
            stage(f"detect {name}")
            shown = _detect(bench, sent, name, plan)
            stage(f"detect {name}, raw image")
            inputs = {"probe": name, "plan": cast(JsonValue, asdict(plan)), "code": modules_hash(Path(__file__))}
            hidden = detector(bench, inputs, partial(_detect, bench, dealt, name, plan))
            released[name], original[name] = (
                _evidence(bench, sent[-1], shown, name),
                _evidence(bench, dealt[-1], hidden, name),
            )
            details |= {name: dict(shown.notes), f"{name}, raw image": dict(hidden.notes)}
            strips += _strips(bench.private, dealt[-1], sent[-1])
        evidence = ProbeEvidence(released, original)
        seconds = {"probes": time.perf_counter() - start}
        return Measurement({"": evidence}, details, seconds, _knowledge(bench, learning, choosing), strips)

    def pictures(self, bench: Workbench, found: Measurement) -> Mapping[str, Picture]:
        """For each mark a strip of raw images, of marked ones, and of what is released of these."""
        strips = cast("list[torch.Tensor]", found.shown)
        return {"marks": Picture("Raw images, the same with a mark, and what is released of those", draw(strips))}

    @classmethod
    def samples(cls) -> Iterator[ProbeEvidence]:
        """Two random columns against a label."""
        single = sample_predictions().single
        yield ProbeEvidence({"mark": single}, {"mark": single})


def _send(bench: Workbench, dealt: Sequence[Marked], keys: Sequence[Key]) -> list[Marked]:
    """What each part looks like after its release under its own key."""
    found = []
    for part, key in zip(dealt, keys, strict=True):
        release = key.release(part.rows)
        check(release, part.rows)
        if release.samples.ndim != 4:
            raise NotApplicable(f"probes look at images, and {bench.method.name} releases vectors")
        shown, rows = in_order(release, release.links, part.rows, bench.method.name)
        found.append(Marked(shown, part.carried[rows], rows))
    return found


def _detect(bench: Workbench, parts: Sequence[Marked], name: str, plan: recipes.BobPlan) -> Artefact:
    """Scores (m, 1) of the last part by the detector that learned from the first ones and was chosen by the last but
    one, with what Bob says of it.
    """
    *learned, chosen, judged = parts
    samples = torch.cat([part.rows.samples for part in learned])
    release = Release(samples, torch.cat([part.carried for part in learned]), None)
    seed = bench.seed("probe detector", name)
    bob = model_selection.train_bob(release, chosen.rows.samples, chosen.carried, exclusive=False, plan=plan, seed=seed)
    return Artefact({"scores": bob.predict(judged.rows.samples).float().cpu()}, summary(bob))


def _evidence(bench: Workbench, judged: Marked, found: Artefact, name: str) -> UtilityEvidence:
    subjects = None if judged.rows.subjects is None else judged.rows.subjects.cpu()
    return UtilityEvidence(
        [found.tensors["scores"]], judged.carried.cpu(), subjects, (name,), bench.seed("probe", name)
    )


def _strips(raw: Dataset, dealt: Marked, sent: Marked) -> list[torch.Tensor]:
    """The first marked images as they were, marked, and released."""
    shown = sent.carried[:, 0].nonzero()[:SHOWN, 0]
    origin = sent.origin[shown]
    return [raw.samples[origin], dealt.rows.samples[origin], sent.rows.samples[shown]]


def _knowledge(bench: Workbench, learning: Dataset, choosing: Dataset) -> dict[str, str]:
    """What Eve knows, for the record."""
    return {
        "eve": "the mark, the scheme and public images, which she marks and releases herself",
        "public": f"{len(learning)} rows of {bench.record.public}, and {len(choosing)} of other people to choose by",
        "scheme": f"known; she trains on {OWN_KEYS} keys of her own and chooses by one more",
        "key": "unknown: scored on 1 key that she never saw",
    }
