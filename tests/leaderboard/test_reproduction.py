"""The ledger says what its sources say, names commands that exist, and cannot be read where it is wrong."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.cli import main
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import parse
from bench.results.results import Results
from leaderboard import pages, reproduction
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.packed_rows import published_results
from leaderboard.published import PUBLISHED
from leaderboard.quotation import misquoted, renewed
from leaderboard.reach import shipped
from leaderboard.reproduction import FILE, Measured, ReproductionError, read, stated
from leaderboard.site import build

HERE = PUBLISHED.parent
ROOT = HERE.parent
OPEN = {"what": "a", "says": "1", "verdict": "open", "why": "no data", "command": "bench run"}
FIGURE = {"what": "a", "reach": "x / y", "score": "top-1", "value": 1.0, "budget": "2 rows", "command": "bench run"}


def ledger(*rows: dict[str, Any]) -> dict[str, Any]:
    table = {"place": "Table 1", "shows": "it", "rows": list(rows)}
    return {"schema": 1, "papers": [{"id": "one", "title": "One", "cited": "One 2020", "tables": [table]}]}


def written(tmp_path: Path, told: object) -> Path:
    path = tmp_path / "ledger.yaml"
    path.write_text(told if isinstance(told, str) else yaml.safe_dump(told), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def records() -> Results:
    return published_results(PUBLISHED)


def test_every_figure_of_the_ledger_is_what_its_record_says(records: Results) -> None:
    assert [f"{one.place}: {one.why}" for one in misquoted(read(HERE / FILE), records, shipped(), ROOT)] == []


def test_all_four_papers_are_there_with_every_table_and_figure() -> None:
    places = {paper.id: [table.place for table in paper.tables] for paper in reproduction.shipped().papers}
    assert list(places)[:4] == ["syfer", "dp-glow", "cadp", "cvae"]
    for paper, tables, figures in (("syfer", 6, 6), ("dp-glow", 3, 6), ("cadp", 1, 11), ("cvae", 1, 3)):
        for kind, count in (("Table", tables), ("Figure", figures)):
            numbers = [n for place in places[paper] if place.startswith(kind) for n in re.findall(r"\d+", place)]
            assert sorted(map(int, numbers)) == list(range(1, count + 1)), (paper, kind)


def test_the_page_is_drawn_again_if_a_metric_has_other_decimals(monkeypatch: pytest.MonkeyPatch) -> None:
    (before,) = pages.reproduction(Edition.of(Intake((), {})))
    monkeypatch.setattr(pages, "_digits", lambda ledger: {"reid-auc": 1})
    (after,) = pages.reproduction(Edition.of(Intake((), {})))
    assert before.inputs != after.inputs


def test_open_rows_are_counted_by_what_they_await(tmp_path: Path) -> None:
    rows = [OPEN | {"awaits": ["x", "y"]}, OPEN | {"awaits": ["x"]}, OPEN]
    found = read(written(tmp_path, ledger(*rows) | {"missing": {"y": "another file", "x": "a file"}}))
    assert found.awaiting() == {"x": 2, "y": 1}
    assert found.ready() == 1


@pytest.mark.parametrize(
    "command", sorted({row.command for _, _, row in reproduction.shipped().rows() if row.command is not None})
)
def test_a_command_that_would_settle_a_row_names_what_there_is(command: str) -> None:
    words = shlex.split(command)
    assert words[0] == "bench"
    groups = {"--method": "methods", "--attack": "attacks", "--metric": "metrics", "--dataset": "datasets"}
    for flag, value in pairwise(words):
        if flag in groups and value not in ("all", "DIR"):
            plugin = parse(value)
            assert registry.build(groups[flag], plugin, "paper") is not None  # type: ignore[arg-type]
        elif flag == "--preset":
            assert value in ("paper", "quick")


@pytest.mark.parametrize(
    "figure",
    [figure for _, _, row in reproduction.shipped().rows() for figure in row.ours if figure.command is not None],
    ids=lambda figure: figure.what,
)
def test_the_command_of_a_figure_runs_at_its_preset(figure: reproduction.Measured) -> None:
    assert figure.command is not None
    if figure.command.startswith("bench run"):
        assert dict(pairwise(shlex.split(figure.command)))["--preset"] in str(figure.budget)


@pytest.mark.parametrize(
    ("paper", "command"),
    sorted(
        (paper.id, str(row.command))
        for paper, _, row in reproduction.shipped().rows()
        if paper.id != "syfer" and (row.command or "").startswith("bench run")
    ),
)
def test_a_command_gives_the_rows_to_learn_from_that_the_paper_gives(paper: str, command: str) -> None:
    told = dict(pairwise(shlex.split(command)))
    source = configure("datasets", parse(told["--dataset"]), "paper").plugin
    public = told.get("--public", source.public)
    if paper == "private-evolution":
        assert public.startswith("synth-"), "it selects a simulator's images"
    elif paper == "etc" or (paper == "cvae" and "--attack" not in told):
        assert public == "none", "neither its methods nor its features read public rows"
    else:
        assert parse(public).name == source.name, "its flows learn from the collection that is released"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told.update(schema=2), "schema"),
        (lambda told: told["papers"][0].update(colour="red"), "one, colour: Extra inputs"),
        (lambda told: told["papers"][0]["tables"][0]["rows"][0].pop("command"), "Table 1, a: .*open row needs"),
        (lambda told: told["papers"][0]["tables"][0]["rows"][0].update(verdict="maybe"), "verdict: .*got 'maybe'"),
        (lambda told: told["papers"][0]["tables"][0]["rows"][0].update(verdict="refuted"), "needs a figure of ours"),
        (
            lambda told: told["papers"][0]["tables"][0]["rows"][0].update(awaits=["x"]),
            "x, which `missing` does not name",
        ),
        (lambda told: told.update(missing={"x": "a file"}), "names x, which no row awaits"),
        (
            lambda told: told["papers"][0]["tables"][0].update(
                rows=[OPEN | {"verdict": "refuted", "ours": [FIGURE], "awaits": ["x"]}]
            ),
            "awaits nothing, got awaits x",
        ),
        (lambda told: told["papers"][0]["tables"][0]["rows"][0].update(why="a\nb"), "why: .*pattern"),
        (lambda told: told["papers"][0]["tables"].append(told["papers"][0]["tables"][0]), "Table 1 stands there twice"),
        (lambda told: told["papers"][0]["tables"][0]["rows"][0].update(ours=[FIGURE | {"test": "t"}]), "one of record"),
        (
            lambda told: told["papers"][0]["tables"][0]["rows"][0].update(ours=[FIGURE | {"reads": "1"}]),
            "for a test `reads`",
        ),
        (
            lambda told: told["papers"][0]["tables"][0]["rows"][0].update(ours=[FIGURE | {"value": "high"}]),
            "got 'high'",
        ),
        (lambda told: told.clear(), "schema"),
    ],
)
def test_a_ledger_that_is_wrong_says_where(tmp_path: Path, change: Callable[[Any], None], message: str) -> None:
    told = ledger(dict(OPEN))
    assert read(written(tmp_path, told)).papers[0].count("open") == 1
    change(told)
    with pytest.raises(ReproductionError, match=message):
        read(written(tmp_path, told))


@pytest.mark.parametrize("text", ["schema: 1\nschema: 1", "- 1", "a: [", "\x00"])
def test_what_is_no_ledger_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReproductionError, match=r"ledger\.yaml: "):
        read(written(tmp_path, text))


def test_a_figure_that_differs_from_its_record_is_named_and_renewed(records: Results) -> None:
    text = (HERE / FILE).read_text(encoding="utf-8")
    changed = text.replace("low: 1.0\n", "low: 0.5\n", 1)
    assert changed != text
    told = reproduction.Reproduction.model_validate(yaml.safe_load(changed))
    (wrong,) = misquoted(told, records, shipped(), ROOT)
    assert wrong.why.endswith("low: 0.5 quoted, 1.0 in the source")
    assert renewed(changed, records, shipped(), ROOT) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"record": "nih/none/utility"}, "no such record"),
        ({"record": "../../../etc/passwd"}, "no such record"),
        ({"reach": "x / y"}, "found 0"),
        ({"test": "tests/leaderboard/test_reproduction.py::test_none"}, "no such test"),
        ({"test": "tests/leaderboard/test_reproduction.py::test_a_figure_without_a_source_is_named"}, "does not state"),
        ({"test": "tests/none.py::test_none"}, "no such file"),
    ],
)
def test_a_figure_without_a_source_is_named(source: dict[str, str], message: str, records: Results) -> None:
    figure: dict[str, Any] = FIGURE | {"reach": None} | source
    if "test" in source:
        figure |= {"value": None, "reads": "nothing", "score": "what it " + "never says"}
    told = reproduction.Reproduction.model_validate(ledger(OPEN | {"ours": [figure]}))
    (wrong,) = misquoted(told, records, shipped(), ROOT)
    assert wrong.said is None
    assert message in wrong.why


def test_the_page_escapes_what_the_ledger_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "<script>alert(1)</script>\"'&"
    figure = FIGURE | {"what": evil, "reach": evil, "score": evil, "budget": evil, "command": evil}
    row = {"what": evil, "says": evil, "verdict": "refuted", "why": evil, "command": evil, "ours": [figure]}
    told = ledger(row)
    told["papers"][0] |= {"title": evil, "cited": evil}
    told["papers"][0]["tables"][0] |= {"place": evil, "shows": evil}
    made = reproduction.Reproduction.model_validate(told)
    monkeypatch.setattr("leaderboard.pages.shipped", lambda: made)
    (tmp_path / "results").mkdir()
    build(Results(tmp_path / "results"), tmp_path / "site")
    page = (tmp_path / "site" / "reproduction.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;") >= 11


def test_a_method_says_what_to_expect_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "dp-glow"]) == 0
    told = capsys.readouterr().out
    assert "bits per dimension" in told
    assert "the paper says 0.807, 0.679, 0.665, 0.539: open" in told
    assert "none of the figures is of the preset quick" in told
    assert main(["info", "dp-glow", "--preset", "first-look"]) == 0
    assert "none of the figures" not in capsys.readouterr().out
    assert main(["info", "mosaic"]) == 0
    assert "expected" not in capsys.readouterr().out


def test_the_terminal_shows_the_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "ledger"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "reproduced  syfer  Table 1: Dauntless" in out


def test_figures_read_as_one_line() -> None:
    both = Measured(**(FIGURE | {"low": 0.5, "high": 2.0}))  # type: ignore[arg-type]
    assert stated(both) == "a: 1 (0.5 to 2) top-1 (2 rows)"
    assert stated(both.model_copy(update={"high": None})) == "a: 1 (at least 0.5) top-1 (2 rows)"
    shown = both.model_copy(update={"value": None, "reads": "five"})
    assert stated(shown) == "a: five (2 rows)"
    assert stated(both.model_copy(update={"low": None, "high": None})) == "a: 1 (no interval) top-1 (2 rows)"
