"""CelebA (Liu et al. 2015) in torchvision's layout: celeba/img_align_celeba/*.jpg with identity_CelebA.txt,
list_attr_celeba.txt and list_eval_partition.txt.

Identities are the people. Attributes of the list (Smiling, Eyeglasses, ...) are findings; `Male` tells the sex for
figures by group. Images are resized to 128 x 128 pixels, as in Tölle et al. 2022 (CADP), and not cropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import PARTS, DataError, Official, Scan
from bench.data.csv_tables import read_list, tasks_of
from bench.data.raw_files import FileSource, of_row, present

_IMAGES = "img_align_celeba"
_IDENTITIES, _ATTRIBUTES, _PARTITION = "identity_CelebA.txt", "list_attr_celeba.txt", "list_eval_partition.txt"
_ROWS, _PEOPLE = 202_599, 10_177


@dataclass(frozen=True)
class CelebA(FileSource):
    """Faces of celebrities with forty attributes.

    Args:
        tasks: Attributes, joined by "+"; columns of list_attr_celeba.txt.
    """

    tasks: str = "Smiling"

    name: ClassVar[str] = "celeba"
    title: ClassVar[str] = "CelebA"
    source: ClassVar[str] = "Liu, Luo, Wang, Tang 2015, ICCV, doi:10.1109/ICCV.2015.425"
    public: ClassVar[str] = "celeba"
    origin: ClassVar[str] = "celeba"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "non-commercial research; images may not be published or passed on"
    obtain: ClassVar[str] = (
        f"Get img_align_celeba.zip, {_IDENTITIES}, {_ATTRIBUTES} and {_PARTITION} from "
        "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (or by torchvision.datasets.CelebA), and unpack the archive "
        "beside the lists in a folder celeba."
    )
    default_size: ClassVar[int | None] = 128
    folders: ClassVar[tuple[str, ...]] = ("CelebA", "celeba/celeba")
    markers: ClassVar[tuple[str, ...]] = (_ATTRIBUTES,)
    required: ClassVar[tuple[str, ...]] = (_IMAGES, _IDENTITIES, _PARTITION)
    tables: ClassVar[tuple[str, ...]] = (_IDENTITIES, _ATTRIBUTES, _PARTITION)
    images: ClassVar[tuple[str, ...]] = (_IMAGES,)

    def __post_init__(self) -> None:
        tasks_of(self.tasks, "attributes")

    @property
    def _findings(self) -> tuple[str, ...]:
        return tasks_of(self.tasks, "attributes")

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        identities = self._pairs(top / _IDENTITIES)
        partition = self._pairs(top / _PARTITION)
        names, marks, male = self._attributes(top / _ATTRIBUTES)
        lists = {_IDENTITIES: identities, _PARTITION: partition}
        for listed, pairs in lists.items():
            if set(pairs) != set(names):
                raise DataError(
                    f"{top / listed}: expected the {len(names)} images of {_ATTRIBUTES}, found {len(pairs)}; "
                    f"{len(set(pairs) - set(names))} are not in it. {self.obtain}"
                )
        odd = [name for name in names if partition[name] not in ("0", "1", "2")]
        if odd:
            raise DataError(
                f"{top / _PARTITION}: expected 0, 1 or 2 beside each image, found {partition[odd[0]]!r} beside "
                f"{odd[0]} ({len(odd)} such lines). {self.obtain}"
            )
        paths = [top / _IMAGES / name for name in names]
        here = present(paths, name=self.name, where=f"{top / _IMAGES}/*.jpg", obtain=self.obtain)
        return Scan(
            labels=marks[here.rows],
            subjects=of_row([identities[name] for name in names], here.rows),
            findings=self._findings,
            exclusive=False,
            paths=here.paths,
            channels=3,
            folder=top,
            version="aligned and cropped",
            notes=here.notes,
            attributes={"sex": of_row(["M" if man else "F" for man in male], here.rows)},
            parts=of_row([PARTS[int(partition[name])] for name in names], here.rows),
            official=(
                Official("listed images", len(names), (_ROWS,)),
                Official("identities", len(set(identities.values())), (_PEOPLE,)),
            ),
        )

    def _pairs(self, path: Path) -> dict[str, str]:
        """The second word of each line, by image."""
        pairs: dict[str, str] = {}
        for number, line in enumerate(read_list(path, self.obtain), start=1):
            cells = line.split()
            if len(cells) != 2 or cells[0] in pairs or "/" in cells[0]:
                raise DataError(
                    f"{path}: line {number}: expected an image and a number, each image once, got {line[:60]!r}. "
                    f"{self.obtain}"
                )
            pairs[cells[0]] = cells[1]
        return pairs

    def _attributes(self, path: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Images, labels (n, k) float32, and (n,) bool for men."""
        listed = read_list(path, self.obtain)
        columns = listed[1].split() if len(listed) > 2 else []
        missing = [task for task in (*self._findings, "Male") if task not in columns]
        if missing or len(set(columns)) < len(columns) or not listed[0].isdecimal():
            raise DataError(
                f"{path}: expected a number of images and then the names of attributes, {', '.join(missing) or 'each'} "
                f"among them, each once; found {', '.join(columns)[:200] or 'none'}. {self.obtain}"
            )
        rows = [line.split() for line in listed[2:]]
        first = {cells[0]: number for number, cells in reversed([*enumerate(rows, start=3)])}
        odd = [
            number
            for number, cells in enumerate(rows, start=3)
            if len(cells) != len(columns) + 1
            or not {"1", "-1"}.issuperset(cells[1:])
            or "/" in cells[0]
            or first[cells[0]] != number
        ]
        if odd or len(rows) != int(listed[0]):
            raise DataError(
                f"{path}: expected {listed[0]} images, each once, with {len(columns)} numbers of 1 or -1, found "
                f"{len(rows)}; {len(odd)} are other lines{f', first line {odd[0]}' if odd else ''}. "
                f"{self.obtain}"
            )
        marks = np.array(
            [[cells[1 + columns.index(task)] == "1" for task in (*self._findings, "Male")] for cells in rows]
        )
        return [cells[0] for cells in rows], marks[:, :-1].astype(np.float32), marks[:, -1]
