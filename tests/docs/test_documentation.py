"""Everything that a user can name has its place on the documentation site; nothing there leads nowhere."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import cast

import pytest
from made.datasets import uniform

from bench.cli import VERBS
from bench.contract.preset import PRESETS
from bench.plugins import registry
from bench.plugins.groups import GROUPS
from bench.plugins.spec import alternatives, parse
from bench.results.records import json_schema
from bench.types import Method
from docs.generator import navigation, pages
from docs.generator.command_line import anchor, arguments, verb_path
from docs.generator.settings import run_keys
from leaderboard.packed_rows import read_row, row_files
from leaderboard.published import PUBLISHED

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_TARGET = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")


def anchors(text: str) -> list[str]:
    """The anchors that headings name."""
    return re.findall(r"^#{1,6} .+\{ *#([^}\s]+) *\}$", text, re.MULTILINE)


@pytest.fixture(scope="module")
def site() -> Mapping[str, str]:
    return {page.path: page.text for page in pages()}


@pytest.fixture(scope="module")
def markdown(site: Mapping[str, str]) -> Mapping[str, str]:
    return {path: text for path, text in site.items() if path.endswith(".md")}


@pytest.mark.parametrize("group", GROUPS)
def test_every_plug_in_has_a_page_and_its_group_leads_there(group: registry.Group, site: Mapping[str, str]) -> None:
    overview = site.get(f"{group}/index.md", "")
    missing = [name for name in registry.entries(group) if f"{group}/{name}.md" not in site]
    assert missing == []
    assert [name for name in registry.entries(group) if f"({name}.md)" not in overview] == []


def documented(cls: type) -> set[str]:
    """The parameters that the docstrings of a class and its parents explain."""
    texts = (vars(parent).get("__doc__") or "" for parent in cls.__mro__)
    entries = (re.findall(r"^ {8}(?! )([\w, *]+): \S", text.partition("Args:\n")[2], re.MULTILINE) for text in texts)
    return {name.strip(" *") for some in entries for names in some for name in names.split(",")}


@pytest.mark.parametrize("group", GROUPS)
def test_a_page_names_its_source_and_every_parameter_is_explained(
    group: registry.Group, site: Mapping[str, str]
) -> None:
    for name in registry.working(group):
        cls = registry.load(group, name)
        text = site[f"{group}/{name}.md"]
        assert f"::: {cls.__module__}.{cls.__qualname__}\n" in text
        fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
        assert fields - documented(cls) == set(), f"{group}/{name}"
        assert not getattr(cls, "source", "") or "| **source** |" in text


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_a_how_to_for_adding_to_it(group: registry.Group, site: Mapping[str, str]) -> None:
    noun = registry.noun(group).replace(" ", "-")
    path = f"how-to/add-{'an' if noun[0] in 'aeiou' else 'a'}-{noun}.md"
    kind = registry.kind(group)
    assert f"::: {kind.__module__}.{kind.__qualname__}\n" in site[path]


def test_every_option_of_every_verb_has_an_anchor(site: Mapping[str, str]) -> None:
    missing = []
    for verb in VERBS:
        path, inner = verb_path(verb), verb.partition(" ")[2]
        known = anchors(site.get(path, ""))
        missing += [f"{path}#{name}" for option in arguments(verb) if (name := anchor(option, inner)) not in known]
    assert missing == []


def test_every_key_of_a_configuration_file_is_explained(site: Mapping[str, str]) -> None:
    rows = [line.strip("| ").split(" | ") for line in site["configuration.md"].splitlines() if line.startswith("| `")]
    said = {row[0].strip("`"): row[-1] for row in rows}
    assert [name for name, *_ in run_keys() if not said.get(name)] == []


def test_presets_and_the_schema_of_records_are_shown(site: Mapping[str, str]) -> None:
    assert all(name in site["presets.md"] for name in PRESETS)
    assert "::: bench.results.records.Record\n" in site["records.md"]
    assert json.loads(site["record.schema.json"]) == json_schema()


def test_the_page_of_costs_is_computed_from_the_published_records(site: Mapping[str, str]) -> None:
    published = [json.loads(text) for path in row_files(PUBLISHED) for text in read_row(path).records.values()]
    told = [(each["dataset"]["rows"]["private"], each["seconds"]["wall"]) for each in published
            if each["kind"] == "linear-probe" and each["status"] == "ok"]  # fmt: skip
    assert len({rows for rows, _ in told}) == 1, "of several sizes: then hours grow as fitted"
    (rows, _), seconds = told[0], median(wall for _, wall in told)
    hours = (f"{len(told) * seconds * size / rows / 3600:.1f}" for size in (10_000, 50_000, 100_000))
    cells = ("`linear-probe`", "cpu", len(told), f"{rows:,}", f"{seconds:.1f}", "1 (one size only)", *hours)
    assert f"| {' | '.join(map(str, cells))} |" in site["cost.md"]


def test_links_in_the_repository_lead_to_files_in_it() -> None:
    sources = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    prose = {path: _CODE.sub("", path.read_text(encoding="utf-8")) for path in sources}
    lost = [f"{path.name}: {link}" for path, text in prose.items() for link in _TARGET.findall(text)
            if not (path.parent / link.partition("#")[0]).exists()]  # fmt: skip
    assert lost == []


def test_every_page_is_in_the_menu_once(markdown: Mapping[str, str]) -> None:
    def listed(items: object) -> Iterator[str]:
        if isinstance(items, str):
            yield items
        for item in items.values() if isinstance(items, dict) else items if isinstance(items, list) else ():
            yield from listed(item)

    assert Counter(listed(navigation(pages()))) == Counter(markdown.keys())


def test_anchors_are_given_once_a_page(markdown: Mapping[str, str]) -> None:
    assert [
        path
        for path, text in markdown.items()
        if path != "changelog.md" and len(set(anchors(text))) < len(anchors(text))
    ] == []


def test_a_plug_in_without_a_page_is_found(monkeypatch: pytest.MonkeyPatch, site: Mapping[str, str]) -> None:
    known = registry.entries("methods")
    more = {**known, "new": dataclasses.replace(known["identity"], name="new")}
    monkeypatch.setattr(registry, "entries", lambda group: more)
    with pytest.raises(AssertionError, match="new"):
        test_every_plug_in_has_a_page_and_its_group_leads_there("methods", site)


def test_the_readme_names_every_method() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [name for name, entry in registry.entries("methods").items() if entry.origin == registry.HOME]
    assert [name for name in names if f"`{name}`" not in text] == []


TAUGHT = re.compile(r"^bench (?:run|audit|show|release) .*$", re.MULTILINE)


def _on_digits() -> list[str]:
    """Methods that commands of the documentation ask for on images of 8 x 8."""
    texts = [
        path.read_text(encoding="utf-8").replace("\\\n", " ")
        for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    ]
    told = [shlex.split(line, comments=True) for text in texts for line in TAUGHT.findall(text)]
    asked = [words for words in told if "digits" in words and "--features" not in words]
    named = (words[at + 1] for words in asked for at, word in enumerate(words) if word == "--method")
    found = {each for name in named for each in alternatives(name)}
    here = (name for name in found if "path=" not in name)  # a folder of the reader's
    return sorted(name for name in here if parse(name).name in registry.own("methods"))


@pytest.mark.parametrize("name", _on_digits())
def test_a_method_that_is_shown_on_small_images_takes_them(name: str) -> None:
    """The first command of the first how-to measured nothing: its method cannot cut 8 x 8 into patches of 16."""
    method = cast("Method", registry.build("methods", parse(name), "smoke"))
    method.fit(uniform(40, 1, 8, 8), 0)


def test_nothing_of_this_machine_is_shown(site: Mapping[str, str]) -> None:
    assert [path for path, text in site.items() if str(ROOT) in text or str(Path.home()) in text.split()] == []


def test_the_numbers_of_syfers_frontier_are_those_of_the_study() -> None:
    text = " ".join((ROOT / "docs" / "syfer-study.md").read_text().split())
    with (ROOT / "docs" / "pictures" / "syfer-frontier.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) > 10

    def told(row: dict[str, str], name: str) -> str:
        value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
        return f"{value} ({low} to {high}"

    for row in rows:
        assert told(row, "leak") in text
        assert not row["utility"] or told(row, "utility") in text
