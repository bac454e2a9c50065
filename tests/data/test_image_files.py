import os
from pathlib import Path

import pytest

from bench.contract.source import DataError
from bench.data.raw_files import links_note, walk


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
