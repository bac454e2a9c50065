"""The detection evaluator: abnormal or normal, by density ratios of public images.

Source: the DP-GLOW paper, sections 5 and 7.3, equation 25, after Shibata et al.: log p(normal | x) = log p(x | normal)
- log p(x) + a constant, with a Glow trained on normal images (M0) and a Glow trained on normal and abnormal images
(M1). A row is abnormal if any finding is present, and normal if none is, as far as its labels are known (balancing
withholds labels, nearly all "no" if findings are rare; a withheld "yes" of a common finding may count as normal). Of
exclusive classes one must be called normal.

Differences: the flows are smaller, and M1 is trained for this alone (theirs also carries the noise). The mixture of M1
is that of the public rows. Passes over the images are limited: M0 has fewer images, and a memorised image says nothing
about normality. Scored images are rounded to 8 bits, as images are stored, and get the uniform noise of training.

Released pixels may be in other units than raw ones. A reader of the release knows the scheme: he releases the public
rows under a key of his own, maps the mean and standard deviation of their released pixels (by channel) to those of the
raw ones, and clips to [0, 1]. A release that looks like its raw images, as with `identity`, is unchanged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, cast

import torch
from pydantic import JsonValue

from bench.contract.seal import check
from bench.data.scorable import MINIMUM_CASES
from bench.evaluators.predictions import sample_predictions, true_label_note
from bench.evidence import DetectionEvidence, UtilityEvidence
from bench.nets import glow, normalising_flow
from bench.nets.training import seeded
from bench.plugins.code_digest import code_digest
from bench.progress import stage
from bench.randomness import Secret
from bench.results.store import Artefact
from bench.rows.grouping import hold_out
from bench.rows.row_sets import in_order
from bench.seeds import derive, generator
from bench.types import Dataset, Evaluator, Measurement, NotApplicable, Scheme, State
from bench.workbench.workbench import Workbench, detector


@dataclass(frozen=True)
class RatioPlan:
    """Most steps and passes of the two flows, and their sizes."""

    steps: int
    depth: int
    width: int
    passes: int = 100
    batch: int = 32
    learning_rate: float = 1e-3

    def course(self, images: int) -> normalising_flow.FlowCourse:
        """Training of a flow on that many images."""
        steps = min(self.steps, math.ceil(self.passes * images / self.batch))
        return normalising_flow.FlowCourse(steps=steps, batch=self.batch, learning_rate=self.learning_rate)


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Flows of normal images and of the mixture, in evaluation mode."""

    normal: normalising_flow.Flow
    mixture: normalising_flow.Flow

    def state(self) -> State:
        """Their weights; `load_ratio` gives an equal ratio."""
        flows = {"normal": self.normal, "mixture": self.mixture}
        return {f"{name}.{part}": value for name, flow in flows.items() for part, value in flow.state_dict().items()}

    def abnormality(self, samples: torch.Tensor, seed: int) -> torch.Tensor:
        """log p(x) - log p(x | normal), higher is likelier abnormal.

        Raises NotApplicable for images so far from the public ones that a density is not finite.
        """
        noise = torch.rand(samples.shape, generator=generator(seed, samples.device), device=samples.device)
        dequantised = ((samples * 255).round() + noise - 0.5) / 255
        ratio = (
            normalising_flow.log_densities(self.mixture, dequantised).double()
            - normalising_flow.log_densities(self.normal, dequantised).double()
        )
        if not bool(ratio.isfinite().all()):
            raise NotApplicable("some images lie so far from the public ones that their density is not finite")
        return ratio


def train_ratio(
    samples: torch.Tensor, normal: torch.Tensor, held_out: torch.Tensor, plan: RatioPlan, seed: int
) -> tuple[LikelihoodRatio, Mapping[str, normalising_flow.FlowFit]]:
    """The ratio learned from public images, and each flow's fit.

    There must be `normal` images on both sides of `held_out`. Same seed, same ratio on a CPU. Raises FlowDiverged,
    or NotApplicable for sides that cannot be halved.
    """
    flows, fits = {}, {}
    for name, rows in (("normal", normal), ("mixture", torch.ones_like(normal))):
        with seeded(derive(seed, name), samples.device):
            flows[name] = _flow(samples, plan)
        training, judging = samples[rows & ~held_out], samples[rows & held_out]
        fits[name] = normalising_flow.train_flow(
            flows[name],
            training,
            None,
            plan.course(len(training)),
            held_out=(judging, None),
            seed=derive(seed, name, "train"),
        )
    return LikelihoodRatio(**flows), fits


def load_ratio(state: State, like: torch.Tensor, plan: RatioPlan) -> LikelihoodRatio:
    """The ratio with that `LikelihoodRatio.state`, for images of the shape of `like`."""
    flows = {}
    for name in ("normal", "mixture"):
        flows[name] = _flow(like, plan).eval()
        own = {part.removeprefix(f"{name}."): value for part, value in state.items() if part.startswith(f"{name}.")}
        flows[name].load_state_dict(own)
    return LikelihoodRatio(**flows)


def _flow(images: torch.Tensor, plan: RatioPlan) -> glow.Glow:
    c, h, w = images.shape[1:]
    if h % 2 or w % 2:
        raise NotApplicable(f"a Glow halves both sides: images are {h}x{w}; prepare them at an even size")
    flow = glow.Glow((c, h, w), levels=glow.usual_levels(h, w), depth=plan.depth, width=plan.width)
    return flow.to(images.device)


HELD_OUT = 0.1  # share of the public rows
SIZES = {"smoke": (1, 8), "first-look": (4, 32), "quick": (4, 32), "standard": (8, 64), "paper": (32, 512)}
"""Depth and width of the flows by preset; twice of both memorised the normal images at first-look."""
NORMAL = ("normal", "no finding")


