"""An example of a folder that `imported` reads: noisy digits."""

from __future__ import annotations

import io
import json

import numpy as np
from PIL import Image

from bench.data.sets.sklearn_sets import Digits

ROWS = 240
NOISE = 60  # standard deviation, of 255 grey values
TOLD = {
    "maker": "example",
    "claim": {
        "unit": "image",
        "epsilon": 1000.0,
        "delta": 0.0,
        "assumptions": "An example: no proof stands behind it.",
    },
}


def files() -> dict[str, bytes]:
    """The files by name: images, labels.csv, links.csv, release.json.

    The raw rows are every seventh of the data set `digits`.
    """
    scan = Digits().scan((), None)
    assert scan.samples is not None
    random = np.random.default_rng(0)
    raw = np.arange(0, 7 * ROWS, 7)
    order = random.permutation(ROWS)
    found: dict[str, bytes] = {}
    links, labels = ["released,row"], ["released,class"]
    for released, row in enumerate(raw[order]):
        noisy = scan.samples[row, 0] + random.normal(0, NOISE, scan.samples.shape[2:])
        name = f"images/{released:03}.png"
        file = io.BytesIO()
        Image.fromarray(np.clip(noisy, 0, 255).round().astype(np.uint8)).save(file, format="PNG")
        found[name] = file.getvalue()
        links.append(f"{name},{row}")
        labels.append(f"{name},{scan.findings[int(scan.labels[row].argmax())]}")
    texts = {"links.csv": links, "labels.csv": labels}
    found |= {name: ("\n".join(lines) + "\n").encode() for name, lines in texts.items()}
    return {**found, "release.json": (json.dumps(TOLD, indent=1) + "\n").encode()}
