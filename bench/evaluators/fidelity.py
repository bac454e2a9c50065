"""The fidelity evaluator: released images beside raw images of other people.

Sources: Binkowski et al. 2018, "Demystifying MMD GANs"; Heusel et al. 2017; Kynkäänniemi et al. 2019; Naeem et al.
2020. Their network is Inception; weights of one come with no package, so that figures here are read from the first
network of `bench.backbones.packages` that is installed, and compare with each other alone.

Held-out people (control and test rows) are the reference, not the private images: a blurred image is close to its own
raw one, which would count as fidelity. The private images beside the same reference show what raw images themselves
get. Images are clipped to [0, 1], as an image file would hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import torch
from pydantic import JsonValue

from bench.contract.source import DataError
from bench.evidence import FidelityEvidence, ImageSet
from bench.progress import stage
from bench.rows.row_sets import joined, originals
from bench.seeds import derive, generator
from bench.statistics.structural_similarity import ms_ssim
from bench.types import Dataset, Evaluator, Measurement, NotApplicable
from bench.workbench.workbench import Workbench

MOST_ROWS, MOST_PAIRS = 2048, 500
"""Images read of each set, and pairs compared in it and by finding, drawn at random if there are more."""
FEWEST = 20
BATCH = 32
CHANNELS = (1, 3)

Read: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


@dataclass(frozen=True)
class Fidelity(Evaluator[Workbench]):
    """Likeness of released images to raw images of other people."""

    name: ClassVar[str] = "fidelity"
    source: ClassVar[str] = "Binkowski et al. 2018; Heusel et al. 2017; Kynkäänniemi et al. 2019; Naeem et al. 2020"
    requires: ClassVar[str] = "for all but MS-SSIM, the weights of a network, as the extractor package"
    evidence: ClassVar[type] = FidelityEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Features and pairs of the first release, the private and held-out rows."""
        reference = joined(bench.control, bench.test)
        if bench.private.samples.ndim != 4:
            raise NotApplicable("fidelity is measured of images, and these rows are a table's or an extractor's")
        scheme = bench.scheme()
        sealed = bench.sealed(scheme, 0)
        samples, labels = sealed.release.samples, sealed.release.labels
        if samples.ndim != 4 or samples.shape[1] not in CHANNELS:
            raise NotApplicable(
                f"fidelity is measured of images of 1 or 3 channels, and {bench.method.name} releases rows of shape "
                f"{tuple(samples.shape[1:])}"
            )
        people = None
        if sealed.links is not None and bench.private.subjects is not None:
            try:
                people = bench.private.subjects[originals(sealed.links, len(samples), bench.method.name)]
            except NotApplicable:  # several raw rows in a released one: it shows no single person
                people = None
        labels = None if labels is None else bench.key(scheme, 0).decode(labels)
        sets = {
            "reference": reference,
            "original": bench.private,
            "released": replace(bench.private, samples=samples, labels=labels, subjects=people),
        }
        for name, each in sets.items():
            if len(each) < FEWEST:
                raise NotApplicable(f"fidelity needs {FEWEST} images of each kind, and {name} are {len(each)}")
        stage("read features")
        network, weights, read = _network(bench.private.samples)
        found = {name: _image_set(each, read, bench.seed("fidelity", name)) for name, each in sets.items()}
        outside = float(((samples < 0) | (samples > 1)).to(torch.float64).mean())
        details: dict[str, JsonValue] = {
            "network": network,
            "SHA-256 of its weights": weights,
            "share of released values clipped to [0, 1]": outside,
            **{f"{name} images read": min(MOST_ROWS, len(each)) for name, each in sets.items()},
        }
        evidence = FidelityEvidence(
            **found, network=network, findings=bench.private.findings, seed=bench.seed("fidelity")
        )
        return Measurement({"": evidence}, details, {}, {})

    @classmethod
    def samples(cls) -> Iterator[FidelityEvidence]:
        """Random features released as they are and shifted, with and without labels."""
        random, number = generator(0), torch.arange(60)
        labels = torch.stack((number % 2, 1 - number % 2), dim=1).float()
        rows = [torch.rand(60, 6, generator=random) for _ in range(2)]
        alike = {name: torch.rand(25, generator=random, dtype=torch.float64) for name in ("", "first", "second")}
        first, second = (ImageSet(each, number // 2, labels, alike) for each in rows)
        names, note = ("first", "second"), "random features"
        yield FidelityEvidence(first, second, second, note, names, 1)
        yield FidelityEvidence(first, second, ImageSet(rows[1] + 1, None, None, {"": alike[""]}), note, names, 1)


def _network(samples: torch.Tensor) -> tuple[str, str, Read | None]:
    """Its name and weights' hash, with its reading; else the reason."""
    # Here alone: its networks execute torch, which listing and planning do without.
    from bench.backbones.packages import PACKAGES, network_side

    side, missing = network_side(samples), ""
    for name, package in PACKAGES.items():
        try:
            network = package.network(side=side, batch=BATCH)
        except DataError as error:
            missing = missing or str(error)
            continue
        return f"{name} at {side} pixels", package.sha256, network.read
    return f"features need a network with weights: {missing}, then run again with --overwrite always", "none", None


def _image_set(data: Dataset, read: Read | None, seed: int) -> ImageSet:
    """At most `MOST_ROWS` of the images."""
    rows = torch.randperm(len(data), generator=generator(derive(seed, "rows")))[:MOST_ROWS].sort().values
    part = data.take(rows.to(data.samples.device))
    images = part.samples.float().clamp(0, 1)
    labels, people = (None if each is None else each.cpu() for each in (part.labels, part.subjects))
    features = None if read is None else read(images).float().cpu()
    wanted = {"": torch.ones(len(images), dtype=torch.bool)}
    wanted |= {} if labels is None else {name: labels[:, k] == 1 for k, name in enumerate(data.findings)}
    alike = {}
    for name, chosen in wanted.items():
        pairs = disjoint_pairs(chosen.nonzero().flatten(), people, derive(seed, "pairs", name))[:MOST_PAIRS]
        first, second = (images[pairs[:, side].to(images.device)].cpu() for side in (0, 1))
        if len(pairs):
            alike[name] = ms_ssim(first, second)
    return ImageSet(features, people, labels, alike)


def disjoint_pairs(rows: torch.Tensor, people: torch.Tensor | None, seed: int) -> torch.Tensor:
    """Random pairs (p, 2) of rows of different people, sharing no row.

    Args:
        rows: (n,) int64.
        people: The person of each row, by its number; None counts each row as a person.
        seed: Of the draw.

    >>> pairs = disjoint_pairs(torch.arange(6), torch.tensor([0, 0, 1, 1, 2, 2]), 0)
    >>> len(pairs.unique()) == pairs.numel(), bool((pairs[:, 0] // 2 == pairs[:, 1] // 2).any())
    (True, False)
    """
    order = rows[torch.randperm(len(rows), generator=generator(seed))]
    half = len(order) // 2
    pairs = torch.stack((order[:half], order[half : 2 * half]), dim=1)
    return pairs if people is None else pairs[people[pairs[:, 0]] != people[pairs[:, 1]]]
