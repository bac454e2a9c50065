"""How often the judge accuses honest methods: `python tests/benchmarks/false_alarms.py DATASET "METHOD;..." [SEEDS]`.

Every seed draws other splits, keys and people. Releases are made in this process, which is quicker. The nominal level
of an accusation is .001; of all p at most one in twenty may lie below .05.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from made.cells import opened

from bench.evaluators import honesty
from bench.evaluators.honesty import Honesty
from bench.randomness import Secret
from bench.types import NotApplicable


def main(dataset: str, methods: str, seeds: str = "100") -> None:
    honesty.second_owner = lambda bench: nullcontext(bench.method)  # type: ignore[assignment]
    for method in methods.split(";"):
        broken: dict[str, int] = {}
        probabilities, counted = [], 0
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(int(seeds)):
                bench = opened(Path(folder), method, dataset, seed=seed)
                try:
                    found = Honesty().measure(replace(bench, run_secret=Secret.of_seed(seed, "alarms"))).evidence[""]
                except NotApplicable:
                    continue
                counted += 1
                probabilities.append(found.p)
                for name, made in found.promises.items():
                    broken[name] = broken.get(name, 0) + made.broken
        low = sum(p < 0.05 for p in probabilities)
        print(f"{dataset} {method}: {counted} releases, accused {broken}, p below .05: {low}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
