"""Small trees in the official layouts of data sets, and their pictures and DICOM files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid


def noise(number: int, *shape: int, most: int = 255) -> np.ndarray:
    """Noise of uint8, or of uint16 where `most` needs it."""
    kind = np.uint8 if most < 256 else np.uint16
    return np.random.default_rng(number).integers(0, most + 1, shape).astype(kind)


def picture(path: Path, number: int, *shape: int) -> Path:
    """A picture of noise (20 x 30 grey unless told), its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(number, *(shape or (20, 30)))).save(path)
    return path


def table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """A CSV table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(columns), *(",".join(map(_cell, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _cell(value: object) -> str:
    text = str(value)
    return f'"{text}"' if "," in text else text


def listing(path: Path, pairs: Mapping[str, object]) -> Path:
    """A list of names with something beside each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} {value}\n" for name, value in pairs.items()), encoding="utf-8")
    return path


def dicom(path: Path, values: np.ndarray, *, bits: int = 12, **more: object) -> Path:
    """A grey image of uint8, uint16 or int16 values, written uncompressed; `more` sets other elements by keyword."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[path.name])
    file = FileDataset(str(path), Dataset(), file_meta=meta, preamble=bytes(128))
    file.Rows, file.Columns = values.shape
    file.SamplesPerPixel = 1
    file.PhotometricInterpretation = "MONOCHROME2"
    file.BitsAllocated, file.BitsStored, file.HighBit = 8 * values.dtype.itemsize, bits, bits - 1
    file.PixelRepresentation = int(values.dtype.kind == "i")
    file.PixelData = values.tobytes() + bytes(values.nbytes % 2)
    for name, value in more.items():
        setattr(file, name, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    file.save_as(path, enforce_file_format=True)
    return path
