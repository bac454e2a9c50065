"""The reconstruction evaluator: raw images rebuilt from released rows, without candidates.

Source: model inversion by a network trained on own pairs, as in Fredrikson et al. 2015 and Balle et al. 2022
("Reconstructing training data with informed adversaries", section 4). Eve releases images of other people under keys of
her own and learns to give the raw image back: by ridge regression on the whole row, by ridge regression of each patch
on its released patch, and by the decoder of `bench.nets.decoder`. The best of them, or the mean image, is chosen by
squared error on other people under another key of hers; the record holds all their errors. It then rebuilds the owner's
rows, whose keys are new to her.

Each reconstruction is compared with its raw image, beside two guesses without the release: the mean image of Eve's
people, and the public or control image that is nearest to the raw one. Eve could not choose that image: it shows how
much likeness needs no knowledge of the person. Whether a reconstruction identifies its person is read from pixel
distances to all released people's raw images. Another author's method is asked for control and test people.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, cast

import torch
from pydantic import JsonValue

from bench.eve import demixing
from bench.evidence import Likeness, ReconstructionEvidence
from bench.nets import decoder
from bench.nets.patches import cut, fitting_patch, fold
from bench.pair_distances import pair_distances
from bench.pairs.exchanged_areas import exchangeable, exchanged_people
from bench.pictures.strips import SHOWN, draw, stands
from bench.progress import stage
from bench.randomness import Secret
from bench.rows.grouping import hold_out
from bench.seeds import generator
from bench.statistics.structural_similarity import mean_ssims, ms_ssim, psnr, scales, ssim
from bench.types import (
    LEARNING,
    Dataset,
    Evaluator,
    LearningCurve,
    Measurement,
    NotApplicable,
    Picture,
    Release,
)
from bench.workbench.other_people import OwnRows, first_rows, other_people, released, whole_release
from bench.workbench.workbench import Workbench

OWN_KEYS = 4
CHOOSING = 0.25
MOST_PEOPLE, MOST_ROWS = 2048, 1024
"""Rows of Eve's people, and private rows that are rebuilt, drawn at random if there are more."""
RIDGES = (1e-3, 1e-1, 10.0)
"""Of the mean square of a centred row."""
MIXTURE_RIDGES = (1e-2, 0.3)
MEAN = "mean image"
SETS, ALIKE_SETS = 4999, 99

Rebuild: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


