"""The script of the verifier at 224 pixels, on a tiny folder of films."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
import verifier_at_224


def test_each_fold_is_scored_by_heads_that_never_saw_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verifier_at_224, "DRAWS", 20)
    folder = tmp_path / "nih" / "images"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    lines = ["Image Index,Finding Labels,Patient ID"]
    for person in range(1, 41):
        common = random.integers(40, 200, (4, 4)).repeat(8, 0).repeat(8, 1)
        for number in range(2):
            name = f"{person:08d}_{number:03d}.png"
            Image.fromarray((common + random.integers(0, 30, (32, 32))).astype(np.uint8)).save(folder / name)
            lines.append(f"{name},No Finding,{person}")
    (tmp_path / "nih" / "Data_Entry_2017.csv").write_text("\n".join(lines) + "\n")
    seen = []
    learned = verifier_at_224.learned
    monkeypatch.setattr(verifier_at_224, "learned", lambda *a: seen.append(a[2]) or learned(*a))
    verifier_at_224.main([str(tmp_path), "--backbone", "pixels", "--size", "32", "--limit", "80"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["pixels, untrained", "pixels, trained"]
    assert all(float(line.split("AUC ")[1][:5]) > 0.9 for line in lines)
    assert len(seen) == 5
    assert sum((~inside).int() for inside in seen).eq(1).all()  # each image is left out once
