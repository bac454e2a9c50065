"""A short turn of `tests/campaigns/train_syfer.py`."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
from made.datasets import unlabelled

from methods.syfer import Syfer

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
import train_syfer


def test_kept_weights_are_those_that_the_method_reads(tmp_path, monkeypatch, capsys):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 1, 32, 32), dtype=np.uint8)
    np.savez(tmp_path / "rows.npz", images=pixels)
    small = ["--blocks", "1", "--depth", "1", "--opponent-width", "16", "--batch", "8", "--steps", "4", "--keep", "2"]
    words = [
        "train",
        tmp_path / "rows.npz",
        tmp_path / "kept",
        "--device",
        "cpu",
        "--steps",
        "4",
        "--keep",
        "2",
        *small,
    ]
    monkeypatch.setattr(sys, "argv", ["train_syfer.py", *map(str, words)])
    train_syfer.main()
    told = json.loads((tmp_path / "kept" / "training.json").read_text())
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == told
    files = {path.stem: path for path in (tmp_path / "kept").glob("*.safetensors")}
    assert set(files) == {"steps-2", "steps-4"}
    assert told["sha256"] == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    read = Syfer(**told["options"], weights=str(files["steps-4"]), weights_sha256=told["sha256"]["steps-4"])
    rows = torch.from_numpy(pixels).float() / 255
    trained = Syfer(**told["options"]).fit(unlabelled(rows), 0).network.state_dict()
    for name, tensor in read.fit(unlabelled(rows), 1).network.state_dict().items():
        assert torch.equal(tensor, trained[name].to(train_syfer.kept_as(trained[name])).float()), name
