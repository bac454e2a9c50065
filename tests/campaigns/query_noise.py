"""Price and worth of the noise on rows that other authors' methods encode for Bob.

`python tests/campaigns/query_noise.py [--dataset digits] [--preset smoke]` looks test rows up among the raw ones
that a cheat may carry: by their bytes, rounded to eight bits, and by the nearest neighbour. Then it measures the
utility of every method of this project under one key, as it is and with the noise, as if it were another author's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from made.cells import opened

from bench.evaluators import predictions
from bench.evaluators.utility import Utility
from bench.isolation.query_noise import noisy
from bench.plugins import registry
from bench.randomness import Secret
from bench.runs.judge import judge
from bench.types import Key, NotApplicable
from bench.workbench.workbench import Workbench

PATCHED = ("dauntless", "neuracrypt", "random-layers", "syfer", "syfer-random")
SECRET = Secret.of_seed(0, "campaign")


def utility(folder: Path, method: str, dataset: str, preset: str, *, noise: bool) -> str:
    """AUC and its interval."""
    bench = opened(folder, method, dataset, preset=preset)

    def queried(bench: Workbench, key: Key, data: object) -> torch.Tensor:
        if bench.method.uses_labels or type(key).query is Key.query:
            return data.samples  # type: ignore[attr-defined, no-any-return]
        samples = data.samples  # type: ignore[attr-defined]
        return key.query(noisy(samples, SECRET) if noise else samples)

    def published(bench: Workbench, key: Key) -> torch.Tensor | None:
        classify = key.classifier(bench.private)
        if classify is None:
            return None
        samples = bench.test.samples
        return classify(noisy(samples, SECRET) if noise else samples).float().cpu()

    bench = replace(bench, preset=replace(bench.preset, utility_keys=1))
    with (
        patch.object(predictions, "queried", queried),
        patch("bench.evaluators.utility.published_predictions", published),
    ):
        found = Utility().measure(bench)
    score = judge(registry.load("metrics", "utility-auc")(), found.evidence)  # type: ignore[operator]
    return f"{score.value:.4f} ({score.low:.4f} to {score.high:.4f})"


def found_shares(folder: Path, dataset: str) -> dict[str, float]:
    """The share of noisy test rows that a look-up finds."""
    bench = opened(folder, "identity", dataset)
    carried = torch.cat([part.samples for part in (bench.private, bench.test, bench.control)]).flatten(1)
    first = len(bench.private)
    rows = noisy(bench.test.samples, SECRET).flatten(1)
    right = torch.arange(first, first + len(rows))
    alike = carried[right]
    near = torch.cdist(rows, carried).argmin(dim=1)
    return {
        "bytes": float((rows == alike).all(dim=1).float().mean()),
        "rounded": float(((rows * 255).round() == (alike * 255).round()).all(dim=1).float().mean()),
        "nearest": float(((carried[near] - alike).abs().amax(dim=1) == 0).float().mean()),
    }


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--preset", default="smoke")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, patch("bench.results.run_secret.fresh", lambda: SECRET):
        folder = Path(made)
        for title, share in found_shares(folder, asked.dataset).items():
            print(f"looked up by {title}: {share:.3f}")
        side = 4 if asked.dataset == "digits" else 16
        for name in registry.own("methods"):
            method = f"{name}[patch_size={side}]" if name in PATCHED else name
            try:
                plain, with_noise = (
                    utility(folder / f"{noise}", method, asked.dataset, asked.preset, noise=noise)
                    for noise in (False, True)
                )
            except NotApplicable as reason:
                print(f"{method}: not applicable ({reason!s:.80})", flush=True)
                continue
            print(f"{method}: {plain} -> {with_noise}", flush=True)


if __name__ == "__main__":
    main()
