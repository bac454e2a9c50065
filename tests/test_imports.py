"""What few need is imported by those who need it: starting, listing and running must not wait for it."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {
    "FrEIA", "huggingface_hub", "matplotlib", "medmnist", "numba", "opacus", "pandas", "seaborn", "sklearn", "timm",
    "torchvision",
}  # fmt: skip
JOB = """
import json, sys
import bench.cli
light = sorted(name for name in sys.modules if name in ("numpy", "pydantic", "rich", "torch"))
import torch
import bench.runs.tasks
from bench.randomness import Secret
from bench.plugins import registry
from bench.types import Dataset
for group in ("methods", "attacks", "metrics"):
    assert registry.working(group)  # imports every plug-in
from methods.noise import Noise
rows = Dataset("rows", torch.rand(4, 1, 8, 8), torch.ones(4, 1), None, ("a",), False, True)
Noise().fit(rows, 0).sample_key(Secret.of_seed(1)).release(rows)
print(json.dumps([light, sorted(name for name in sys.modules if "." not in name)]))
"""


def test_a_job_imports_nothing_heavy_that_it_does_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, check=True)
    light, imported = json.loads(done.stdout)
    assert light == []  # of the command line alone
    assert sorted(HEAVY & set(imported)) == []
