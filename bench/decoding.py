"""The decoding evaluator: what somebody who holds the key can make of the release, as a figure and as a picture.

Source: Yala et al., Syfer (2022), section 4.2 and appendix E. Only the data owner has pairs of raw and released images;
a decoder that works shows that the encoding keeps the image, and a picture that shows it hides it is not what Eve sees.
"""

from __future__ import annotations

import io
import time

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate, pad

from bench.evidence import DecodingEvidence
from bench.measurement import Measurement
from bench.nets.decoder import train_decoder
from bench.progress import stage
from bench.types import Attack, NotApplicable
from bench.workbench import Workbench

SHOWN = 8


def run_decoding(bench: Workbench, attack: Attack | None) -> Measurement:
    """Train a decoder on the private rows under the first key, and decode test rows as that key queries them."""
    scheme = bench.scheme()
    sealed, key = bench.sealed(scheme, 0), bench.key(scheme, 0)
    links = sealed.links
    if links is None or len(links) != len(sealed.release) or len(torch.unique(links[:, 1])) != len(links):
        raise NotApplicable(f"{bench.method.name} does not release one row a raw row, so nothing is there to decode")
    if bench.private.samples.ndim != 4 or sealed.release.samples.ndim != 4:
        raise NotApplicable("decoding is shown for images that are released as images")
    start = time.perf_counter()
    stage("train decoder")
    raw, released = bench.private.samples[links[:, 0]], sealed.release.samples[links[:, 1]]
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


def draw(strips: list[Tensor]) -> bytes:
    """A PNG with one strip of images below the other, as large as the first strip's.

    A strip outside [0, 1] is stretched over its 1-99 % range.

    Args:
        strips: (b, c, h, w) each, b the same in all; of three channels or more the first three are shown.
    """
    sized = [interpolate(_visible(strip), size=strips[0].shape[2:], mode="nearest") for strip in strips]
    framed = [pad(strip, (1, 1, 1, 1), value=1.0) for strip in sized]
    rows = [torch.cat(list(strip if strip.shape[1] == 3 else strip.expand(-1, 3, -1, -1)), dim=2) for strip in framed]
    sheet = torch.cat(rows, dim=1)
    stream = io.BytesIO()
    Image.fromarray((sheet.permute(1, 2, 0) * 255).round().byte().cpu().numpy()).save(stream, format="PNG")
    return stream.getvalue()


def _visible(strip: Tensor) -> Tensor:
    strip = strip[:, :3] if strip.shape[1] >= 3 else strip[:, :1]
    if strip.amin() >= 0 and strip.amax() <= 1:
        return strip
    low, high = torch.quantile(strip.flatten(), torch.tensor((0.01, 0.99), device=strip.device))
    stretched: Tensor = ((strip - low) / (high - low).clamp_min(1e-12)).clamp(0, 1)
    return stretched
