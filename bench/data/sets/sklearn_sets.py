"""Data sets inside scikit-learn: handwritten digits (images) and diabetes (a table)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from bench.contract.source import Scan, Source
from bench.validation import one_of

MEASUREMENTS = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


@dataclass(frozen=True)
class Digits(Source):
    """1,797 handwritten digits, 8x8 grey, ten exclusive classes; the writers are unknown."""

    name: ClassVar[str] = "digits"
    title: ClassVar[str] = "Optical recognition of handwritten digits"
    source: ClassVar[str] = "Alpaydin and Kaynak (1998), UCI; test part, as in sklearn.datasets.load_digits"
    public: ClassVar[str] = "digits"
    origin: ClassVar[str] = "digits"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY 4.0"
    obtain: ClassVar[str] = "comes with scikit-learn"
    default_size: ClassVar[int | None] = None

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """Read the images; grey values 0 to 16 become 0 to 255."""
        from sklearn.datasets import load_digits  # takes a second; only for those who ask for it

        bunch = load_digits()
        samples = np.rint(bunch.images[:, None] * (255.0 / 16.0)).astype(np.uint8)
        labels = (bunch.target[:, None] == np.arange(10)[None, :]).astype(np.float32)
        return Scan(
            labels=labels,
            subjects=None,
            findings=tuple(str(digit) for digit in range(10)),
            exclusive=True,
            samples=samples,
            version="scikit-learn, UCI test part",
        )


@dataclass(frozen=True)
class Diabetes(Source):
    """442 patients, ten raw measurements; finding: progression after a year above median.

    Columns: age (years), sex (1 or 2), body mass index (kg/m2), mean arterial pressure (mmHg), and six blood serum
    values (total cholesterol, LDL, HDL, total/HDL, log of triglycerides, glucose). One row is one patient.

    Args:
        target: "label": progression is the finding alone. "column": the raw measure of progression (25 to 346) is an
            eleventh column too, so that what is learned about it can be read off; it gives the finding away.
    """

    name: ClassVar[str] = "diabetes"
    title: ClassVar[str] = "Diabetes progression"
    source: ClassVar[str] = "Efron et al., Least angle regression (2004), as in sklearn.datasets.load_diabetes"
    public: ClassVar[str] = "diabetes"
    origin: ClassVar[str] = "diabetes"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "published with the paper; distributed under scikit-learn's BSD licence"
    obtain: ClassVar[str] = "comes with scikit-learn"
    default_size: ClassVar[int | None] = None

    target: Literal["label", "column"] = "label"

    def __post_init__(self) -> None:
        one_of(("label", "column"), target=self.target)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names as scikit-learn has them, then "progression" if it is a column."""
        return (*MEASUREMENTS, "progression") if self.target == "column" else MEASUREMENTS

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """Read the table in its own units (not scaled)."""
        from sklearn.datasets import load_diabetes  # takes a second; only for those who ask for it

        bunch = load_diabetes(scaled=False)
        labels = (bunch.target > np.median(bunch.target)).astype(np.float32)[:, None]
        samples = np.column_stack((bunch.data, bunch.target)) if self.target == "column" else bunch.data
        return Scan(
            labels=labels,
            subjects=None,
            findings=("progression above median",),
            exclusive=False,
            samples=samples.astype(np.float32),
            version="scikit-learn, unscaled",
            notes=("columns: " + ", ".join(self.columns),),
            name=f"{self.name}:column" if self.target == "column" else "",
        )
