"""Lists of names in text files, a name a line."""

from __future__ import annotations

from pathlib import Path

from bench.contract.source import DataError
from bench.data.impostor import impostor


def lines(path: Path, obtain: str) -> list[str]:
    """The lines of a list that are not blank; DataError where there is no such list, with `obtain`."""
    if not path.exists():
        raise DataError(f"expected {path}, found none. {obtain}")
    wrong = impostor(path)
    if wrong:
        raise DataError(f"{path}: expected a list, found {wrong}. {obtain}")
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected a list, found bytes that are no text ({error}). {obtain}") from error
