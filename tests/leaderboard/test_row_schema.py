"""A field of the schema is declared once, and appears in every form of a row."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated

import pyarrow.parquet
import pytest
from made.board_records import auc, record, word

from bench.evidence import EVES_FORM, OWNERS_FORM, part_of
from leaderboard import api, row_schema
from leaderboard.api import Index
from leaderboard.downloads import files
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.pages import render
from leaderboard.row_schema import BoardRow, Shown, head, sharpened, shown


class Licensed(BoardRow):
    """The schema with one field more."""

    licence: Annotated[str, Shown("Licence", "Of the method's code")] = "MIT"


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Pages and downloads that are text, of one row under that schema."""
    for module in (row_schema, api):
        monkeypatch.setattr(module, "BoardRow", Licensed)
    edition = Edition.of(Intake((record("a", scores={"reid-auc": auc(0.6)}), word("a")), {}))
    (part,) = (one for one in files(edition) if one.name == "board.parquet")
    content = part.make()
    assert isinstance(content, bytes)
    column = pyarrow.parquet.read_table(io.BytesIO(content)).column("licence").to_pylist()
    texts = {name: page.make() for name, page in render(edition).items()}
    decoded = {name: text if isinstance(text, str) else text.decode("utf-8", "replace") for name, text in texts.items()}
    return decoded | {"row": edition.rows[0].id, "section": edition.rows[0].section, "parquet": str(column)}


def test_a_field_of_the_schema_appears_everywhere(pages: dict[str, str]) -> None:
    row, section = pages["row"], pages["section"]
    (line,) = csv.DictReader(io.StringIO(pages["board.csv"]))
    assert (line["licence"], pages["parquet"]) == ("MIT", "['MIT']")
    assert json.loads(pages[f"api/rows/{row}.json"])["licence"] == "MIT"
    described = json.loads(pages["api/schema/row.json"])["properties"]["licence"]
    assert (described["title"], described["description"]) == ("Licence", "Of the method's code")
    assert "licence" in [field["name"] for field in json.loads(pages["api/index.json"])["fields"]]
    assert '"licence":"MIT"' in pages[f"rows/{row}.js"]
    assert '"name":"licence"' in pages["rows/schema.js"]
    for name in ("board.html", f"data/{section}.html", "methods/a.html"):
        assert 'data-c="licence" data-first="up" title="Of the method&#39;s code">Licence</th>' in pages[name]
        assert '<td class="c-licence aside off" data-s="MIT">MIT</td>' in pages[name]
    assert "<dt>Licence</dt><dd>MIT</dd>" in pages[f"cells/{row}.html"]
    (paper,) = (text for name, text in pages.items() if name.endswith(".tex"))
    assert "Licence" in paper
    assert "& MIT" in paper
    assert "licence MIT" in pages["feed.xml"]


def test_every_shown_field_has_a_heading_of_its_own() -> None:
    titles = [mark.title for _, mark in shown()]
    assert len(titles) == len(set(titles)) > 20
    assert [mark.order for _, mark in shown()] == sorted(mark.order for _, mark in shown())


def test_the_index_has_rows_without_details() -> None:
    (row,) = Edition.of(Intake((record("a", scores={"reid-auc": auc(0.6)}), word("a")), {})).rows
    assert head(row, figures=False).figures == {}
    assert list(head(row, figures=True).figures) == ["reid-auc"]
    content = api.head_data(row, figures=True)
    assert "command" not in content
    assert BoardRow.model_validate(content).figures["reid-auc"].value == 0.6
    assert Index.model_json_schema()["$defs"]["BoardRow"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("own", "owners", "expected"), [(0.4, 0.0001, True), (0.0001, 0.0001, False), (0.0001, 0.4, False)]
)
@pytest.mark.parametrize("finding", ["", "classes"])
def test_a_row_says_if_only_simulations_of_the_owners_form_break_it(
    finding: str, own: float, owners: float, expected: bool
) -> None:
    parts = {part_of(finding, EVES_FORM): auc(0.6).model_copy(update={"p": own}),
             part_of(finding, OWNERS_FORM): auc(0.9).model_copy(update={"p": owners})}  # fmt: skip
    made = record("a", "relational", {"reid-auc": auc(0.9).model_copy(update={"parts": parts})})
    assert sharpened(made) == expected
    (row,) = Edition.of(Intake((made, word("a")), {})).rows
    said = f"broken by attacks {OWNERS_FORM}, not by their own: relational"
    assert (said in row.marks) == expected
