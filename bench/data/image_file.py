"""Which files of a folder are images: by their ending, or by DICOM's own mark, since scanners give no ending at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.contract.source import DataError
from bench.data.dicom import is_dicom
from bench.data.spelling import spelling
from bench.data.tree import walk

ENDINGS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pgm", ".ppm", ".pnm", ".jp2",
    ".j2k", ".dcm", ".dicom",
)  # fmt: skip
_DIRECTORY = "dicomdir"  # DICOM's list of the files beside it


def is_image(path: Path) -> bool:
    """Whether a file is called an image or says that it is one of DICOM.

    One that cannot be opened counts as one, so that decoding refuses it and nothing is passed over unseen.
    """
    if path.suffix.lower() in ENDINGS:
        return True
    try:
        return path.name.lower() != _DIRECTORY and is_dicom(path)
    except OSError:
        return True


def absent(top: Path, listed: Iterable[str]) -> list[str]:
    """Why none of the `listed` files, relative to `top`, is there: what to say of each.

    Where another spelling of the name is there, that is said, but no name, since those may be confidential.
    """
    try:
        there = {_form(str(path.relative_to(top))) for path in walk(top).files}
    except DataError:
        there = set()
    return [_absent(name, there) for name in listed]


def _absent(name: str, there: set[str]) -> str:
    if not name.strip():
        return "path is blank, expected the name of an image"
    if "\\" in name:
        return "the image was not found: write / between folders, not \\"
    if _form(name) not in there:
        return "the image was not found"
    return "the image was not found, but one whose name differs in capitals, blanks or how accents are coded"


def _form(name: str) -> str:
    """What spellings of a name have in common; the name itself where it is no text."""
    try:
        return spelling(name.replace("\\", "/"))
    except DataError:
        return name