@dataclass(frozen=True)
class Detection(Evaluator[Workbench]):
    """Abnormal or normal by densities of raw public images, without classifier."""

    name: ClassVar[str] = "detection"
    source: ClassVar[str] = "Shibata et al. 2022 (DP-GLOW), sections 5 and 7.3"
    evidence: ClassVar[type] = DetectionEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Score raw and released private rows by two densities of public rows."""
        if bench.private.samples.ndim != 4:
            raise NotApplicable("detection reads images, and these rows are a table's")
        bench.require_public("detection learns densities of public images")
        truth = abnormal(bench.private)
        scheme = bench.scheme()
        sealed = bench.sealed(scheme, 0)
        raw, shape = bench.private.samples, sealed.release.samples.shape
        if shape[1:] != raw.shape[1:]:
            raise NotApplicable(
                f"densities of raw images read nothing else: raw rows are {tuple(raw.shape[1:])}, "
                f"released ones {tuple(shape[1:])}"
            )
        released, rows = in_order(sealed.release, sealed.links, bench.private, bench.method.name)
        ratio, details = _ratio(bench)
        start = time.perf_counter()
        stage("detect")
        # Another author's method knows the public rows.
        own = bench.private if bench.outside else bench.public
        rescaled = _in_units(released.samples, _own_release(bench, scheme, own), own.samples)
        all_rows = torch.arange(len(raw), device=raw.device)
        evidence = DetectionEvidence(
            _evidence(bench, ratio, rescaled, truth, rows), _evidence(bench, ratio, raw, truth, all_rows)
        )
        return Measurement(
            {"": evidence}, details | true_label_note(bench), {"detection": time.perf_counter() - start}, {}
        )

    @classmethod
    def samples(cls) -> Iterator[DetectionEvidence]:
        """Random scores against a label."""
        single = sample_predictions().single
        yield DetectionEvidence(single, single)


def abnormal(data: Dataset) -> torch.Tensor:
    """(n,) float32: 1 abnormal, 0 normal, NaN unknown; or NotApplicable."""
    labels = data.labels
    if labels is None or not data.findings:
        raise NotApplicable(f"detection needs findings: {data.name} has none")
    if data.exclusive:
        normal = [k for k, name in enumerate(data.findings) if name.lower() in NORMAL]
        if not normal:
            raise NotApplicable(
                f"detection tells abnormal from normal: no class of {data.name} is called {' or '.join(NORMAL)}"
            )
        truth = 1 - labels[:, normal[0]]
    else:
        truth = (labels == 1).any(dim=1).float().masked_fill(labels.isnan().all(dim=1), torch.nan)
    least = min(int((truth == kind).sum()) for kind in (0, 1))
    if least < MINIMUM_CASES:
        raise NotApplicable(
            f"detection needs {MINIMUM_CASES} normal and {MINIMUM_CASES} abnormal rows: {data.name} has {least} of one"
        )
    return truth


def _ratio(bench: Workbench) -> tuple[LikelihoodRatio, dict[str, JsonValue]]:
    """The two densities, stored or fresh, and their fits."""
    public = bench.public
    normal = abnormal(public) == 0
    depth, width = SIZES[bench.cell.choice.preset]
    plan, seed = RatioPlan(steps=bench.preset.flow_steps, depth=depth, width=width), bench.seed("detection")
    stage("train densities")

    def make() -> Artefact:
        start = time.perf_counter()
        held_out = torch.zeros_like(normal)
        held_out[hold_out(public, HELD_OUT, seed)[1]] = True
        if not bool((normal & held_out).any() and (normal & ~held_out).any()):
            raise NotApplicable(f"detection needs normal public rows to learn from and to judge by: {public.name}")
        ratio, fits = train_ratio(public.samples, normal, held_out, plan, seed)
        notes = {name: cast(JsonValue, asdict(fit)) for name, fit in fits.items()}
        return Artefact(ratio.state(), {**notes, "seconds": time.perf_counter() - start})

    code = code_digest(Detection)  # this file defines normal and held-out rows
    artefact = detector(bench, {"plan": cast(JsonValue, asdict(plan)), "code": code}, make)
    return load_ratio(artefact.tensors, public.samples, plan), {"densities": dict(artefact.notes)}


def _own_release(bench: Workbench, scheme: Scheme, rows: Dataset) -> torch.Tensor:
    """Rows released under a key of the reader's own."""
    key = bench.for_eve(scheme).sample_key(Secret.of_seed(bench.seed("detection key")))
    release = bench.untouched(bench.method.name, lambda: key.release(rows))
    check(release, rows)
    return release.samples


def _in_units(samples: torch.Tensor, released: torch.Tensor, raw: torch.Tensor) -> torch.Tensor:
    """Samples with mean and deviation of `released` mapped to `raw`'s."""
    (own_std, own_mean), (std, mean) = (
        torch.std_mean(part.double(), dim=(0, 2, 3), correction=0, keepdim=True) for part in (released, raw)
    )
    return ((samples - own_mean) * (std / own_std.clamp_min(1e-12)) + mean).clamp(0, 1).float()


def _evidence(
    bench: Workbench, ratio: LikelihoodRatio, samples: torch.Tensor, truth: torch.Tensor, rows: torch.Tensor
) -> UtilityEvidence:
    """Scores of samples (m, c, h, w) of private rows (m,)."""
    scores = ratio.abnormality(samples, bench.seed("dequantise"))[:, None].float().cpu()
    subjects = None if bench.private.subjects is None else bench.private.subjects[rows].cpu()
    return UtilityEvidence([scores], truth[rows, None].cpu(), subjects, ("abnormal",), bench.seed("detection"))
