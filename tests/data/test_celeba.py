from pathlib import Path

import pytest
from made.data_files import listing, picture

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.celeba import CelebA

NAMES = [f"{number:06d}.jpg" for number in range(1, 6)]
COLUMNS = "Male Smiling Young"
MARKS = ("1 -1 1", "-1  1 1", "1 1 -1", "-1 -1 -1", "-1 1 1")


def attributes(top: Path, count: int = 5, columns: str = COLUMNS) -> None:
    rows = [f"{name} {marks}" for name, marks in zip(NAMES, MARKS, strict=True)]
    (top / "list_attr_celeba.txt").write_text("\n".join([str(count), columns, *rows]) + "\n")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root" / "celeba"
    for number, name in enumerate(NAMES):
        picture(top / "img_align_celeba" / name, number, 218, 178, 3)
    listing(top / "identity_CelebA.txt", dict(zip(NAMES, (2880, 2937, 2880, 10, 10), strict=True)))
    listing(top / "list_eval_partition.txt", dict(zip(NAMES, (0, 0, 0, 1, 2), strict=True)))
    attributes(top)
    return top


def test_identities_are_people_and_images_have_the_side_of_cadp(top: Path, tmp_path: Path) -> None:
    prepared = prepare(CelebA(), roots=[top.parent], cache=tmp_path / "cache")
    assert prepared.samples.shape == (5, 3, 128, 128)
    assert prepared.labels[:, 0].tolist() == [0, 1, 1, 0, 1]
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 1, 0, 2, 2]
    assert prepared.parts is not None
    assert prepared.parts.tolist() == [0, 0, 0, 1, 2]
    assert prepared.attributes is not None
    assert prepared.attributes.named() == {"sex": ["female", "male"]}
    assert not prepared.shareable
    assert "3 identities, the official set has 10177" in prepared.notes


def test_other_attributes_are_findings_on_request(top: Path) -> None:
    assert CelebA("Young+Male").scan([top], 64).labels.tolist() == [[1, 1], [1, 0], [0, 1], [0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("identity_CelebA.txt", "000001.jpg 5\n", "expected the 5 images of list_attr_celeba.txt, found 1"),
        ("identity_CelebA.txt", "000001.jpg\n", "line 1: expected an image and a number"),
        ("list_eval_partition.txt", "".join(f"{name} 3\n" for name in NAMES), "expected 0, 1 or 2"),
        ("list_attr_celeba.txt", "5\nSmiling Young\n000001.jpg 1 1\n", "Male among them"),
        ("list_attr_celeba.txt", f"2\n{COLUMNS}\n000001.jpg 1 1\n", "found 1; 1 are other lines, first line 3"),
    ],
)
def test_lists_that_are_no_lists_are_refused(top: Path, name: str, content: str, reason: str) -> None:
    (top / name).write_text(content)
    with pytest.raises(DataError, match=reason):
        CelebA().scan([top], 64)


def test_an_unknown_attribute_is_an_error_that_names_it(top: Path) -> None:
    with pytest.raises(DataError, match="Smirking among them"):
        CelebA("Smirking").scan([top], 64)


def test_an_image_or_an_attribute_listed_twice_is_refused(top: Path) -> None:
    path = top / "list_attr_celeba.txt"
    once = path.read_text()
    path.write_text(once.replace("5\n", "6\n", 1) + "000001.jpg 1 1 1\n")
    with pytest.raises(DataError, match=r"each once, .* first line 8"):
        CelebA().scan([top], 64)
    attributes(top, columns="Male Smiling Smiling")
    with pytest.raises(DataError, match="each once; found Male, Smiling, Smiling"):
        CelebA().scan([top], 64)
    path.write_text(once.replace("5\n", "²\n", 1))
    with pytest.raises(DataError, match="expected a number of images"):
        CelebA().scan([top], 64)
