"""A data set is "ready" only where images are: its tables alone, or empty folders and files, are not the set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench.cli import main
from bench.contract.source import DataError, Source
from bench.data.raw_files import links_note, locate, matching, resolve, stamp_files, stamp_folder, walk
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import parse


def test_roots_come_from_the_command_line_then_the_environment_then_the_config_file(tmp_path: Path) -> None:
    named = [tmp_path / name for name in "abcd"]
    config = tmp_path / "config.yaml"
    config.write_text(f"data_roots: [{named[3]}, {named[0]}]\n")
    environment = {"BENCH_DATA": os.pathsep.join([str(named[1]), str(named[2])])}
    assert resolve([named[0]], environment=environment, config=config) == tuple(named)


def test_no_root_is_set_without_any_of_the_three(tmp_path: Path) -> None:
    assert resolve(environment={}, config=tmp_path / "none.yaml") == ()


@pytest.mark.parametrize("text", ["data_roots: 3", "- a\n- b", "data_roots: [1, 2]"])
def test_config_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(DataError, match="data_roots must be a list of folders"):
        resolve(environment={}, config=tmp_path / "config.yaml")


def test_an_unknown_key_of_the_config_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data_root: [/somewhere]")
    with pytest.raises(DataError, match="unknown key 'data_root'; the file has one key, data_roots"):
        resolve(environment={}, config=tmp_path / "config.yaml")


def test_broken_config_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data_roots: [")
    with pytest.raises(DataError, match="not valid YAML"):
        resolve(environment={}, config=tmp_path / "config.yaml")


@pytest.mark.parametrize("inside", ["", "thing", "usual/place"])
def test_data_are_found_in_the_root_its_namesake_and_usual_folders(tmp_path: Path, inside: str) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / inside / "mark.csv").write_text("a")
    found = locate([tmp_path], name="thing", folders=("usual/place",), markers=("mark.csv",), obtain="")
    assert found == (tmp_path / inside).resolve()


def test_unfound_data_name_every_place_the_marker_and_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        locate([tmp_path, tmp_path / "no"], name="thing", folders=("x",), markers=("a.csv", "b.csv"), obtain="Ask Ann.")
    text = str(caught.value)
    for part in (
        f"  {tmp_path}, there or in thing, x\n",
        f"  {tmp_path / 'no'}  (no such folder)\n",
    ):
        assert part in text
    assert "a.csv or b.csv" in text
    assert "--data-root, BENCH_DATA" in text
    assert text.endswith("Ask Ann.")


def test_unfound_data_say_that_no_root_is_set() -> None:
    with pytest.raises(DataError, match="no data root is set"):
        locate([], name="thing", folders=(), markers=("a",), obtain="")


def test_stamps_change_with_content_and_with_names(tmp_path: Path) -> None:
    first = tmp_path / "a"
    first.write_text("1")
    before = stamp_files([first]), stamp_folder(tmp_path), stamp_folder(tmp_path, sizes=True)
    assert before == (stamp_files([first]), stamp_folder(tmp_path), stamp_folder(tmp_path, sizes=True))
    first.write_text("12")
    assert stamp_files([first]) != before[0]
    assert stamp_folder(tmp_path) == before[1]
    assert stamp_folder(tmp_path, sizes=True) != before[2]
    first.rename(tmp_path / "b")
    assert stamp_folder(tmp_path) != before[1]


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return path


def test_links_are_followed_to_files_and_folders_inside_and_outside(tmp_path: Path) -> None:
    top = tmp_path / "top"
    touch(top / "a/1.png")
    touch(tmp_path / "away/deep/2.png")
    (top / "b").symlink_to(tmp_path / "away")
    (top / "a/3.png").symlink_to(tmp_path / "away/deep/2.png")
    (top / "a/4.png").symlink_to("1.png")
    touch(top / ".hidden/5.png")
    tree = walk(top)
    assert [str(path.relative_to(top)) for path in tree.files] == ["a/1.png", "a/3.png", "a/4.png", "b/deep/2.png"]
    assert [str(path.relative_to(top)) for path in tree.folders] == [".", "a", "b", "b/deep"]
    assert list(links_note(tree.files, top)) == [
        "3 of 4 images are reached through links, and 2 lie outside the set's folder"
    ]
    assert list(links_note([top / "a/1.png"], top)) == []
    assert list(links_note([top / "a/1.png", top / "../away/deep/2.png"], top)) == [
        "0 of 2 images are reached through links, and 1 lie outside the set's folder"
    ]


@pytest.mark.parametrize("kind", ["itself", "pair", "parent", "top", "around", "nowhere", "pipe", "nowhere.png"])
def test_what_leads_nowhere_or_in_circles_is_refused_and_not_named(tmp_path: Path, kind: str) -> None:
    top = tmp_path / "top"
    touch(top / "a/b/secret.png")
    if kind == "itself":
        (top / "a/itself").symlink_to("itself")
    elif kind == "pair":
        (top / "a/one").symlink_to("two")
        (top / "a/two").symlink_to("one")
    elif kind == "parent":
        (top / "a/b/up").symlink_to("..")
    elif kind == "top":
        (top / "a/b/top").symlink_to(top)
    elif kind == "around":
        (tmp_path / "away").mkdir()
        (tmp_path / "away/back").symlink_to(top)
        (top / "a/away").symlink_to(tmp_path / "away")
    elif kind == "pipe":
        os.mkfifo(top / "a/pipe.png")
    else:
        (top / "a" / kind).symlink_to("gone")
    with pytest.raises(
        DataError, match=r"[12] names in the folder are links that lead nowhere or in circles"
    ) as caught:
        walk(top)
    assert str(tmp_path) not in str(caught.value)


def test_one_folder_under_two_names_is_no_circle(tmp_path: Path) -> None:
    touch(tmp_path / "a/1.png")
    (tmp_path / "b").symlink_to("a")
    assert len(walk(tmp_path).files) == 2


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
    return configure("datasets", parse(name), "smoke").plugin


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
    drawn = {
        name for name in own if registry.load("datasets", name).secret_people
    }  # stamped by a secret, without files
    files = {name for name in own - drawn if registry.load("datasets", name).stamp is not Source.stamp}
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


def test_a_folder_that_may_not_be_read_is_no_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`glob` takes it for one: another state of the data would have passed for the same."""
    for name in ("images_1/images", "images_2/images", "other"):
        (tmp_path / name).mkdir(parents=True)
    assert matching(tmp_path, "images_*/images") == [tmp_path / "images_1/images", tmp_path / "images_2/images"]
    assert matching(tmp_path, "images") == []
    listed = Path.iterdir

    def closed(folder: Path) -> Iterator[Path]:
        if folder.name == "images_2":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", closed)
    with pytest.raises(DataError, match="images_2 may not be read"):
        matching(tmp_path, "images_*/images")
