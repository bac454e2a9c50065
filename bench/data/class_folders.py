"""Images in official folders PART/CLASS, whose names tell the person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contract.source import PARTS, DataError
from bench.data.roots import stamp_images


@dataclass(frozen=True)
class Listed:
    """The images of all folders, one after the other.

    Args:
        paths, people, parts: Of each image.
        classes: Of each image, the number of its class.
        notes: How many files of another ending were left out; empty where none was.
    """

    paths: list[Path]
    people: list[str]
    classes: list[int]
    parts: list[str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ClassFolders:
    """The folders of a data set.

    Args:
        name: Of the data set, for messages.
        classes: The folders' names.
        example: An official file name, in which {0} stands for the class.
        person: The person that the stem of a file of a class names; None where the name has no official form.
        obtain: Where to get the data.
    """

    name: str
    classes: Sequence[str]
    example: str
    person: Callable[[str, str], str | None]
    obtain: str

    def check(self, top: Path) -> None:
        """Raise DataError unless the classes' folders are in train and in test."""
        missing = [
            f"{part}/{kind}" for part in ("train", "test") for kind in self.classes if not (top / part / kind).is_dir()
        ]
        if missing:
            named = f"{', '.join(self.classes[:-1])} and {self.classes[-1]}"
            raise DataError(
                f"{self.name}: expected the folders train and test, each with {named}, in {top}; "
                f"{', '.join(missing)} not found. {self.obtain}"
            )

    def listed(self, top: Path) -> Listed:
        """The .jpeg files; raises DataError for a folder without any and for names of no official form."""
        found = Listed([], [], [], [], ())
        left = 0
        for folder in self._folders(top):
            there = [path for path in folder.iterdir() if not path.name.startswith(".")]
            paths = sorted(path for path in there if path.suffix == ".jpeg")
            left += len(there) - len(paths)
            if not paths:
                raise DataError(f"{self.name}: expected *.jpeg files in {folder}, found none. {self.obtain}")
            people = [self.person(folder.name, path.stem) for path in paths]
            odd = [path.name for path, person in zip(paths, people, strict=True) if person is None]
            if odd:
                raise DataError(
                    f"{self.name}: expected official names such as {self.example.format(folder.name)} in {folder}, "
                    f"found {', '.join(odd[:5])} ({len(odd)} such files). Remove them, or use them as folder:PATH. "
                    f"{self.obtain}"
                )
            found.paths.extend(paths)
            found.people.extend(person for person in people if person is not None)
            found.classes.extend([list(self.classes).index(folder.name)] * len(paths))
            found.parts.extend([folder.parent.name] * len(paths))
        notes = (f"{left} files of another ending than .jpeg are left out",) if left else ()
        return Listed(found.paths, found.people, found.classes, found.parts, notes)

    def stamp(self, top: Path) -> str:
        """Numbers, names, sizes and times of the files in each folder."""
        return stamp_images(self._folders(top), top, self.obtain, sizes=True)

    def _folders(self, top: Path) -> list[Path]:
        folders = [top / part / kind for part in PARTS for kind in self.classes]
        return [folder for folder in folders if folder.is_dir()]
