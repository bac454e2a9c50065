"""Every form in which the numbers go out holds the same numbers, reads as what it is, and nothing of it runs."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mlcroissant
import pyarrow.parquet
import pytest
import yaml
from made.board_records import auc, claim, dataset, guesswork, keyed, metric, plugin, record, score, utility
from made.results_folders import NAMES
from pydantic import BaseModel

from bench.results.record_parts import ReplicatesRecord
from bench.results.records import Record, dumps, loads, picture_record, proved
from leaderboard import tables
from leaderboard.api import Index
from leaderboard.downloads import files, links
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.names import slug
from leaderboard.row_schema import BoardRow

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"


def shown(*records: Record) -> Edition:
    return Edition.of(Intake(tuple(map(proved, records)), {}))


def made(*records: Record) -> dict[str, str | bytes]:
    return {each.name: each.make() for each in files(shown(*records))}


def text(found: dict[str, str | bytes], name: str) -> str:
    content = found[name]
    if isinstance(content, bytes):
        return (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    return content


def lines(found: dict[str, str | bytes], name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(found, name), newline="")))


def some() -> list[Record]:
    return [
        record("dp-simple", scores={"guesswork": guesswork(2), "reid-auc": auc(0.9)}, parameters={"scale": 20.0},
               claim=claim(None, 20.0), scheme={"caveat": "a small network: the paper's size has not run"}),
        record("dp-simple", "utility", {"utility-auc": utility(0.8, Edema=0.83)}, kind="utility",
               parameters={"scale": 20.0}, claim=claim(None, 20.0)),
        record("noise", status="failed", phase="fit", reason="no memory"),
        record("noise", seed=1, not_applicable={"top-1": "no links"}, scores={"reid-auc": auc(0.5)}),
    ]  # fmt: skip


def hostile(name: str) -> list[Record]:
    evil = metric(name, meaning=name, group=name, chance=name)
    more: dict[str, Any] = {
        "dataset": dataset(name, findings=[name], notes=[name]), "parameters": {name: name},
        "hardware": {"processor": name},
        "metrics": {"reid-auc": evil, name: evil}, "scheme": {"caveat": name},
    }  # fmt: skip
    noted = auc(0.9).model_copy(update={"note": name, "unit": name, "parts": {name: auc(0.8)}})
    return [
        record(name, scores={"reid-auc": noted, name: score(1.0)}, **more),
        record(name, "other", status="failed", reason=name, phase=name, **more),
    ]


def test_the_long_table_has_a_line_a_figure_and_a_part_and_a_reason_where_there_is_none() -> None:
    found = lines(made(*some()), "results.csv.gz")
    assert [(each["metric"], each["part"], each["value"]) for each in found if each["kind"] == "utility"] == [
        ("utility-auc", "", "0.8"), ("utility-auc", "Edema", "0.83"),
    ]  # fmt: skip
    assert [(each["status"], each["metric"], each["value"], each["reason"]) for each in found if each["reason"]] == [
        ("failed", "", "", "no memory (in fit)"), ("not-applicable", "top-1", "", "no links"),
    ]  # fmt: skip


def test_the_wide_table_has_the_figures_of_the_board() -> None:
    board = shown(*some())
    found = {each["row"]: each for each in lines({e.name: e.make() for e in files(board)}, "board.csv")}
    for row in board.taken.rows:
        for name, entry in row.entries.items():
            value = found[row.id][name]
            assert (float(value) == entry.score.value) if entry.score else value == ""
            assert (found[row.id][f"{name}: missing"] == "") == (entry.score is not None)
    (private,) = (each for each in found.values() if each["method"].startswith("dp-simple"))
    assert (private["claimed epsilon"], private["derived epsilon"]) == ("inf", "20.0")
    assert (private["tier"], private["caveat"]) == ("self-reported", "a small network: the paper's size has not run")


def test_parquet_holds_what_csv_holds_with_types() -> None:
    found = made(*some())
    for name in ("board", "results"):
        content = found[f"{name}.parquet"]
        assert isinstance(content, bytes)
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        plain = lines(found, {"board": "board.csv", "results": "results.csv.gz"}[name])
        assert table.column_names == list(plain[0])
        for line, other in zip(table.to_pylist(), plain, strict=True):
            assert {key: "" if value is None else str(value) for key, value in line.items()} == other
    assert str(table.schema.field("value").type) == "double"
    assert str(table.schema.field("seed").type) == "int64"


def test_without_the_package_that_writes_parquet_none_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    assert not any("parquet" in name for name in made(*some()))
    assert not any("parquet" in link.path for link in links(shown(*some())))


def test_a_metric_called_like_a_column_of_the_row_does_not_take_its_place() -> None:
    described = {"dataset": metric("Evil"), "row": metric("Evil")}
    (line,) = lines(made(record(scores={"dataset": score(7.0), "row": score(8.0)}, metrics=described)), "board.csv")
    assert (line["dataset"], line["dataset (metric)"], line["row (metric)"]) == ("synth-cxr", "7.0", "8.0")


def test_the_api_has_a_file_a_row_and_every_record_as_it_was_written() -> None:
    board = shown(*some())
    found = {each.name: each.make() for each in files(board)}
    index = Index.model_validate_json(text(found, "api/index.json"))
    assert len(index.rows) == len(board.taken.rows) == 3
    assert [column.name for column in index.columns] == [column.name for column in board.columns]
    records = {record.digest: record for record in board.taken.records}
    for head in index.rows:
        row = BoardRow.model_validate_json(text(found, head.file))
        assert row.id == head.id
        for address in row.records.values():
            kept = records.pop(loads(text(found, address), address).digest)
            assert text(found, address) == dumps(kept)
    assert records == {}
    for name in ("index", "row", "record"):
        assert json.loads(text(found, index.schemas[name]))["type"] == "object"


def test_two_records_of_a_row_never_share_a_file() -> None:
    posing = slug("reidentification-A")
    board = shown(record("a", "reidentification-A"), record("a", posing))
    found = [each.name for each in files(board)]
    assert len(found) == len(set(found))


def test_a_carriage_return_ends_no_line_of_a_table() -> None:
    """Reasons hold what a program printed, and progress bars end in one."""
    found = made(record("a", status="failed", reason="10 %\r100 %\rout of memory"))
    read = list(csv.reader(io.StringIO(text(found, "board.csv"), newline="")))
    assert [len(line) for line in read] == [len(read[0])] * 2
    (told,) = lines(found, "results.csv.gz")
    assert told["reason"] == "10 %\r100 %\rout of memory"
    assert "\r\n" not in text(found, "board.csv")


def test_replicates_for_paired_comparison_go_out_with_the_records() -> None:
    replicates = ReplicatesRecord(by_key=[0.9, 0.8], resampled="AAAAAAAAAAAAAAAAAAAAAA==", degrees=3.0, people="0" * 16,
                                  scale="plain")  # fmt: skip
    figure = auc(0.9).model_copy(update={"replicates": replicates})
    found = made(record(scores={"reid-auc": figure}))
    (address,) = (name for name in found if name.startswith("api/records/"))
    assert loads(text(found, address), address).scores["reid-auc"].replicates == replicates


def test_a_row_says_why_a_figure_is_missing() -> None:
    found = made(*some())
    rows = [BoardRow.model_validate_json(text(found, name)) for name in found if name.startswith("api/rows/")]
    (failed,) = (row for row in rows if row.method == "noise" and row.seed == 0)
    assert failed.figures["reid-auc"].status == "failed"
    assert "no memory" in failed.figures["reid-auc"].reason
    assert failed.figures["reid-auc"].value is None


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_stay_names_in_every_form(name: str) -> None:
    found = made(*hostile(name))
    for path in found:
        assert re.fullmatch(r"[A-Za-z0-9._/-]+", path), path
        assert ".." not in path
    for path in ("board.csv", "results.csv.gz"):
        for line in csv.reader(io.StringIO(text(found, path), newline="")):
            assert not any(place[:1] in "=+@|\t\r" and place for place in line)
    root = ElementTree.fromstring(text(found, "feed.xml"))
    assert {each.tag for each in root.iter()} <= {ATOM + tag for tag in (
        "feed", "title", "id", "updated", "author", "name", "link", "entry", "summary")}  # fmt: skip
    for link in root.iter(f"{ATOM}link"):
        assert re.fullmatch(r"index\.html|cells/[a-z0-9-]+\.html|api/rows/[a-z0-9-]+\.json", link.attrib["href"])
    for path in (each for each in found if each.endswith(".svg")):
        picture = ElementTree.fromstring(text(found, path))
        assert {each.tag for each in picture.iter()} == {SVG + tag for tag in ("svg", "title", "rect", "g", "text")}
        assert not any(key.startswith("on") or "href" in key for each in picture.iter() for key in each.attrib)
    for path in (each for each in found if each.endswith(".tex")):
        ends = [line for line in text(found, path).splitlines() if line.startswith(r"\end{")]
        assert ends == [r"\end{tabular}", r"\end{table}"]
    entries = text(found, "citations.bib")
    assert entries.count("{") == entries.count("}")
    assert len(re.findall(r"^@misc\{[a-z0-9-]+,$", entries, re.MULTILINE)) == entries.count("\n}") == 4
    assert yaml.safe_load(text(found, "CITATION.cff"))["type"] == "dataset"
    for path in (each for each in found if each.startswith("badges/") and each.endswith(".json")):
        badge = json.loads(text(found, path))
        assert (badge["schemaVersion"], set(badge)) == (1, {"schemaVersion", "label", "message", "color"})
        assert len(badge["message"]) < 80


def test_a_badge_says_no_more_than_the_board() -> None:
    found = made(record("dp-simple", scores={"guesswork": guesswork(200), "reid-auc": auc(0.5)}))
    (badge,) = (json.loads(text(found, name)) for name in found if name.startswith("badges/") and name.endswith("json"))
    assert badge["message"] == "not rated · synth-cxr quick · self-reported"
    assert badge["color"] == "5b636b"


def test_a_reference_method_wears_no_verdict() -> None:
    reference = plugin("noise", {}).model_copy(update={"role": "keeps nothing"})
    plain = record("noise", scores={"guesswork": guesswork(200), "reid-auc": auc(0.5)})
    found = made(keyed(plain, method=reference))
    (badge,) = (json.loads(text(found, name)) for name in found if name.startswith("badges/") and name.endswith("json"))
    assert badge["message"].startswith("reference · ")
    assert badge["color"] == "5b636b"


def test_the_feed_names_the_newest_rows_first_and_an_altered_row_anew() -> None:
    old, new = record("old", created="2024-01-01T00:00:00+00:00"), record("new", created="2025-01-01T00:00:00+00:00")
    first, again = (ElementTree.fromstring(text(made(*pair), "feed.xml")) for pair in ((old, new), (new, old)))
    titles = [each.text for each in first.iterfind(f"{ATOM}entry/{ATOM}title")]
    assert titles == ["new on synth-cxr", "old on synth-cxr"]
    assert ElementTree.tostring(first) == ElementTree.tostring(again)
    changed = ElementTree.fromstring(text(made(old, new.model_copy(update={"git": "other"})), "feed.xml"))
    names = [[each.text for each in feed.iterfind(f"{ATOM}entry/{ATOM}id")] for feed in (first, changed)]
    assert names[0][0] != names[1][0]
    assert names[0][1] == names[1][1]
    assert first.findtext(f"{ATOM}updated") == "2025-01-01T00:00:00Z"


def test_a_citation_names_the_snapshot() -> None:
    one, other = (yaml.safe_load(text(made(*records), "CITATION.cff")) for records in (some(), some()[1:]))
    assert one["version"] != other["version"]
    assert one["identifiers"][0]["value"].startswith(f"sha256:{one['version']}")
    assert one["date-released"] == "2025-01-02"


def test_the_croissant_file_names_each_table_with_its_hash_and_columns() -> None:
    found = made(*some())
    card = json.loads(text(found, "croissant.json"))
    for file in card["distribution"]:
        content = found[file["contentUrl"]]
        assert isinstance(content, bytes)
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
    assert {file["contentUrl"] for file in card["distribution"]} >= {"board.csv", "results.csv.gz"}
    (table,) = card["recordSet"]
    columns = [field["source"]["extract"]["column"] for field in table["field"]]
    assert columns == text(found, "board.csv").splitlines()[0].split(",")
    assert sum(name.startswith("rai:") for name in card) >= 5


def test_the_croissant_file_is_valid_and_its_records_can_be_read(tmp_path: Path) -> None:
    for name, content in made(*some()).items():
        if name in ("croissant.json", "board.csv", "results.csv.gz"):
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    card = mlcroissant.Dataset(jsonld=str(tmp_path / "croissant.json"))
    assert not card.metadata.issues.errors
    records = list(card.records("board"))
    assert len(records) == len(text(made(*some()), "board.csv").splitlines()) - 1


def test_images_of_a_snapshot_are_credited_to_their_owners_and_are_not_under_the_licence_of_the_figures() -> None:
    one = keyed(record("cadp", "sets", kind="sets", dataset=dataset("kermany-cxr"), cell="kermany-cxr/one",
                       pictures={"release": picture_record(b"png", "What it shows")}))  # fmt: skip
    one = one.model_copy(update={"choice": {**one.choice, "dataset": "kermany-cxr"}})
    pictured = Edition.of(Intake((proved(one),), {}, pictures={(one.cell, "sets", "release"): b"png"}))
    for edition, credited in ((pictured, True), (shown(one), False)):
        found = {each.name: each.make() for each in files(edition)}
        card = json.loads(text(found, "croissant.json"))
        told = " ".join(card["rai:personalSensitiveInformation"])
        assert ("10.17632/rscbjbr9sj). Licence: CC BY 4.0." in told) == credited
        assert told.startswith("Figures alone") == (not credited)
        assert told in json.loads(text(found, "zenodo.json"))["metadata"]["notes"]
        assert card["license"] == "https://spdx.org/licenses/Apache-2.0.html"


def test_the_deposit_names_the_snapshot_and_no_author_but_the_project() -> None:
    edition = shown(*some())
    told = json.loads(text(made(*some()), "zenodo.json"))["metadata"]
    assert edition.snapshot in told["notes"]
    assert told["creators"] == [{"name": "The Veil Bench developers"}]
    assert told["upload_type"] == "dataset"
    assert f"{len(edition.rows)} rows" in told["description"]


def test_what_pages_link_to_is_what_is_made() -> None:
    board = shown(*some())
    found = {each.name for each in files(board)}
    offered = [link.path for link in links(board)]
    assert set(offered) - found == {"board-manifest.json"}  # of all boards, written with the site
    assert len(offered) == len(set(offered))
    single = ("api/rows/", "api/records/", "badges/")
    assert {name for name in found if not name.startswith(single)} <= set(offered)


def test_an_empty_board_has_its_files_too() -> None:
    found = made()
    assert ElementTree.fromstring(text(found, "feed.xml")).find(f"{ATOM}entry") is None
    assert Index.model_validate_json(text(found, "api/index.json")).rows == []
    assert "date-released" not in yaml.safe_load(text(found, "CITATION.cff"))


def test_the_schemas_know_every_field() -> None:
    for model in (Index, BoardRow):
        assert issubclass(model, BaseModel)
        assert model.model_json_schema()["additionalProperties"] is False


def lines_of(count: int) -> tables.Table:
    return tables.Table({"dataset": str, "value": int}, [(f"data-{place // 40}", place) for place in range(count)])


def test_a_table_that_is_long_stands_in_parts_that_hold_it_once_and_say_of_what() -> None:
    whole = lines_of(100)
    (alone,) = tables.in_parts("board", whole)
    assert alone.name == "board.csv"
    for compress in (False, True):
        parts = tables.in_parts("board", whole, compress=compress, most=300)
        assert len(parts) > 2
        assert [line for part in parts for line in part.table.lines] == whole.lines
        assert [part.stem for part in parts] == [f"board-{number}" for number in range(1, len(parts) + 1)]
        assert parts[0].values("dataset") == ["data-0"]
    assert all(len(part.content) <= 300 for part in tables.in_parts("board", whole, most_bytes=300))
    halved = tables.in_parts("board", whole, compress=True, most=10_000, most_bytes=100)
    assert len(halved) > 1
    assert all(len(part.content) <= 100 or len(part.table.lines) == 1 for part in halved)
    assert [line for part in halved for line in part.table.lines] == whole.lines


def test_a_line_longer_than_a_part_is_a_part_alone_and_no_lines_are_a_part_too() -> None:
    table = tables.Table({"a": str}, [("x" * 50,), ("y",), ("z" * 50,)])
    assert [len(part.table.lines) for part in tables.in_parts("board", table, most_bytes=20)] == [1, 1, 1]
    assert [part.content for part in tables.in_parts("board", tables.Table({"a": str}, []))] == [b"a\n"]


def test_the_index_names_the_files_of_both_tables() -> None:
    found = made(*some())
    index = Index.model_validate_json(text(found, "api/index.json"))
    assert {each.file for each in index.tables} == {"board.csv", "results.csv.gz"}
    for each in index.tables:
        held = lines(found, each.file)
        assert len(held) == each.lines
        assert {line["dataset"] for line in held if line["dataset"]} == set(each.datasets)
