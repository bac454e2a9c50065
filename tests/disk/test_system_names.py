import pytest

from bench.disk.system_names import system_names


@pytest.mark.parametrize(
    "name",
    [
        "#recycle", "$RECYCLE.BIN", "@Recycle", "RECYCLER", ".Trash-1000", ".Trashes", "trashbox", "Recycle Bin",
        "@eaDir", "__MACOSX", "lost+found", "System Volume Information", "Thumbnails", ".@__thumb", "@__thumb",
        "#snapshot", "FOUND.000", "Thumbs.db", "desktop.ini", "._IM0001.dcm", "IM0001.dcm~", "~$a.png", "IM0001.bak",
        "a.png.part", "SYNOPHOTO_THUMB_XL.jpg",
    ],
)  # fmt: skip
def test_names_of_bins_storage_devices_and_galleries_are_told_apart(name: str) -> None:
    assert system_names([name, "IM0001.dcm", "benign"]) == {name}


def test_names_of_people_stay() -> None:
    names = ["thumb", "thumbs", "recycling", "a b", "IM0001", "1.2.840.10008", "#1", "@home", "trash", "tmp", "part"]
    assert not system_names(names)
    assert not system_names(["thumb_a.png", "b.png", "thumb.png", "left-thumb.png"])


def test_a_thumbnail_is_known_by_the_image_beside_it() -> None:
    names = ["a.png", "a_thumb.jpg", "Thumbnail-A.png", "b_thumb.jpg", "thumbs"]
    assert system_names(names) == {"a_thumb.jpg", "Thumbnail-A.png", "thumbs"}
