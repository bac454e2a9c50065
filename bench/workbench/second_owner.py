"""A second owner: the key's state in a clean process, which releases what it is given and knows of nothing else.

The judge asks her for every release but the first: neither the caller, nor the stack, nor the environment tells a
method whether a person, the benchmark or the judge wants a release. `release_elsewhere` is all that knows how she is
reached; a sandbox takes its place by taking over this function.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.contract.seal import ContractError, check
from bench.plugins.chosen import Chosen, choose
from bench.types import Dataset, Method, NotApplicable, Release, State

SECONDS = 3600.0
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "TEMP", "HOME", "CUDA_VISIBLE_DEVICES",
             "OMP_NUM_THREADS", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")  # fmt: skip
"""What her process gets of this one's environment."""


def release_elsewhere(
    method: Chosen[Method], scheme: State, key: State, parts: Sequence[Dataset]
) -> list[Release | NotApplicable]:
    """What the key releases of each part, or why it refuses; the key is loaded anew for every part.

    Args:
        method: Built again from its spec.
        scheme, key: As `Scheme.state` and `Key.state` give them.
        parts: On any device, all on one.

    Raises:
        ContractError: A release that is not well-formed, or a process that ended without an answer.
    """
    with tempfile.TemporaryDirectory(prefix="owner-") as name:
        folder = Path(name)
        _write(folder / "scheme.safetensors", scheme)
        _write(folder / "key.safetensors", key)
        for number, part in enumerate(parts):
            tensors = {"samples": part.samples, "labels": part.labels, "subjects": part.subjects}
            _write(folder / f"private-{number}.safetensors", {k: v for k, v in tensors.items() if v is not None})
        first = parts[0]
        job = {
            "method": str(method), "preset": method.preset, "parts": len(parts), "name": first.name,
            "findings": first.findings, "exclusive": first.exclusive, "shareable": first.shareable,
            "device": str(first.samples.device), "threads": torch.get_num_threads(),
        }  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "bench.workbench.second_owner", str(folder)],
            env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
        answer = folder / "answer.json"
        if done.returncode or not answer.exists():
            last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1][:500]
            raise ContractError(f"the key could not release in a process of its own: {last}")
        said = json.loads(answer.read_text(encoding="utf-8"))
        made: list[Release | NotApplicable] = []
        for number, (part, why) in enumerate(zip(parts, said, strict=True)):
            if why is not None:
                made.append(NotApplicable(str(why)))
                continue
            found = load_file(folder / f"release-{number}.safetensors")
            release = _release({name: tensor.to(first.samples.device) for name, tensor in found.items()})
            check(release, part)
            made.append(release)
        return made


def _release(found: dict[str, Tensor]) -> Release:
    return Release(found["samples"], found.get("labels"), found.get("links"), found.get("primary"))


def _write(path: Path, tensors: State) -> None:
    save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, path)


def _serve(folder: Path) -> None:
    """In the clean process: release every part, each with a key of its own making."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    torch.set_num_threads(job["threads"])
    device = torch.device(job["device"])

    def read(name: str) -> dict[str, Tensor]:
        return {key: tensor.to(device) for key, tensor in load_file(folder / f"{name}.safetensors").items()}

    method = choose("methods", job["method"], job["preset"]).plugin
    said: list[str | None] = []
    for number in range(job["parts"]):
        rows = read(f"private-{number}")
        part = Dataset(
            name=job["name"], samples=rows["samples"], labels=rows.get("labels"), subjects=rows.get("subjects"),
            findings=tuple(job["findings"]), exclusive=job["exclusive"], shareable=job["shareable"],
        )  # fmt: skip
        key = method.load(read("scheme")).load_key(read("key"))
        try:
            release = replace(key.release(part), generator=None)
        except NotApplicable as reason:
            said.append(str(reason))
            continue
        tensors = {name: getattr(release, name) for name in ("samples", "labels", "links", "primary")}
        _write(folder / f"release-{number}.safetensors", {k: v for k, v in tensors.items() if v is not None})
        said.append(None)
    (folder / "answer.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
