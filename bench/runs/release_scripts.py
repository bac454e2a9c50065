"""Scripts of a release for strangers: load.py and example.py."""

from __future__ import annotations

__figures__ = False

from collections.abc import Mapping

_HEAD = '''"""Read this release: rows (m, ...), labels (m, k) or None, groups (m,), findings (k names)."""

import csv
import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


def tensors(path):
    """The arrays of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    return {name: np.frombuffer(body[slice(*told["data_offsets"])], KINDS[told["dtype"]]).reshape(told["shape"])
            for name, told in header.items() if name != "__metadata__"}


def load():
    about = json.loads((HERE / "release.json").read_text(encoding="utf-8"))
    groups = list(csv.DictReader(open(HERE / "groups.csv", encoding="utf-8")))
'''
_TAIL = """    return rows, labels, np.array([int(line["group"]) for line in groups]), about["findings"]


if __name__ == "__main__":
    rows, labels, groups, findings = load()
    print(f"rows {rows.shape}, {len(set(groups.tolist()))} different ones; findings: {', '.join(findings) or 'none'}")
"""
_LISTED = """    labels = None
    if (HERE / "labels.csv").exists():
        lines = csv.DictReader(open(HERE / "labels.csv", encoding="utf-8"))
        labels = np.array([[float(line[name] or "nan") for name in about["findings"]] for line in lines], "f4")
"""
LOADERS: Mapping[str, str] = {
    "safetensors": _HEAD
    + """    found = tensors(HERE / "release.safetensors")
    rows, labels = found["samples"], found.get("labels")
"""
    + _TAIL,
    "png": _HEAD
    + """    from PIL import Image

    images = [np.asarray(Image.open(HERE / line["released"]), "f4") / 255 for line in groups]
    rows = np.stack([image[None] if image.ndim == 2 else image.transpose(2, 0, 1) for image in images])
"""
    + _LISTED
    + _TAIL,
    "dicom": _HEAD
    + """    import pydicom

    images = [np.asarray(pydicom.dcmread(HERE / line["released"]).pixel_array, "f4") / 255 for line in groups]
    rows = np.stack([image[None] if image.ndim == 2 else image.transpose(2, 0, 1) for image in images])
"""
    + _LISTED
    + _TAIL,
}
EXAMPLE = '''"""Train a small model on this release, and predict new rows: needs numpy.

    python example.py                                       AUC of each finding on rows that were not trained on
    python example.py queries.safetensors predictions.csv   predictions for rows that the owner sent

A random projection and ridge regression: a starting point, no benchmark.
"""

import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # which Python leaves out under -P
from load import load, tensors

WIDTH, RIDGE = 512, 1.0


def auc(truth, scores):
    order = scores.argsort()
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    for value in np.unique(scores):
        ranks[scores == value] = ranks[scores == value].mean()
    yes, no = int(truth.sum()), int((1 - truth).sum())
    return (ranks[truth == 1].sum() - yes * (yes + 1) / 2) / (yes * no) if yes and no else float("nan")


class Model:
    def __init__(self, rows, labels):
        flat = rows.reshape(len(rows), -1).astype("f4")
        self.mean, self.scale = flat.mean(axis=0), flat.std() + 1e-6
        draw = np.random.default_rng(0)
        self.project = draw.standard_normal((flat.shape[1], min(WIDTH, flat.shape[1])), "f4") / flat.shape[1] ** 0.5
        seen = self.see(rows)
        self.weights = []
        for column in labels.T:
            known = ~np.isnan(column)
            x, y = seen[known], column[known]
            gram = x.T @ x + RIDGE * np.eye(x.shape[1])
            mean = y.mean() if len(y) else 0.5
            self.weights.append((np.linalg.solve(gram, x.T @ (y - mean)), mean))

    def see(self, rows):
        flat = rows.reshape(len(rows), -1).astype("f4")
        return (((flat - self.mean) / self.scale) @ self.project).astype("f8")

    def predict(self, rows):
        seen = self.see(rows)
        return np.clip(np.stack([seen @ weight + mean for weight, mean in self.weights], axis=1), 0, 1)


rows, labels, groups, findings = load()
if len(sys.argv) == 3:
    scores = Model(rows, labels).predict(tensors(sys.argv[1])["samples"])
    with open(sys.argv[2], "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(findings)
        table.writerows([f"{score:.6f}" for score in row] for row in scores.tolist())
    print(f"{len(scores)} predictions: {sys.argv[2]}")
else:
    names = np.unique(groups)
    held = np.isin(groups, np.random.default_rng(0).permutation(names)[: max(1, len(names) // 5)])
    scores = Model(rows[~held], labels[~held]).predict(rows[held])
    print(f"trained on {int((~held).sum())} rows, tested on {int(held.sum())} of other groups")
    for number, name in enumerate(findings):
        known = ~np.isnan(labels[held][:, number])
        print(f"  {name}: AUC {auc(labels[held][known, number], scores[known, number]):.3f}")
'''
