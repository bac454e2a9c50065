"""Parameters of plug-ins from outside that their author calls confidential: in no record, and yet a record's key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made.cells import opened

from bench.data import example_release
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.workbench.inputs import plugin_record

READER = """
from dataclasses import dataclass
from typing import ClassVar
from attacks.nearest_neighbour import NearestNeighbour

@dataclass(frozen=True)
class Reader(NearestNeighbour):
    name: ClassVar[str] = "reader"
    confidential: ClassVar[frozenset[str]] = frozenset({"weights"})
    weights: str = ""
"""


@pytest.fixture
def reader(tmp_path: Path) -> str:
    (tmp_path / "reader.py").write_text(READER, encoding="utf-8")
    return f"{tmp_path / 'reader.py'}:Reader"


def test_what_is_confidential_is_in_no_record_and_its_content_in_the_key(reader: str, tmp_path: Path) -> None:
    files = [tmp_path / "jane-doe.bin", tmp_path / "john-doe.bin"]
    for file in files:
        file.write_text(file.name, encoding="utf-8")
    made = [plugin_record(configure("attacks", f"{reader}[weights={file}]", "smoke")) for file in files]
    for record in made:
        assert "weights" not in record.parameters
        assert "-doe" not in json.dumps(record.model_dump(mode="json"))
        assert "weights=WEIGHTS" in record.written
    assert made[0].code != made[1].code


@pytest.mark.parametrize("value", ["a-password", "relative.bin", "/nowhere/at/all"])
def test_a_confidential_value_that_no_record_could_tell_from_another_is_refused(reader: str, value: str) -> None:
    with pytest.raises(UsageError, match=r"weights is confidential, .* file or a folder by its full path") as refused:
        configure("attacks", f"{reader}[weights={value}]", "smoke")
    assert value not in str(refused.value).partition("has a description")[2]
    assert plugin_record(configure("attacks", reader, "smoke")).written.endswith("Reader")


def test_keys_of_an_imported_release_do_not_depend_on_where_its_folder_lies(tmp_path: Path) -> None:
    """Else a verifier, who has the folder in another place, could not measure again what an author did."""
    for place in ("here", "there"):
        for path, content in example_release.files().items():
            (tmp_path / place / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / path).write_bytes(content)
    first, second = (
        opened(tmp_path, method, rows_of=method)
        for method in (f"imported[path={tmp_path / place}]" for place in ("here", "there"))
    )
    assert first.secret("seal", 0).content == second.secret("seal", 0).content
