"""Share of scrambled images that the jigsaw solver puts together, and a picture of it.

`python tests/campaigns/jigsaw_puzzles.py [--dataset synth-cxr] [--preset first-look] [--data-root DIR]
[--picture FILE.png]` encrypts the private images by `etc-blocks`, under one key for all images and under a key each,
and solves them with control images as knowledge of raw images in general. An image is whole if every block is where it
was, as it was. The picture shows, from above: raw images,
encrypted by one key, put together from borders alone, encrypted by a key each, and put together with the mean image.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from bench.api.running import open_place
from bench.eve.jigsaw_puzzle import Knowledge, solve
from bench.nets.patches import cut
from bench.pictures.strips import SHOWN, draw
from bench.randomness import Secret
from bench.statistics.confidence_intervals import clopper_pearson
from bench.workbench.choice import Choice
from bench.workbench.open_data import open_data
from methods.etc_blocks import EtCBlocks

BLOCK = 16
ALONE = 200
"""Images that are solved with a key each."""
WEIGHTS = (0.0, 0.3)


def main() -> None:
    """Print shares of images, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="synth-cxr")
    parser.add_argument("--preset", default="first-look")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--picture", type=Path, default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = open_place(Path(folder))
        place = replace(place, roots=place.roots if asked.data_root is None else (asked.data_root,))
        told = Choice.read({"dataset": asked.dataset, "preset": asked.preset})
        splits, _, _ = open_data(told, place, torch.device("cpu"))
    known = Knowledge.of(splits.control.samples, BLOCK)
    strips = [splits.private.samples[:SHOWN]]
    for method in (EtCBlocks(patch_size=BLOCK), EtCBlocks(patch_size=BLOCK, keys="per-image")):
        one = method.keys == "one"
        private = splits.private if one else splits.private.take(torch.arange(min(ALONE, len(splits.private))))
        hidden = method.fit(private, 0).sample_key(Secret.of_seed(3, "owner")).release(private).samples
        strips.append(hidden[:SHOWN])
        levels = (private.samples.clamp(0, 1) * 255).round() / 255
        for weight in WEIGHTS:
            put = solve(hidden, known, one=one, weight=weight)
            right = (cut(put, BLOCK) - cut(levels, BLOCK)).abs().amax(dim=2) < 1e-5
            whole, n = int(right.all(dim=1).sum()), len(private)
            low, high = (float(end) for end in clopper_pearson(whole, n, 0.025))
            print(
                f"{asked.dataset}, keys {method.keys}, weight {weight}: {whole} of {n} images whole ({whole / n:.3f}, "
                f"95 % {low:.3f} to {high:.3f} over images), {float(right.double().mean()):.3f} of blocks"
            )
            if weight == (0.0 if one else WEIGHTS[-1]):
                strips.append(put[:SHOWN])
    if asked.picture is not None:
        asked.picture.write_bytes(draw(strips))


if __name__ == "__main__":
    main()
