"""The decoding evaluator: test images decoded with knowledge of the key.

Source: Yala et al., Syfer (2022), section 4.2 and appendix E. Only the data owner has pairs of raw and released images.
A decoder that works shows that the encoding keeps the image; Eve has no such decoder.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch

from bench.evaluators.predictions import queried
from bench.evidence import DecodingEvidence
from bench.nets import decoder
from bench.pictures.strips import SHOWN, draw
from bench.progress import stage
from bench.rows.row_sets import originals
from bench.seeds import generator
from bench.types import Evaluator, Measurement, NotApplicable, Picture
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Decoding(Evaluator[Workbench]):
    """Reconstruction of released test images by a key holder's decoder."""

    name: ClassVar[str] = "decoding"
    source: ClassVar[str] = "Syfer, section 4.2 and appendix E"
    evidence: ClassVar[type] = DecodingEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Train a decoder on private rows under the first key; decode queries."""
        scheme = bench.scheme()
        sealed, key = bench.sealed(scheme, 0), bench.key(scheme, 0)
        rows, order = originals(sealed.links, len(sealed.release), bench.method.name).sort()
        if bench.private.samples.ndim != 4 or sealed.release.samples.ndim != 4:
            raise NotApplicable("decoding is shown for images that are released as images")
        start = time.perf_counter()
        stage("train decoder")
        raw, released = bench.private.samples[rows], sealed.release.samples[order]
        network = decoder.train_decoder(released, raw, steps=bench.preset.decoder_steps, seed=bench.seed("decoder"))
        stage("decode")
        query = queried(bench, key, bench.test)
        with torch.no_grad():
            decoded = torch.cat([network(part) for part in torch.split(query, 256)]).clamp(0, 1)
        subjects = None if bench.test.subjects is None else bench.test.subjects.cpu()
        evidence = DecodingEvidence(
            bench.test.samples.cpu(), decoded.cpu(), raw.mean(dim=0).cpu(), subjects, bench.seed("decoding")
        )
        strips = [part[:SHOWN] for part in (bench.test.samples, query, decoded)]
        return Measurement({"": evidence}, {}, {"decoding": time.perf_counter() - start}, {}, strips)

    def pictures(self, bench: Workbench, found: Measurement) -> Mapping[str, Picture]:
        """Test images: raw, released, decoded."""
        caption = (
            "Test images: raw, as the key encodes them, and as a decoder gives them back that somebody with the key "
            "has trained. Eve has no such pairs"
        )
        return {"decoded": Picture(caption, draw(cast("list[torch.Tensor]", found.shown)))}

    @classmethod
    def samples(cls) -> Iterator[DecodingEvidence]:
        """Random images, a little brighter after decoding."""
        raw = torch.rand(48, 1, 8, 8, generator=generator(0))
        yield DecodingEvidence(raw, (raw + 0.1).clamp(0, 1), raw.mean(dim=0), torch.arange(48) // 3, 1)
