"""Small DICOM files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid


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
