"""Train Syfer at the paper's size on a GPU and keep its weights.

    python tests/campaigns/train_syfer.py rows ROWS.npz --dataset nih --public kermany-cxr --size 64 --data-root FOLDER
    python tests/campaigns/train_syfer.py train ROWS.npz FOLDER [--keep 500 2000 8000 20000] [--device cuda]

`rows` writes the public images of a run as 8-bit numbers, (n, c, h, w). `train` needs torch and few packages beside it,
and writes weights in bfloat16 after each number of steps to keep and at the end, the latest ones every
`EVERY` steps, and `training.json`: options, losses, seconds and what it ran on. `bench run --method
'syfer[..., weights=FILE, weights_sha256=DIGITS]'` reads such a file.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import time
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from bench.nets import obfuscator
from bench.seeds import derive
from methods.syfer import Syfer

EVERY = 5_000
LARGE = 4_096
"""Numbers above which a tensor is kept in bfloat16."""
SIZES = {"blocks": 5, "depth": 5, "batch": 128, "opponent_width": 256, "learning_rate": 3e-4, "cuda_compile": True}
"""Of the paper, and the rate of the study of Syfer."""


def write_rows(path: Path, options: argparse.Namespace) -> None:
    """Write the public images of a run."""
    from bench.plugins.configured import configure
    from bench.results.results import Results
    from bench.workbench.cell import Cell
    from bench.workbench.choice import Choice
    from bench.workbench.place import Place
    from bench.workbench.workbench import Workbench

    named = {"dataset": options.dataset, "public": options.public, "size": options.size, "preset": "paper"}
    folder = path.parent
    place = Place(Results(folder / "results"), folder / "cache", tuple(options.data_root))
    bench = Workbench.open(Cell(configure("methods", "identity", "paper"), Choice.read(named), "cpu"), place)
    images = bench.public.samples
    np.savez(path, images=(images * 255).round().to(torch.uint8).numpy())
    print(f"{len(images)} images {tuple(images.shape[1:])} of {bench.public.name}")
    bench.close()


def kept_as(tensor: torch.Tensor) -> torch.dtype:
    """The dtype that a tensor is kept in."""
    return torch.bfloat16 if tensor.numel() > LARGE else tensor.dtype


def kept(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Weights on the CPU, large ones in bfloat16."""
    return {
        name: tensor.detach().to("cpu", kept_as(tensor)).contiguous() for name, tensor in network.state_dict().items()
    }


def train(rows: Path, folder: Path, options: argparse.Namespace) -> None:
    """Train, and write weights and what they cost."""
    with np.load(rows, allow_pickle=False) as file:
        images = torch.from_numpy(file["images"]).to(options.device).float() / 255
    sizes = SIZES | {name: value for name, value in vars(options).items() if name in SIZES and value is not None}
    method = Syfer(steps=options.steps, lambda_reid=options.lambda_reid, lambda_rec=options.lambda_rec, **sizes)
    folder.mkdir(parents=True, exist_ok=True)
    shape = (images.shape[1], images.shape[2], images.shape[3])
    network = method.start(images, shape, options.seed)
    files: dict[str, str] = {}
    started = time.monotonic()

    def write(name: str) -> None:
        content = safetensors.torch.save(kept(network))
        (folder / f"{name}.safetensors").write_bytes(content)
        files[name] = hashlib.sha256(content).hexdigest()

    def after(done: int) -> None:
        if done in options.keep:
            write(f"steps-{done}")
        elif done % EVERY == 0 and done < options.steps:
            write("latest")
        if done % max(1, options.steps // 50) == 0 or done == 50:
            print(f"{done} steps, {time.monotonic() - started:.1f} s", flush=True)

    losses = obfuscator.train_obfuscator(
        network, images, method.opponents(images.device), derive(options.seed, "training"), after
    )
    (folder / "latest.safetensors").unlink(missing_ok=True)
    files.pop("latest", None)
    write(f"steps-{options.steps}")
    told = {
        "options": {name: value for name, value in dataclasses.asdict(method).items() if "weights" not in name},
        "images": len(images), "shape": shape, "seed": options.seed, "seconds": round(time.monotonic() - started, 1),
        "losses": dataclasses.asdict(losses), "attacker_at_chance": math.log(min(method.batch, len(images))),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if images.device.type == "cuda" else "cpu", "sha256": files,
    }  # fmt: skip
    (folder / "training.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told), flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    rows = verbs.add_parser("rows")
    rows.add_argument("path", type=Path)
    rows.add_argument("--dataset", default="nih")
    rows.add_argument("--public", default="kermany-cxr")
    rows.add_argument("--size", type=int, default=64)
    rows.add_argument("--data-root", type=Path, action="append", default=[])
    course = verbs.add_parser("train")
    course.add_argument("path", type=Path)
    course.add_argument("folder", type=Path)
    course.add_argument("--steps", type=int, default=50_000)
    course.add_argument("--keep", type=int, nargs="*", default=[500, 2_000, 8_000, 20_000])
    course.add_argument("--device", default="cuda")
    course.add_argument("--seed", type=int, default=0)
    course.add_argument("--lambda-reid", type=float, default=Syfer.lambda_reid)
    course.add_argument("--lambda-rec", type=float, default=Syfer.lambda_rec)
    for name in ("blocks", "depth", "batch", "opponent_width"):
        course.add_argument("--" + name.replace("_", "-"), type=int)
    options = parser.parse_args()
    if options.verb == "rows":
        write_rows(options.path, options)
    else:
        train(options.path, options.folder, options)


if __name__ == "__main__":
    main()
