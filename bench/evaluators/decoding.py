"""The decoding evaluator: what somebody who holds the key can make of the release, as a figure and as a picture.

Source: Yala et al., Syfer (2022), section 4.2 and appendix E. Only the data owner has pairs of raw and released images;
a decoder that works shows that the encoding keeps the image, and a picture that shows it hides it is not what Eve sees.
"""

from __future__ import annotations

import time

import torch

from bench.evidence import DecodingEvidence
from bench.nets.decoder import train_decoder
from bench.pictures.strips import SHOWN, draw
from bench.progress import stage
from bench.rows.originals import originals
from bench.types import Attack, NotApplicable
from bench.workbench.measurement import Measurement
from bench.workbench.workbench import Workbench


def run_decoding(bench: Workbench, attack: Attack | None) -> Measurement:
    """Train a decoder on the private rows under the first key, and decode test rows as that key queries them."""
    scheme = bench.scheme()
    sealed, key = bench.sealed(scheme, 0), bench.key(scheme, 0)
    rows, order = originals(sealed.links, len(sealed.release), bench.method.name).sort()
    if bench.private.samples.ndim != 4 or sealed.release.samples.ndim != 4:
        raise NotApplicable("decoding is shown for images that are released as images")
    start = time.perf_counter()
    stage("train decoder")
    raw, released = bench.private.samples[rows], sealed.release.samples[order]
    network = train_decoder(released, raw, steps=bench.preset.decoder_steps, seed=bench.seed("decoder"))
    stage("decode")
    labels = bench.test.labels if bench.method.uses_labels else None
    query = bench.untouched(bench.method.name, lambda: key.query(bench.test.samples, labels))
    with torch.no_grad():
        decoded = torch.cat([network(part) for part in torch.split(query, 256)]).clamp(0, 1)
    subjects = None if bench.test.subjects is None else bench.test.subjects.cpu()
    evidence = DecodingEvidence(
        bench.test.samples.cpu(), decoded.cpu(), raw.mean(dim=0).cpu(), subjects, bench.seed("decoding")
    )
    picture = draw([bench.test.samples[:SHOWN], query[:SHOWN], decoded[:SHOWN]]) if bench.record.shareable else None
    return Measurement({"": evidence}, {}, {"decoding": time.perf_counter() - start}, {}, picture)
