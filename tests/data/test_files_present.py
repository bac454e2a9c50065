"""A data set is "ready" only where images are: its tables alone, or empty folders and files, are not the set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.cli import main
from bench.contract.source import DataError, Source
from bench.plugins import registry
from bench.plugins.chosen import choose
from bench.plugins.spec import parse

OCT = [f"OCT2017/{part}/{kind}" for part in ("train", "test") for kind in ("CNV", "DME", "DRUSEN", "NORMAL")]
XRAYS = [f"chest_xray/{part}/{kind}" for part in ("train", "test") for kind in ("NORMAL", "PNEUMONIA")]
WITHOUT_IMAGES = {
    "oxford-pets": ["oxford-iiit-pet/annotations/trainval.txt", "oxford-iiit-pet/annotations/test.txt"],
    "dtd": ["dtd/labels/train1.txt"],
    "fgvc-aircraft": ["fgvc-aircraft-2013b/data/variants.txt", "fgvc-aircraft-2013b/data/images/"],
    "padchest": ["PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv", "0/"],
    "chexpert": ["train.csv", "train/"],
    "vindr-cxr": ["annotations/image_labels_train.csv"],
    "octdl": ["OCTDL_labels.csv", *(f"OCTDL/{kind}/" for kind in ("AMD", "DME", "ERM", "NO", "RAO", "RVO", "VID"))],
    "lfw": ["lfw_funneled/"],
    "rsna": ["stage_2_train_labels.csv", "stage_2_detailed_class_info.csv", "stage_2_train_images/"],
    "celeba": ["list_attr_celeba.txt", "identity_CelebA.txt", "list_eval_partition.txt", "img_align_celeba/"],
    "kermany-oct": [f"{folder}/" for folder in OCT],
    "kermany-cxr": [f"{folder}/" for folder in XRAYS],
    "nih": ["Data_Entry_2017_v2020.csv", "images/"],
    "mimic": [
        "mimic-cxr-2.0.0-chexpert.csv",
        "mimic-cxr-2.0.0-metadata.csv",
        "mimic-cxr-2.0.0-split.csv",
        "files/p10/",
    ],
    "medimeta:skinl_derm": [
        f"MedIMeta/skinl_derm/{name}" for name in ("info.yaml", "annotations.csv", "task_labels/", "images/")
    ],
}
EMPTY_FILES = {
    "olivetti": ["olivettifaces.mat"],
    "medmnist:pneumoniamnist": ["pneumoniamnist.npz"],
    "mnist": ["MNIST/raw/train-images-idx3-ubyte"],
    "stl10": ["stl10_binary/train_X.bin"],
}


def source(name: str) -> Source:
    return choose("datasets", parse(name), "smoke").plugin


def made(root: Path, names: Sequence[str], text: str) -> None:
    """Files with that text, and folders where a name ends in a slash."""
    for name in names:
        place = root / name
        if name.endswith("/"):
            place.mkdir(parents=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)


def test_every_set_with_files_is_tried() -> None:
    own = {name for name, entry in registry.entries("datasets").items() if entry.origin == registry.HOME}
    files = {name for name in own if registry.load("datasets", name).stamp is not Source.stamp}
    assert files - {"folder"} == {parse(name).name for name in WITHOUT_IMAGES | EMPTY_FILES}


@pytest.mark.parametrize("name", sorted(WITHOUT_IMAGES))
def test_tables_without_images_are_not_the_set(tmp_path: Path, name: str) -> None:
    made(tmp_path, WITHOUT_IMAGES[name], "a\n")
    with pytest.raises(DataError, match="expected images in"):
        source(name).stamp([tmp_path])
    assert source(name).here([tmp_path]) == ""


@pytest.mark.parametrize("name", sorted(EMPTY_FILES))
def test_an_empty_file_is_not_the_set(tmp_path: Path, name: str) -> None:
    made(tmp_path, EMPTY_FILES[name], "")
    with pytest.raises(DataError, match="has 0 bytes: fetch it again"):
        source(name).stamp([tmp_path])
    made(tmp_path, EMPTY_FILES[name], "a")
    assert source(name).here([tmp_path]).startswith("ready")


def test_the_list_stands_where_a_set_lacks_its_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, WITHOUT_IMAGES["oxford-pets"], "a\n")
    assert main(["data", "list", "--data-root", str(tmp_path)]) == 0
    assert "oxford-pets" in capsys.readouterr().out
