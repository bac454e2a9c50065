"""Large trees in the official layouts of MIMIC-CXR-JPG and NIH ChestX-ray14: as many small JPEGs and PNGs as wanted.

Every picture is its own: coarse noise, enlarged, so that it is quickly drawn, written and read.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from PIL import Image

COARSE = 8
EACH = 2  # images a person
MIMIC_TASKS = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema")


def mimic(root: Path, images: int, side: int) -> Path:
    """MIMIC-CXR-JPG 2.0.0 below `root`."""
    top = root / "mimic-cxr-jpg/2.0.0"
    random = np.random.default_rng(0)
    marks = random.integers(0, 2, (images, len(MIMIC_TASKS)))
    people, studies = (10_000_000 + np.arange(images) // EACH), 50_000_000 + np.arange(images)
    tables: dict[str, list[str]] = {
        "metadata": ["dicom_id,subject_id,study_id,ViewPosition"],
        "chexpert": ["subject_id,study_id," + ",".join(MIMIC_TASKS)],
        "split": ["dicom_id,study_id,subject_id,split"],
    }
    for number, (who, study, marked) in enumerate(zip(people, studies, marks, strict=True)):
        dicom = f"{number:08x}"
        folder = top / f"files/p{str(who)[:2]}/p{who}/s{study}"
        folder.mkdir(parents=True, exist_ok=True)
        _picture(random, side).save(folder / f"{dicom}.jpg", quality=50)
        tables["metadata"].append(f"{dicom},{who},{study},PA")
        tables["chexpert"].append(f"{who},{study}," + ",".join(f"{mark}.0" for mark in marked))
        tables["split"].append(f"{dicom},{study},{who},train")
    for name, lines in tables.items():
        (top / f"mimic-cxr-2.0.0-{name}.csv.gz").write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    return top


def nih(root: Path, images: int, side: int) -> Path:
    """NIH ChestX-ray14 below `root`."""
    top = root / "nih"
    (top / "images").mkdir(parents=True)
    random = np.random.default_rng(1)
    found = ("No Finding", "Atelectasis", "Cardiomegaly|Edema", "Consolidation")
    lines = ["Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position"]
    names = []
    for number in range(images):
        name = f"{number // EACH + 1:08d}_{number % EACH:03d}.png"
        _picture(random, side).save(top / "images" / name, compress_level=1)
        lines.append(f"{name},{found[number % len(found)]},0,{number // EACH + 1},57,M,PA")
        names.append(name)
    (top / "Data_Entry_2017.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    half = images // 2 // EACH * EACH  # no patient on both sides
    (top / "train_val_list.txt").write_text("\n".join([*names[:half], ""]), encoding="utf-8")
    (top / "test_list.txt").write_text("\n".join([*names[half:], ""]), encoding="utf-8")
    return top


def _picture(random: np.random.Generator, side: int) -> Image.Image:
    coarse = random.integers(0, 256, (COARSE, COARSE), dtype=np.uint8)
    return Image.fromarray(coarse).resize((side, side), Image.Resampling.BILINEAR)
