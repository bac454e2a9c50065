"""Labels as the tables of chest X-rays write them: 1.0, 0.0, -1.0 for uncertain, or nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bench.contract.source import DataError

MARKS = {"1.0": 1.0, "1": 1.0, "0.0": 0.0, "0": 0.0, "-1.0": np.nan, "-1": np.nan, "": np.nan}


def read_marks(path: Path, cells: pd.Series[str]) -> pd.Series[float]:
    """The labels of one column: 1, 0, NaN for uncertain and for blank.

    Raises:
        DataError: A cell that is none of these; the text names its line, and does not repeat it.
    """
    odd = cells.index[~cells.isin(list(MARKS))]
    if len(odd):
        raise DataError(
            f"{path.name}: line {odd[0]}, column {cells.name}: expected 1.0, 0.0, -1.0 or blank, found something else "
            f"({len(odd)} such cells). Mend or fetch the table again"
        )
    return cells.map(MARKS).astype(float)
