"""A small board beside golden files: every kind of page as text, and every kind of download.

`BENCH_RENEW_GOLDEN=1 pytest tests/leaderboard/test_golden_board.py` writes them anew; read the difference first.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made.board_records import auc, claim, dataset, guesswork, plugin, record, score, utility, word
from made.whole_rows import HOLDING, controls, kept, keyed, whole

from bench.results.records import Record
from leaderboard.intake import intake
from leaderboard.pages import Page
from leaderboard.site import files

GOLDEN = Path(__file__).with_name("golden")
DATA, ROW = "synth-cxr-026d6f6f", "dp-simple-f828ac667760"
PAGES = {
    "front.txt": "index.html",
    "board.txt": "board.html",
    "data-sets.txt": "data/index.html",
    "data-set.txt": f"data/{DATA}.html",
    "figures.txt": f"data/{DATA}-figures.html",
    "by-attack.txt": f"data/{DATA}-attacks.html",
    "method.txt": "methods/dp-simple.html",
    "attacks.txt": "attacks/index.html",
    "attack.txt": "attacks/contrastive.html",
    "row.txt": f"cells/{ROW}.html",
    "generator.txt": "cells/cvae-1ca23d6b4667.html",
    "choose.txt": "choose.html",
    "compare.txt": "compare.html",
    "reading.txt": "reading.html",
    "rows.json": "rows/all-1.js",
    "row.json": f"rows/{ROW}.js",
    "board.csv": "board.csv",
    "results.csv": "results.csv.gz",
    "board.tex": f"latex/{DATA}-quick-0.tex",
    "feed.xml": "feed.xml",
    "badge.svg": f"badges/{ROW}.svg",
    "badge.json": f"badges/{ROW}.json",
    "api-index.json": "api/index.json",
    "api-row.json": f"api/rows/{ROW}.json",
    "api-row-schema.json": "api/schema/row.json",
    "manifest.json": "board-manifest.json",
    "citations.bib": "citations.bib",
    "citation.cff": "CITATION.cff",
}
"""The page or download that each golden file holds."""


def records() -> Iterator[Record]:
    """Two data sets; rows that are rated, claimed, audited, failed, not applicable, and a generator."""
    yield from controls(HOLDING)
    bound = {
        "parameters": {"scale": 20.0, "patch_size": 4},
        "claim": claim(1.5, 3.0),
        "scheme": {"caveat": "a small network: the paper's size has not run"},
    }
    shown = score(2.4, 2.4, 3.1, unit="ε", note="at least, with 95 % confidence", parts={"ceiling": score(5.0)})
    parts = utility(0.83, Edema=0.85, Atelectasis=0.81)
    yield keyed(record("dp-simple", scores={"guesswork": guesswork(9), "reid-auc": auc(0.7)}, **bound))
    yield keyed(record("dp-simple", "utility", {"utility-auc": parts}, kind="utility", **bound))
    yield keyed(record("dp-simple", "audit", {"empirical-epsilon": shown}, kind="audit", **bound))
    yield keyed(word("dp-simple", **bound))
    yield from whole("blur", useful=0.7)
    yield keyed(record("mosaic", "utility", {"utility-auc": utility(0.8)}, kind="utility"))
    yield keyed(record("syfer", status="failed", phase="fit", reason="out of memory"))
    yield keyed(record("syfer", "slow", status="timed-out", phase="attack", reason="60 s"))
    yield keyed(record("dauntless", status="not-applicable", reason="images of 8 x 8 have no patches of 16"))
    members = score(0.7, 0.65, 0.75, null=0.5, null_low=0.45, null_high=0.55, p=0.0)
    told = {"kind": "membership", "attack": plugin("dcr", {})}
    yield keyed(record("cvae", "membership-dcr", {"membership-auc": members}, **told))
    other = record(
        "mosaic", scores={"reid-auc": auc(0.5)}, dataset=dataset("synth-mimic", shareable=False, findings=[])
    )
    yield keyed(other, cell="synth-mimic/mosaic")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Every file of the site, not yet made. Titles of metrics stand for their meanings, which change more often."""
    plain = []
    for one in records():
        described = {name: m.model_copy(update={"meaning": f"{m.title} explained."}) for name, m in one.metrics.items()}
        plain.append(keyed(one, metrics=described, cell=one.cell))
    return files(intake(kept(tmp_path_factory.mktemp("golden"), *plain)))


class Text(HTMLParser):
    """A page as text: a line a block, cells apart, tooltips in braces, addresses in angle brackets."""

    INLINE = frozenset(
        ["a", "abbr", "b", "code", "dfn", "em", "i", "small", "span", "strong", "sub", "sup", "td", "th", "wbr"]
    )

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.text += "" if tag in self.INLINE else "\n"
        self.text += " | " if tag in ("td", "th") else ""
        data = [f"{name[5:]}={value}" for name, value in attrs if name.startswith("data-") and name != "data-label"]
        if tag == "tr" and data:
            self.text += f"({' '.join(data)})"
        if told.get("title"):
            self.text += f"{{{told['title']}}} "
        if tag == "a":
            self.links.append(told.get("href") or "")
        if tag in ("script", "img", "link"):
            self.text += f"\n<{told.get('src') or told.get('href')}>"

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.text += f" <{self.links.pop()}>"

    def handle_data(self, data: str) -> None:
        self.text += re.sub(r"\s+", " ", data)

    @property
    def lines(self) -> str:
        """The text without empty lines and spaces in a row; the head of a table in full only once."""
        lines = list(filter(None, (re.sub(r"\s+", " ", line).strip() for line in self.text.splitlines())))
        heads = [line for line in lines if line.startswith("| {")]
        return "\n".join("(columns as above)" if line in heads and line in lines[:place] else line
                         for place, line in enumerate(lines)) + "\n"  # fmt: skip


def text(name: str, page: Page) -> str:
    """The content of a golden file."""
    content = page.make()
    if isinstance(content, bytes):
        content = (gzip.decompress(content) if page.name.endswith(".gz") else content).decode()
    if page.name.endswith(".html"):
        return Text(content).lines
    if name.endswith(".json") and page.name.endswith(".js"):  # the first argument of a call
        content, _ = json.JSONDecoder().raw_decode(content[content.index("(") + 1 :])
    if name.endswith(".json"):
        found = json.loads(content) if isinstance(content, str) else content
        for part in found.get("$defs", {}).values() if isinstance(found, dict) else ():
            part.pop("description", None)  # docstrings of records, which say it elsewhere
        return json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    return content


@pytest.mark.parametrize("name", PAGES)
def test_the_board_gives(name: str, board: dict[str, Page]) -> None:
    found = text(name, board[PAGES[name]])
    if os.environ.get("BENCH_RENEW_GOLDEN"):
        (GOLDEN / name).write_text(found, encoding="utf-8")
    assert found == (GOLDEN / name).read_text(encoding="utf-8")


def test_every_golden_file_is_compared() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(PAGES)
