"""OCTDL (Kulyabin et al. 2024): 2,064 B-scans of the retina.

One disease a scan. The official layout:
OCTDL/<disease>/<file_name>.jpg, with OCTDL_labels.csv in that folder or beside it.

The files are grey images stored in colour; they become grey again. People are the column `patient_id`. Sub-categories,
conditions, sides and ages of the table are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import DataError, Official, Scan, Source
from bench.data.csv_tables import read_table, refuse
from bench.data.raw_files import listed, locate, stamp_files, stamp_images

_TABLE = "OCTDL_labels.csv"
_DISEASES = {
    "AMD": "age-related macular degeneration",
    "DME": "diabetic macular edema",
    "ERM": "epiretinal membrane",
    "NO": "normal",
    "RAO": "retinal artery occlusion",
    "RVO": "retinal vein occlusion",
    "VID": "vitreomacular interface disease",
}
_ROWS = 2064


@dataclass(frozen=True)
class OCTDL(Source):
    """Optical coherence tomography of the retina, seven classes of unequal size."""

    name: ClassVar[str] = "octdl"
    title: ClassVar[str] = "OCTDL retinal tomography"
    source: ClassVar[str] = "Kulyabin et al. 2024, Scientific Data 11:365, doi:10.17632/sncdhf53xc"
    public: ClassVar[str] = "octdl"
    origin: ClassVar[str] = "octdl"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY 4.0"
    obtain: ClassVar[str] = (
        f"Get OCTDL.zip and {_TABLE} from https://data.mendeley.com/datasets/sncdhf53xc/4, unpack the archive, keeping "
        f"its folder OCTDL, and put the table beside that folder."
    )
    default_size: ClassVar[int | None] = 64

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top, images = self._places(roots)
        table = read_table(top / _TABLE, ("file_name", "disease", "patient_id"), optional=("sex",), obtain=self.obtain)
        odd = ~table["disease"].isin(list(_DISEASES))
        refuse(odd, top / _TABLE, f"expected a disease among {', '.join(_DISEASES)}", self.obtain)
        refuse(table["file_name"].duplicated(), top / _TABLE, "an image listed a second time", self.obtain)
        folders = [images / disease for disease in _DISEASES if (images / disease).is_dir()]
        here = {path for folder in folders for path in listed(folder)[0] if path.suffix == ".jpg"}
        paths = [
            images / disease / f"{name}.jpg" for name, disease in zip(table["file_name"], table["disease"], strict=True)
        ]
        missing = [f"{path.parent.name}/{path.name}" for path in paths if path not in here]
        if missing:
            raise DataError(
                f"{self.name}: {len(missing)} of {len(table)} images listed in {top / _TABLE} were not found in "
                f"{images}, first {missing[0]}. {self.obtain}"
            )
        unlisted = len(here - set(paths))
        classes = [list(_DISEASES).index(disease) for disease in table["disease"]]
        return Scan(
            labels=np.eye(len(_DISEASES), dtype=np.float32)[classes],
            subjects=list(table["patient_id"]),
            findings=tuple(_DISEASES.values()),
            exclusive=True,
            paths=paths,
            folder=images,
            notes=(f"{unlisted} images that the table does not list are left out",) if unlisted else (),
            attributes={"sex": list(table["sex"])} if "sex" in table else {},
            official=(Official("rows", len(table), (_ROWS,)),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Sizes and times of the table and the images."""
        top, images = self._places(roots)
        folders = [images / disease for disease in _DISEASES]
        return f"{stamp_files([top / _TABLE])}\n{stamp_images(folders, images, self.obtain, sizes=True)}"

    def _places(self, roots: Sequence[Path]) -> tuple[Path, Path]:
        """The folder of the table, and that of the class folders."""
        folders = ("OCTDL", "OCTDL/OCTDL")
        top = locate(roots, name=self.name, folders=folders, markers=(_TABLE,), obtain=self.obtain)
        images = next((folder for folder in (top / "OCTDL", top) if (folder / "AMD").is_dir()), None)
        if images is None:
            raise DataError(
                f"{self.name}: expected the folder OCTDL with {', '.join(_DISEASES)} in or beside {top}, found none. "
                f"{self.obtain}"
            )
        missing = [disease for disease in _DISEASES if not (images / disease).is_dir()]
        if missing:
            raise DataError(
                f"{self.name}: expected one folder a disease in {images}, {', '.join(missing)} not found. {self.obtain}"
            )
        return top, images