@dataclass(frozen=True)
class Reconstruction(Evaluator[Workbench]):
    """Raw images rebuilt by a model of Eve's own releases."""

    name: ClassVar[str] = "reconstruction"
    source: ClassVar[str] = (
        "Fredrikson et al. 2015; Balle et al. 2022, section 4; Wang et al. 2003 and 2004 for likeness"
    )
    evidence: ClassVar[type] = ReconstructionEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Learn to rebuild other people's images; rebuild the owner's rows."""
        scheme, start = bench.scheme(), time.perf_counter()
        if bench.private.samples.ndim != 4:
            raise NotApplicable("reconstructions are images, and these rows are a table's")
        if bench.sealed(scheme, 0).links is None:
            raise NotApplicable(
                f"{bench.method.name} releases rows without a raw original: there is no image to rebuild"
            )
        people, _ = other_people(bench, "reconstruction", most=MOST_PEOPLE)
        learning, choosing = (people.take(rows) for rows in hold_out(people, CHOOSING, bench.seed("reconstruction")))
        eve = bench.for_eve(scheme)
        stage("release to rebuild")
        keys = [eve.sample_key(Secret.of_seed(bench.seed("own key", number))) for number in range(OWN_KEYS + 1)]
        first = whole_release(bench, keys[0], learning)
        mixtures = demixing.learn(learning.samples, first)
        own = [first_rows(first, len(learning)), *(released(bench, key, learning) for key in keys[1:-1])]
        judge = whole_release(bench, keys[-1], choosing)
        judged = first_rows(judge, len(choosing))
        stage("learn to rebuild")
        raw = torch.cat([learning.samples[each.rows] for each in own])
        errors, rebuild, curve = _learned(bench, own, raw, judged, choosing.samples[judged.rows])
        undone = _Undone.of(bench, mixtures, judge, choosing, len(bench.sealed(scheme, 0).release))
        errors |= undone.errors
        chosen = min(errors, key=errors.__getitem__)
        stage("rebuild")
        n = len(bench.private)
        order = torch.randperm(n, generator=generator(bench.seed("rows to rebuild")))[:MOST_ROWS].sort().values
        truth = bench.private.samples[order.to(bench.device)].cpu()
        rebuilt, shown = [], []
        for number in range(bench.preset.keys):
            sealed = bench.sealed(scheme, number)
            assert sealed.links is not None
            rows = sealed.release.samples
            place = stands(sealed.links, sealed.primary, n=n, m=len(rows))[order.to(bench.device)]
            if chosen in undone.errors:
                images, at = undone.images(chosen, "the owner's", rows, sealed.links, n)
                at = at[order]
            else:
                images, at = _rebuilt(rebuild[chosen], rows), place
            images = torch.cat((images.cpu(), raw.mean(dim=0, keepdim=True).cpu()))[at.cpu()]  # not there: the mean
            rebuilt.append(images)
            if not number and rows.ndim == 4 and bool((place[:SHOWN] < len(rows)).all()):
                shown.append(rows[place[:SHOWN]].cpu())
        stage("compare")
        nearest = pair_distances(truth.flatten(1), people.samples.cpu().flatten(1), 2).argmin(dim=1)
        closest = people.samples.cpu()[nearest]
        subjects = None if bench.private.subjects is None else bench.private.subjects.cpu()[order]
        evidence = _evidence(truth, rebuilt, raw.mean(dim=0).cpu(), closest, subjects, bench.seed("reconstruction"))
        details: dict[str, JsonValue] = {
            "chosen": chosen,
            "mean squared error on held-out people of Eve's": cast(JsonValue, errors),
            **undone.notes,
            "scales of MS-SSIM": evidence.scales,
            LEARNING: [] if curve is None else [curve.content()],
        }
        strips = [truth[:SHOWN], *shown, rebuilt[0][:SHOWN], closest[:SHOWN]]
        seconds = {"reconstruction": time.perf_counter() - start}
        who = "control and test" if bench.outside else "public and control"
        knowledge = {
            "eve": f"the scheme and {who} images, which she releases herself; no candidate, no known pair",
            "scheme": f"known; she trains on {OWN_KEYS} keys of her own and chooses by one more",
            "key": f"unknown: {bench.preset.keys} keys that she never saw",
        }
        return Measurement({"": evidence}, details, seconds, knowledge, strips)

    def pictures(self, bench: Workbench, found: Measurement) -> Mapping[str, Picture]:
        """Raw, released if an image, rebuilt, and nearest public images."""
        strips = cast("list[torch.Tensor]", found.shown)
        middle = "released, " if len(strips) == 4 else ""
        caption = f"From above: raw images, {middle}rebuilt by Eve, and the nearest public images"
        return {"rebuilt": Picture(caption, draw(strips))}

    @classmethod
    def samples(cls) -> Iterator[ReconstructionEvidence]:
        """Random images, some of them half rebuilt."""
        random = generator(0)
        raw, other = (torch.rand(36, 1, 16, 16, generator=random) for _ in range(2))
        yield _evidence(raw, [(raw + other) / 2] * 2, raw.mean(dim=0), other, torch.arange(36) // 3, 1)
        yield _evidence(raw, [raw], raw.mean(dim=0), other, None, 1)


def _learned(
    bench: Workbench, own: Sequence[OwnRows], raw: torch.Tensor, judged: OwnRows, truth: torch.Tensor
) -> tuple[dict[str, float], dict[str, Rebuild], LearningCurve | None]:
    """Held-out errors and rebuilders by name, and the decoder's curve."""
    seen = torch.cat([each.samples for each in own])
    mean = raw.mean(dim=0, keepdim=True)
    rebuild: dict[str, Rebuild] = {MEAN: lambda rows: mean.expand(len(rows), *mean.shape[1:])}
    c, h, w = raw.shape[1:]
    patch = fitting_patch(raw.shape[2], raw.shape[3])
    for ridge, whole in zip(RIDGES, _Linear.of(seen.flatten(1)[:, None], raw.flatten(1)[:, None], RIDGES), strict=True):
        rebuild[f"ridge {ridge:g}, whole rows"] = (
            lambda rows, whole=whole: (  # type: ignore[misc]
                whole(rows.flatten(1)[:, None])[:, 0].reshape(len(rows), *raw.shape[1:])
            )
        )
    if patch is not None and seen.shape[1:] == raw.shape[1:]:
        for ridge, parts in zip(RIDGES, _Linear.of(cut(seen, patch), cut(raw, patch), RIDGES), strict=True):
            rebuild[f"ridge {ridge:g}, patches of {patch}"] = lambda rows, parts=parts, side=patch: fold(  # type: ignore[misc]
                parts(cut(rows, side)), (c, h, w), side
            )
    if seen.shape[1:] == raw.shape[1:]:
        rebuild["the released row itself"] = lambda rows: rows
    errors = {name: _error(each, judged.samples, truth) for name, each in rebuild.items()}
    if seen.ndim != 4:
        return errors, rebuild, None
    points = [(0, errors[MEAN])]
    for steps in sorted({max(1, bench.preset.decoder_steps // part) for part in (4, 2, 1)}):
        name = f"decoder, {steps} steps"
        rebuild[name] = decoder.train_decoder(seen, raw, steps=steps, seed=bench.seed("rebuild"))
        errors[name] = _error(rebuild[name], judged.samples, truth)
        points.append((steps, errors[name]))
    level = points[-1][1] >= 0.99 * min(error for _, error in points[:-1])
    reason = (
        "plateau: twice the steps lower the error by less than 1 %" if level
        else f"the budget of {points[-1][0]} steps ended first"
    )  # fmt: skip
    curve = LearningCurve("mean squared error on held-out people of Eve's", tuple(points), level, reason, "decoder")
    return errors, rebuild, curve


@dataclass(frozen=True, eq=False)
class _Undone:
    """Mixtures undone: errors on Eve's own people by name, ridges, and notes."""

    mixtures: demixing.Mixtures | None
    seed: int
    errors: dict[str, float]
    ridges: dict[str, float]
    notes: dict[str, JsonValue]

    @classmethod
    def of(
        cls, bench: Workbench, mixtures: demixing.Mixtures | None, judge: Release, people: Dataset, rows: int
    ) -> _Undone:
        """`judge` is a release of `people`; the owner's has `rows` rows."""
        found = cls(mixtures, bench.seed("mixtures"), {}, {}, {})
        if mixtures is None:
            return found
        found.notes["mixtures"] = f"{mixtures.mixed} images in a released row, {mixtures.rows_each} rows of each"
        if mixtures.too_many(max(rows, len(judge))):
            found.notes["mixtures undone"] = f"not tried: {max(rows, len(judge))} released rows are too many"
            return found
        assert judge.links is not None
        stage("undo mixtures")
        for ridge in MIXTURE_RIDGES:
            name = f"mixtures undone, ridge {ridge:g}"
            found.ridges[name] = ridge
            images, at = found.images(name, "Eve's own", judge.samples, judge.links, len(people))
            found.errors[name] = float((images[at] - people.samples.cpu()).double().square().mean())
        return found

    def images(
        self, name: str, whose: str, rows: torch.Tensor, links: torch.Tensor, n: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Recovered images, the mean image last, and each raw row's (n,)."""
        assert self.mixtures is not None
        whole = self.mixtures.undone(rows.cpu(), self.ridges[name], self.seed)
        self.notes.setdefault(f"constituents found in {whose} release, {name}", whole.share_found(links.cpu(), n))
        at = whole.named(links.cpu(), n)
        every = torch.cat((whole.images, self.mixtures.people.mean(dim=0, keepdim=True)))
        images = (every + self.mixtures.centre).clamp(0, 1).float().reshape(-1, *rows.shape[1:])
        return images, torch.where(at < 0, len(images) - 1, at)


@dataclass(frozen=True, eq=False)
class _Linear:
    """Ridges by location, of means (1, t, d) and (1, t, q).

    With fewer rows m than columns d, weights (t, m, q) are of the rows `basis` (t, m, d); else they are (t, d, q).
    """

    inputs: torch.Tensor
    outputs: torch.Tensor
    basis: torch.Tensor | None
    weights: torch.Tensor

    @classmethod
    def of(cls, seen: torch.Tensor, raw: torch.Tensor, ridges: Sequence[float]) -> list[_Linear]:
        """From rows (m, t, d) to rows (m, t, q), by ridge."""
        means = seen.double().mean(dim=0, keepdim=True), raw.double().mean(dim=0, keepdim=True)
        x, y = ((each.double() - mean).transpose(0, 1) for each, mean in zip((seen, raw), means, strict=True))
        m, d = x.shape[1:]
        wide = m <= d  # a matrix (d, q) of images of 224 pixels a side takes 20 GB
        gram, target = (x @ x.mT, y) if wide else (x.mT @ x, x.mT @ y)
        size = x.square().sum(dim=(1, 2)).clamp_min(1e-30) / m
        found = []
        for ridge in ridges:
            held = gram.clone()
            held.diagonal(dim1=1, dim2=2).add_((ridge * size)[:, None])
            found.append(cls(*means, x if wide else None, torch.linalg.solve(held, target)))
        return found

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (n, t, q) float32 of rows (n, t, d)."""
        centred = (rows.double() - self.inputs).transpose(0, 1)
        known = centred if self.basis is None else centred @ self.basis.mT
        return ((known @ self.weights).transpose(0, 1) + self.outputs).float()


def _rebuilt(rebuild: Rebuild, rows: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return torch.cat([rebuild(part) for part in torch.split(rows, 256)]).clamp(0, 1)


def _error(rebuild: Rebuild, rows: torch.Tensor, truth: torch.Tensor) -> float:
    return float((_rebuilt(rebuild, rows) - truth).double().square().mean())


def _evidence(
    raw: torch.Tensor, rebuilt: Sequence[torch.Tensor], mean: torch.Tensor, nearest: torch.Tensor,
    subjects: torch.Tensor | None, seed: int,
) -> ReconstructionEvidence:  # fmt: skip
    n = len(raw)
    renamed = exchanged_people(subjects, n, sets=SETS, seed=seed).long()
    counted = exchangeable(subjects, n).nonzero()[:, 0]
    likeness = {}
    for name, figure in {"SSIM": ssim, "MS-SSIM": ms_ssim, "PSNR": psnr}.items():
        # Of one key alone: unrelated rebuilt images of two keys need not be equally like raw ones.
        sets = renamed[: 1 + ALIKE_SETS if name == "SSIM" and len(counted) else 0, counted]
        others = mean_ssims(rebuilt[0][counted], raw, sets)
        likeness[name] = Likeness(
            torch.stack([figure(each, raw) for each in rebuilt]), figure(mean.expand_as(raw), raw),
            figure(nearest, raw), others,
        )  # fmt: skip
    places, first, means = [], [], torch.zeros(1 + SETS, dtype=torch.float64)
    for each in rebuilt:
        distances = pair_distances(raw.flatten(1), each.flatten(1), 2)
        shares = torch.empty(n, n, dtype=torch.float64)
        for column in range(n):
            _, number, counts = torch.unique(distances[:, column], return_inverse=True, return_counts=True)
            above = n - counts.cumsum(0) + (counts - 1) / 2
            shares[:, column] = above[number] / max(1, n - 1)
        places.append(shares.diagonal().clone())
        least = distances == distances.amin(dim=0)
        first.append(least.diagonal().double() / least.sum(dim=0))
        for start in range(0, 1 + SETS, 500):
            means[start : start + 500] += shares[renamed[start : start + 500, counted], counted].mean(dim=1) / len(
                rebuilt
            )
    return ReconstructionEvidence(
        likeness,
        scales(raw.shape[2], raw.shape[3]),
        torch.stack(places),
        torch.stack(first),
        means if len(counted) else means[:0],
        subjects,
        seed,
    )
