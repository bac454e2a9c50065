"""Released images as DICOM Secondary Capture files.

Each file is a patient, a study and a series of its own with fresh random UIDs, without names, dates or numbers of the
raw one, so that nothing but pixels is in it. The de-identification codes (0012,0064) of DICOM PS3.15 name the Basic
Application Confidentiality Profile alone: its option Clean Pixel Data (113101) would say that somebody looked for text
in the pixels. Source: PS3.3 A.8.1 (Secondary Capture Image), C.12.1.1.7; PS3.15 table CID 7050.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

PROFILE = ("113100", "DCM", "Basic Application Confidentiality Profile")


def write_secondary_capture(path: Path, pixels: np.ndarray, *, number: int, made_by: str) -> None:
    """Write an image to a new file.

    Args:
        path: Of the file.
        pixels: (h, w) grey or (h, w, 3) colour, uint8.
        number: Of the released row, from 0; the file's instance number is one more.
        made_by: The program, at most 64 letters.
    """
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

    grey = pixels.ndim == 2
    data = Dataset()
    data.SpecificCharacterSet = "ISO_IR 192"
    data.SOPClassUID, data.SOPInstanceUID = SecondaryCaptureImageStorage, generate_uid(prefix=None)
    data.StudyInstanceUID, data.SeriesInstanceUID = generate_uid(prefix=None), generate_uid(prefix=None)
    data.PatientName, data.PatientID = f"Released^{number}", f"released-{number:06d}"
    data.PatientBirthDate = data.PatientSex = data.StudyDate = data.StudyTime = data.AccessionNumber = ""
    data.ReferringPhysicianName, data.StudyID = "", "1"
    data.Modality, data.ConversionType = "OT", "SYN"
    data.SeriesNumber, data.InstanceNumber = 1, number + 1
    data.Laterality, data.PatientOrientation = "", ""
    data.ImageType = ["DERIVED", "SECONDARY"]
    data.Manufacturer = made_by[:64]
    data.PatientIdentityRemoved = "YES"
    data.DeidentificationMethod = "Only pixels were taken over, in released form"
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = PROFILE
    data.DeidentificationMethodCodeSequence = [code]
    data.SamplesPerPixel = 1 if grey else 3
    data.PhotometricInterpretation = "MONOCHROME2" if grey else "RGB"
    if not grey:
        data.PlanarConfiguration = 0
    data.Rows, data.Columns = pixels.shape[:2]
    data.BitsAllocated = data.BitsStored = 8
    data.HighBit, data.PixelRepresentation = 7, 0
    content = np.ascontiguousarray(pixels, dtype=np.uint8).tobytes()
    data.PixelData = content + b"\0" * (len(content) % 2)
    data["PixelData"].VR = "OB"
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    data.save_as(path, enforce_file_format=True, overwrite=False)


def read_secondary_capture(path: Path) -> np.ndarray:
    """Pixels of such a file, uint8 (h, w) or (h, w, 3)."""
    import pydicom

    pixels: np.ndarray = pydicom.dcmread(path).pixel_array
    return pixels


def text_of(path: Path) -> str:
    """All text in a DICOM file but that of its UIDs."""
    import pydicom

    return " ".join(
        str(element.value)
        for element in pydicom.dcmread(path, stop_before_pixels=True).iterall()
        if element.VR not in ("UI", "SQ", "US", "OB", "OW")
    )
