from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import random
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made.board_records import auc, claim, dataset, guesswork, metric, plugin, record, score, utility
from made.whole_rows import kept, keyed
from pydantic import JsonValue

from bench.disk.atomic_file import write_atomically
from bench.plugins.spec import options, parse
from bench.results import signed_json
from bench.results.records import FeatureRecord, Record, json_schema, picture_record, proved
from bench.results.results import Results
from bench.types import LEARNING, LearningCurve
from bench.workbench.choice import Choice
from bench.workbench.inputs import PROTOCOL
from leaderboard.board import rows
from leaderboard.bounds import CORE, MEMBER_CORE
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.pages import render
from leaderboard.plots import learning_plot
from leaderboard.repeat import command
from leaderboard.site import Ledger, altered, build

Write = Callable[..., Results]
EVIL = "<script>alert(1)</script>"


def some() -> list[Record]:
    return [
        record(
            "dp-simple",
            scores={"guesswork": guesswork(2), "reid-auc": auc(0.9)},
            parameters={"scale": 20.0},
            claim=claim(20.0),
        ),
        record(
            "dp-simple",
            "utility",
            {"utility-auc": utility(0.8, Edema=0.83)},
            kind="utility",
            parameters={"scale": 20.0},
        ),
        record("noise", scores={"guesswork": guesswork(90), "reid-auc": auc(0.5)}),
        record("cvae", status="not-applicable", reason="samples are drawn, not encoded"),
        record("syfer", status="failed", phase="fit", reason="out of memory"),
        record("syfer", "slow", status="timed-out", phase="attack", reason="60 s"),
    ]


@pytest.fixture(scope="module")
def site(write_once: Write) -> Path:
    """The pages of some records, for tests that only read them."""
    results = write_once(*some())
    return build(results, results.root.with_name("site")).parent


def files(site: Path) -> dict[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in sorted(site.rglob("*")) if path.is_file()}


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        for name, value in attrs:
            if name in ("href", "src", "srcset") and value:
                self.found.append(value)
            if name == "id" and value:
                self.ids.append(value)


def parsed(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def pages(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def the(site: Path, pattern: str) -> str:
    """The one page whose name fits."""
    (page,) = site.glob(pattern)
    return page.read_text(encoding="utf-8")


def test_the_front_page_says_how_large_a_data_set_is_and_which_attacks_of_the_core_list_never_ran(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r"\d+ private images of \d+ x \d+ pixels, of \d+ people", page)
    (never,) = re.findall(r"Of the core list of attacks ([^.]*) did not run on any ranked method here", page)
    assert "needle" in never
    assert "contrastive" not in never.split(", ")
    reading = (site / "reading.html").read_text(encoding="utf-8")
    assert all(name in reading for name in (*CORE, *MEMBER_CORE))


def test_a_column_of_one_tier_is_hidden_only_where_a_sentence_tells_it(site: Path) -> None:
    def hidden(page: str) -> bool:
        return 'class="c-tier aside off"' in page or 'class="c-tier off"' in page

    told = {name: (hidden(page), "Tier of every row: self-reported" in page) for name, page in pages(site).items()
            if 'id="board"' in page}  # fmt: skip
    assert told["board.html"] == (True, True)
    assert {name.split("/")[0] for name in told} >= {"board.html", "data", "methods"}
    assert all(off == said for off, said in told.values())


def test_a_board_of_reference_methods_alone_has_its_pages(write_once: Write) -> None:
    alone = record("noise", scores={"guesswork": guesswork(90)})
    role = alone.method.model_copy(update={"role": "keeps nothing"})
    results = write_once(alone.model_copy(update={"method": role}))
    site = build(results, results.root.with_name("site")).parent
    assert "Reference methods (not ranked)" in (site / "board.html").read_text(encoding="utf-8")


def test_what_does_not_apply_stands_folded_after_what_was_measured(write_once: Write) -> None:
    told = record("cvae", "utility", {"utility-auc": utility(0.8)}, kind="utility")
    results = write_once(told, record("cvae", "likelihood", status="not-applicable", reason="samples are drawn"))
    page = the(build(results, results.root.with_name("site")).parent, "cells/cvae-*.html")
    measured, folded = page.split("1 record of what does not apply")
    assert "<h4>utility" in measured
    assert "samples are drawn" not in measured.split("<h3>Records</h3>")[1]
    assert "samples are drawn" in folded.split("</article>")[0]


def test_attacks_that_do_not_apply_are_counted_and_not_listed_in_a_panel(write: Write, tmp_path: Path) -> None:
    none = {"status": "not-applicable", "reason": "no row for each image", "cell": "cvae"}
    results = write(
        record("cvae", "membership-dcr", kind="membership", attack=plugin("dcr", {}), cell="cvae"),
        record("cvae", "reidentification-likelihood", attack=plugin("likelihood", {}), **none),
        record("cvae", "reidentification-contrastive", attack=plugin("contrastive", {}), **none),
    )  # fmt: skip
    page = the(build(results, tmp_path / "site").parent, "cells/cvae-*.html")
    evidence = page.split("<h2>Evidence</h2>")[1].split("<h3>Facts</h3>")[0]
    assert "<h3>Membership panel</h3>" in evidence
    assert "<h3>Attack panel</h3>" not in evidence
    assert "likelihood" not in evidence
    assert "2 attacks on pairs do not apply to this row" in evidence


def test_the_same_records_give_the_same_bytes(write: Write, tmp_path: Path) -> None:
    results = write(*some())
    assert files(build(results, tmp_path / "a").parent) == files(build(results, tmp_path / "b").parent)


def test_a_build_over_an_earlier_one_gives_the_bytes_of_a_fresh_one(write: Write, tmp_path: Path) -> None:
    """A row is added, changed and removed."""
    site = tmp_path / "over"
    results = write(*some())
    build(results, site)

    def same(where: str) -> bool:
        return files(build(results, site).parent) == files(build(results, tmp_path / where).parent)

    added = record("newcomer", scores={"guesswork": guesswork(3.0)})
    write(added)
    assert any("newcomer" in name for name in files(build(results, site).parent))
    assert same("added")
    before = files(site)
    write(added.model_copy(update={"scores": {"guesswork": guesswork(7.0)}, "digest": None}))
    assert same("changed")
    assert files(site) != before
    (folder,) = (results.root / "cells").glob("*/newcomer*")
    shutil.rmtree(folder)
    assert same("removed")
    assert not any("newcomer" in name for name in files(site))


def test_a_download_of_a_record_is_its_file(write: Write, tmp_path: Path) -> None:
    results = write(*some())
    downloads = {path.read_bytes() for path in build(results, tmp_path / "site").parent.rglob("*.json")}
    kept = [path.read_bytes() for path in (results.root / "cells").rglob("*.json")]
    assert kept
    assert downloads >= set(kept)


def test_a_record_that_was_replaced_meanwhile_is_published_as_it_was_read(write: Write) -> None:
    first = record("a", scores={"guesswork": guesswork(9.0)})
    results = write(first)
    ((_, read),) = results.records()
    assert isinstance(read, Record)
    before = results.text(read)
    write(first.model_copy(update={"scores": {"guesswork": guesswork(2.0)}, "digest": None}))
    ((_, now),) = results.records()
    assert isinstance(now, Record)
    assert results.text(now) != before == results.text(read)


def test_every_link_leads_to_a_file_or_an_anchor_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in parsed(page).found:
            if link == "data:,":
                continue
            assert "//" not in link, "no page may reach for the network"
            path, _, anchor = link.partition("?")[0].partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), link
            assert not anchor or anchor in parsed(target).ids, link


def test_anchors_are_unique_on_each_page(site: Path) -> None:
    for page in site.rglob("*.html"):
        ids = parsed(page).ids
        assert len(ids) == len(set(ids))


def test_failures_show_a_word_and_a_reason_and_never_a_number(site: Path) -> None:
    text = (site / "board.html").read_text(encoding="utf-8")
    for word in ("failed", "timed out", "not applicable", "not run", "out of memory (in fit)", "samples are drawn"):
        assert word in text
    assert not re.search(r">\s*(nan|NaN|None|null)\s*<", text)


def test_a_figure_at_chance_is_marked(write: Write, tmp_path: Path) -> None:
    build(write(some()[2]), tmp_path / "site")
    assert the(tmp_path / "site", "data/*-figures.html").count('title="Not distinguishable from chance') == 2


def test_a_person_found_no_more_surely_than_by_chance_is_marked_on_the_line(write: Write, tmp_path: Path) -> None:
    """Even where nothing of anybody is released, somebody seems to be found surely once keys are few."""
    lucky = score(0.99, 0.0, 1.0, unit="share", null=0.5, null_low=0.3, null_high=1.0)
    build(write(record("noise", scores={"guesswork": guesswork(90), "person-risk": lucky})), tmp_path / "site")
    cell = re.search(r'<td class="c-person.*?</td>', (tmp_path / "site" / "board.html").read_text(encoding="utf-8"))
    assert cell is not None
    assert ">at chance<" in cell[0]


def test_a_rung_without_guesswork_is_shown_by_its_state(write: Write, tmp_path: Path) -> None:
    results = write(record("identity", scores={"reid-auc": auc(0.9)}), record("identity", "slow", status="timed-out"))
    build(results, tmp_path / "site")
    text = the(tmp_path / "site", "attacks/index.html")
    reach = text[text.index("<details>", text.index('id="reach"')) :]
    assert ">leaks<" in reach
    assert "failed" in reach


def test_no_method_is_called_private(site: Path) -> None:
    assert "It speaks of these attacks only" in (site / "board.html").read_text(encoding="utf-8")
    for name, text in pages(site).items():
        words = re.sub(r"<[^>]+>", " ", text)
        assert not re.search(r"\b(is|are|fully|provably) (private|secure|safe)\b", words), name


def test_limited_records_are_counted_and_broken_files_named_without_their_folder(write: Write, tmp_path: Path) -> None:
    results = write(*some(), record("limited-one", limit=5))
    broken = results.root / "cells" / "synth-cxr" / "secret-folder" / "torn.json"
    broken.parent.mkdir()
    broken.write_text("{")
    text = build(results, tmp_path / "site").with_name("board.html").read_text(encoding="utf-8")
    assert "<strong>1 record</strong> made with <code>--limit</code>" in text
    assert "<code>torn.json</code>" in text
    assert "limited-one" not in text
    assert "secret-folder" not in text


def test_hostile_text_is_escaped_on_every_page(write: Write, tmp_path: Path) -> None:
    more = {"dataset": dataset(f'x"{EVIL}', findings=[EVIL], notes=[EVIL]), "parameters": {EVIL: f"'\"{EVIL}"}}
    noted = auc(0.9).model_copy(update={"note": f'"{EVIL}'})
    evil = metric(EVIL, meaning=EVIL, group=f'"{EVIL}', chance=EVIL)
    described = {"reid-auc": evil, EVIL: evil, "utility-auc": evil}
    details = {"threat_model": {EVIL: EVIL}, "details": {EVIL: [EVIL]}, "hardware": {"processor": EVIL}}
    records = [
        record(EVIL, scores={"reid-auc": noted, EVIL: score(1.0)}, metrics=described, **details, **more),
        record(EVIL, "<script>", status="failed", reason=f'"{EVIL}', phase=EVIL, **more),
        record(EVIL, "utility", {"utility-auc": utility(0.8, **{EVIL: 0.7})}, kind="utility", **more),
    ]
    site = build(write(*records), tmp_path / "site").parent
    for page in sorted(site.rglob("*.html")):
        found = parsed(page)
        assert EVIL not in page.read_text(encoding="utf-8")
        assert found.tags.count("script") == page.read_text(encoding="utf-8").count('.js" defer></script>')
        assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    for script in site.glob("rows/*.js"):
        assert "<" not in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "..", "", "CON"])
def test_no_method_name_writes_outside_the_site(write: Write, tmp_path: Path, name: str) -> None:
    site = build(write(record(name)), tmp_path / "deep" / "er" / "site").parent
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and site not in path.parents]
    assert {path.parts[len(tmp_path.parts)] for path in outside} == {"results"}
    assert len(list((site / "methods").iterdir())) == 1


def test_a_rebuild_removes_its_own_stale_pages_and_nothing_else(write: Write, tmp_path: Path) -> None:
    results = write(*some())
    site = build(results, tmp_path / "site").parent
    (site / "CNAME").write_text("example.org")
    for path in (results.root / "cells").rglob("*.json"):
        if "syfer" in path.read_text():
            path.unlink()
    build(results, site)
    assert not (site / "methods" / "syfer.html").exists()
    assert (site / "methods" / "noise.html").exists()
    assert (site / "CNAME").exists()


def test_a_forged_manifest_removes_nothing_outside_the_site(write: Write, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    site = tmp_path / "site"
    site.mkdir()
    forged = signed_json.attest({"files": {"../precious": "", str(tmp_path / "precious"): ""}}, "files.json")
    (site / "files.json").write_bytes(signed_json.written(forged))
    build(write(*some()), site)
    assert (tmp_path / "precious").exists()


def test_files_that_no_build_wrote_are_never_written_over(write: Write, tmp_path: Path) -> None:
    results, site = write(*some()), tmp_path / "own"
    site.mkdir()
    (site / "index.html").write_text("mine")
    with pytest.raises(FileExistsError, match="no build of a board wrote it: name another folder"):
        build(results, site)
    assert [path.name for path in site.iterdir()] == ["index.html"]
    assert (site / "index.html").read_text() == "mine"
    with pytest.raises(NotADirectoryError, match="expected a folder for the pages"):
        build(results, site / "index.html")
    for among in (results.root, results.root / "cells", results.root / "cells" / "site"):
        with pytest.raises(FileExistsError, match="holds records"):
            build(results, among)
    assert not list(results.root.rglob("*.html"))


def test_a_killed_first_build_leaves_a_site_that_the_next_one_makes_whole(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, content: bytes, **more: object) -> None:
        write_atomically(path, content)
        if path.name == "index.html":
            raise KeyboardInterrupt

    results, site = write(*some()), tmp_path / "site"
    with monkeypatch.context() as patch:
        patch.setattr("leaderboard.site.write_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            build(results, site)
    assert (site / "index.html").is_file()
    assert altered(build(results, site).parent) == []


def test_every_flipped_bit_of_a_page_is_noticed(write: Write, tmp_path: Path) -> None:
    site, chance = build(write(record("identity")), tmp_path / "site").parent, random.Random(0)
    pages = [path for path in site.rglob("*") if path.is_file()]
    assert altered(site) == []
    for path in pages:
        content = path.read_bytes()
        for place in (0, len(content) - 1, chance.randrange(len(content))):
            flipped = bytearray(content)
            flipped[place] ^= 1 << chance.randrange(8)
            path.write_bytes(flipped)
            assert [name for name, _ in altered(site)] == [path.relative_to(site).as_posix()]
        path.unlink()
        if path.name != "files.json":
            assert [name for name, _ in altered(site)] == [path.relative_to(site).as_posix()]
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "stated"),
    [("a.html", {}), ("a.html", "x"), ("a.html", {"sha256": 1}), ("../a.html", None), ("/etc/passwd", None),
     ("folder", None), ("pipe", None), ("out", None), ("a\0", None), ("ring", None)],
)  # fmt: skip
def test_a_ledger_that_lists_what_is_no_file_of_a_site_is_named(name: str, stated: JsonValue, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "folder").mkdir(parents=True)
    for page in (site / "a.html", tmp_path / "a.html"):
        page.write_bytes(b"")
    os.mkfifo(site / "pipe")
    (site / "out").symlink_to(tmp_path / "a.html")
    (site / "ring").symlink_to("ring")
    honest: JsonValue = {"sha256": hashlib.sha256(b"").hexdigest()}
    Ledger({name: honest if stated is None else stated}).write(site)
    ((named, reason),) = altered(site)
    assert named == name
    assert "no file of a site" in reason


def test_the_downloads_stand_beside_the_index(site: Path) -> None:
    assert json.loads((site / "api/schema/record.json").read_text()) == json_schema()
    assert len(list((site / "api/records").rglob("*.json"))) == len(some())
    assert gzip.decompress((site / "results.csv.gz").read_bytes()).count(b"\n") == 1 + 4 + 2 + 3


def test_an_empty_results_folder_gives_a_page_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert "No results yet" in build(Results(tmp_path / "results"), tmp_path / "site").read_text(encoding="utf-8")


def test_a_missing_results_folder_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"expected a results folder.*bench run"):
        build(Results(tmp_path / "nowhere"), tmp_path / "site")


@pytest.mark.parametrize(
    ("name", "field", "option"),
    [("d as eigenspace", "features", "--features"), ("d, seen through eigenspace", "scored_in", "--scored-in")],
)
def test_the_command_names_the_extractor(name: str, field: str, option: str) -> None:
    reader = FeatureRecord(
        name="eigenspace", parameters={"components": 64}, source="s", code="c", origin="veil-bench", stamp="",
        dimensions=64, fingerprint="f00d<f00d", notes={"explained variance": 0.9},
    )  # fmt: skip
    data = dataset(name, **{field: reader})
    told: dict[str, Any] = {"dataset": data, field: "eigenspace", "cell": "d/one"}
    distance = {"nearest-neighbour-distance": score(4.0, 3.9, 4.1, better="higher")}
    made = (
        record("cvae", "linear-probe", {"linear-probe-auc": utility(0.9)}, kind="linear-probe", **told),
        record("cvae", "sets", distance, kind="sets", **told),
    )
    (row,) = rows(made)
    assert f" {option} eigenspace " in command(row)
    found = render(Edition.of(Intake(made, {})))
    (page,) = (page for name, page in found.items() if re.fullmatch(r"data/d-(?!.*-(figures|attacks)).*", name))
    text = str(page.make())
    assert "f00d&lt;f00d" in text
    assert "explained variance 0.9" in text
    assert "Nearest-neighbour distance, 1 row" not in text  # similarity is not privacy: it has no picture


def test_the_command_repeats_the_row_through_a_shell() -> None:
    """Public set, size and what was left out, attacks and metrics: a row of other choices prints another command."""
    written = plugin("dp-simple", {"scale": 20.0}).model_copy(update={"written": "dp-simple[scale=20.0]"})
    chosen = {"dataset": "medmnist:pneumoniamnist", "public": "nih", "size": 32, "skip_corrupt": True, "balance": False}
    chosen = {**dict.fromkeys(options(Choice)), **chosen, "preset": "paper", "seed": 3}
    told = {"method": written, "choice": chosen, "cell": "m/one"}
    made = [record(scores={"reid-auc": auc(0.9)}), record(evaluator="utility", kind="utility")]
    (row,) = rows([one.model_copy(update=told) for one in made])
    assert command(row) == (
        "bench run --method 'dp-simple[scale=20.0]' --dataset medmnist:pneumoniamnist --public nih --size 32 "
        "--skip-corrupt --preset paper --seed 3 --no-balance --device cpu --attack contrastive --metric guesswork "
        "--metric patient-guesswork --metric patient-reid-auc --metric reid-auc --metric top-1 --metric utility-auc"
    )


@pytest.mark.parametrize(
    ("written", "ran", "origin", "again"),
    [
        ("cvae", {"beta": 0.1, "variance": 1.0}, "veil-bench", "cvae[beta=0.1]"),
        ("cvae[variance=0.5]", {"beta": 0.1, "variance": 0.5}, "veil-bench", "'cvae[variance=0.5,beta=0.1]'"),
        ("cvae[beta=0.1]", {"beta": 0.1, "variance": 1.0}, "veil-bench", "cvae[beta=0.1]"),
        ("cvae", {"beta": None, "gone": 3}, "veil-bench", "cvae"),
        ("cvae", {"beta": 0.1}, "another", "cvae"),
        ("gone", {"beta": 0.1}, "veil-bench", "gone"),
    ],
)
def test_the_command_names_what_was_a_default_then_and_is_none_now(
    written: str, ran: dict[str, Any], origin: str, again: str
) -> None:
    method = plugin(parse(written).name, ran).model_copy(update={"written": written, "origin": origin})
    (row,) = rows([record(evaluator="utility", kind="utility").model_copy(update={"method": method})])
    assert f"bench run --method {again} " in command(row).replace("'cvae[beta=0.1]'", "cvae[beta=0.1]")


def test_a_metric_from_outside_is_shown_and_explained_in_its_own_words(write: Write, tmp_path: Path) -> None:
    mine = metric("My figure", meaning="What I measure.", group="My group", digits=1, chance="2", better="higher")
    other = metric("Their figure", meaning="What they measure.", group="My group", order=1)
    made = record(scores={"mine": score(3.14159), "other": score(2.0)}, metrics={"mine": mine, "other": other})
    audited = record(
        evaluator="audit", kind="audit", scores={"empirical-epsilon": score(1.0, parts={"ceiling": score(2.0)})}
    )
    build(write(made, audited), tmp_path / "site")
    text = the(tmp_path / "site", "data/*-figures.html")
    heads = re.findall(r'scope="colgroup" colspan="(\d)">([^<]*)<', text)
    assert heads == [("3", "Formal privacy"), ("2", "My group")]
    assert text.index("Their figure") < text.index("My figure")
    told = the(tmp_path / "site", "reading.html")
    assert "<dd>What I measure. Higher is better for the data owner. Chance gives 2.</dd>" in told
    assert '<span class="value">3.1</span>' in text
    page = the(tmp_path / "site", "cells/dp-simple-*.html")
    assert '<th scope="row">My figure</th><td class="value">3.1</td>' in page


def test_unshared_data_is_marked(write: Write, tmp_path: Path) -> None:
    build(write(record(dataset=dataset(shareable=False))), tmp_path / "site")
    assert any("under a use agreement" in text for name, text in pages(tmp_path / "site").items() if "data/" in name)


def test_headers_have_scopes(site: Path) -> None:
    for name, text in pages(site).items():
        assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", text)), name


def test_rows_under_other_numbers_of_keys_are_told_apart_attack_by_attack(write: Write, tmp_path: Path) -> None:
    build(write(record("noise", scores={"guesswork": guesswork(90)}, keys=33)), tmp_path / "site")
    assert "seed 0 · 33 keys</span>" in the(tmp_path / "site", "data/*-attacks.html")


def test_attacks_are_named_without_the_prefix_of_their_evaluator(write: Write, tmp_path: Path) -> None:
    one = record(evaluator="reidentification-contrastive", scores={"reid-auc": auc(0.9)})
    build(write(one), tmp_path / "site")
    assert '<span class="key">by</span> contrastive' in the(tmp_path / "site", "data/*-figures.html")


@pytest.mark.parametrize("shareable", [True, False])
@pytest.mark.parametrize("kind", ["sets", "mine"])
def test_a_picture_is_shown_of_data_that_may_be_shared_only(tmp_path: Path, shareable: bool, kind: str) -> None:
    told = {
        "pictures": {"plot": picture_record(b"a picture", "What it shows")},
        "dataset": dataset(shareable=shareable),
        "cell": "synth-cxr/one",
    }
    results = Results(tmp_path)
    results.keep(record("identity", kind, kind=kind, **told), {"plot": b"a picture"})
    build(results, tmp_path / "site")
    assert [path.read_bytes() for path in tmp_path.glob("site/figures/*.png")] == [b"a picture"] * shareable
    page = the(tmp_path / "site", "cells/identity-*.html")
    sources = re.findall(r'<img src="\.\./(figures/[^"]*\.png)" [^>]*alt="[^"]+"', page)
    assert [(tmp_path / "site" / source).read_bytes() for source in sources] == [b"a picture"] * shareable


def test_a_row_of_an_eve_with_other_images_shows_the_pictures_of_her_twin_with_their_owner(tmp_path: Path) -> None:
    results = Results(tmp_path)
    told = {"pictures": {"release": picture_record(b"a picture", "What it shows")}, "cell": "synth-cxr/one"}
    results.keep(record("blur", "sets", kind="sets", **told), {"release": b"a picture"})
    data = dataset("synth-cxr under other-study", fingerprint="other")
    for method in ("blur", "mosaic"):  # mosaic has no twin
        other = {"dataset": data, "eve": "other-study", "cell": f"synth-cxr-other/{method}"}
        results.keep(record(method, scores={"reid-auc": auc(0.7)}, **other), {})
    build(results, tmp_path / "site")
    shown = {page.stem: page.read_text() for page in (tmp_path / "site" / "cells").glob("*.html")}
    assert len(shown) == 3
    pictures = {name: len(re.findall("<img [^>]*figures/", text)) for name, text in shown.items()}
    assert sorted(pictures.values()) == [0, 1, 1]
    (twin,) = (text for name, text in shown.items() if "another release by the same method" in text)
    (own,) = (name for name in shown if f'href="{name}.html">the row</a>' in twin)
    assert pictures[own] == 1
    assert all("public domain (CC0); shown at 64 pixels." in text for name, text in shown.items() if pictures[name])
    assert "synth-cxr (Eve has another image)" in twin


def test_no_file_that_a_record_names_as_its_data_set_is_run_by_a_build(tmp_path: Path) -> None:
    path = tmp_path / "theirs.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    one = record("blur", scores={"reid-auc": auc(0.7)}, cell="theirs/one")
    one = keyed(one.model_copy(update={"choice": {**one.choice, "dataset": f"{path}:Theirs"}}))
    results = Results(tmp_path / "results")
    results.keep(one, {})
    build(results, tmp_path / "site")
    assert "blur" in (tmp_path / "site" / "board.html").read_text()
    assert not (tmp_path / "ran").exists()


def test_rows_that_differ_in_a_hash_alone_are_named_by_it_and_others_are_not(write: Write, tmp_path: Path) -> None:
    settings = [(300, ""), (50_000, "a" * 12), (50_000, "b" * 12)]
    made = [
        record(
            "syfer",
            scores={"reid-auc": auc(0.6)},
            parameters={"steps": steps, "weights_sha256": weights, "a": 1, "b": 1, "c": 1},
        )
        for steps, weights in settings
    ]
    build(write(*made), tmp_path / "site")
    titles = re.findall(r"<h1[^>]*>([^<]*)</h1>", "".join(p.read_text() for p in tmp_path.glob("site/cells/*.html")))
    assert len(set(titles)) == 3
    variants = {
        row.variant.removesuffix(", a=1, b=1, c=1") for row in Edition.of(Intake(tuple(map(proved, made)), {})).rows
    }
    assert variants == {
        "steps=300",
        f"steps=50000, weights_sha256={'a' * 12}",
        f"steps=50000, weights_sha256={'b' * 12}",
    }
    (_, two, _) = made
    variants = {
        row.variant.removesuffix(", a=1, b=1, c=1")
        for row in Edition.of(Intake(tuple(map(proved, (made[0], two))), {})).rows
    }
    assert variants == {"steps=300", "steps=50000"}


def test_claimed_derived_and_shown_bounds_stand_side_by_side(write: Write, tmp_path: Path) -> None:
    most = score(5.0, unit="ε")
    shown = score(2.4, 2.4, 3.1, unit="ε", note="at least, with 95 % confidence", parts={"ceiling": most})
    made = [
        record("cadp", scores={"guesswork": guesswork(2)}, claim=claim(1.5, 3.0)),
        record("cadp", "audit", {"empirical-epsilon": shown}, kind="audit", claim=claim(1.5, 3.0)),
    ]
    page = build(write(*made), tmp_path / "site").with_name("board.html").read_text()
    found = [re.search(rf'<td class="c-{name}[^>]*>([^<]*)', page) for name in ("claimed", "derived", "audited")]
    assert [one and one.group(1).strip() for one in found] == ["1.50", "3.00", "2.40"]
    sentence = "violated: ε of at least 2.40 was shown, 1.50 is claimed"
    assert f'title="{sentence}">violated<' in page
    assert f"<b>Audit</b> {sentence}" in the(tmp_path / "site", "cells/cadp-*.html")


class Outline(HTMLParser):
    """The title of a page and the levels of its headings."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.title = ""
        self.levels: list[int] = []
        self._in_title = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))

    def handle_data(self, data: str) -> None:
        self.title += data if self._in_title else ""

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False


def test_every_page_has_a_title_of_its_own(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of one row at several seeds and sizes, of rows with long parameters, and further pages of long lists."""
    monkeypatch.setattr("leaderboard.pages.MOST_LINES", 3)
    monkeypatch.setattr("leaderboard.pages.MOST_WIDE", 3)
    many = [record("a", cell=f"a-{preset}-{seed}", preset=preset, seed=seed, scores={"reid-auc": auc(0.5)})
            for preset in ("quick", "full") for seed in (0, 1)]  # fmt: skip
    long = [record("b", cell=f"b-{i}", parameters={"name": f"{i}" * 80}, scores={"reid-auc": auc(0.5)}) for i in (1, 2)]
    site = build(write(*many, *long), tmp_path / "site").parent
    titles = [Outline(path.read_text(encoding="utf-8")).title for path in sorted(site.rglob("*.html"))]
    assert sorted(titles) == sorted(set(titles))


def test_every_page_says_what_it_is_and_fits_a_phone(tmp_path: Path) -> None:
    """The page that leads from a protocol's own address to its board, too."""
    pages = [*build(kept(tmp_path / "r", *map(keyed, some())), tmp_path / "site").parent.glob("**/*.html")]
    assert f"protocol-{PROTOCOL}" in {page.parent.name for page in pages}
    for page in pages:
        head, _, body = page.read_text(encoding="utf-8").partition("<body")
        assert '<html lang="en">' in head, page
        assert 'name="viewport" content="width=device-width, initial-scale=1"' in head, page
        assert len(re.findall("<title>[^<]", head)) == 1, page
        assert body.count("<h1") == 1, page


def test_headings_leave_out_no_level(site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        levels = Outline(path.read_text(encoding="utf-8")).levels
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), path


def test_no_text_of_a_record_turns_or_hides_what_stands_beside_it(write: Write, tmp_path: Path) -> None:
    turning = "\u202e\u2067evil\u200f\x01"
    evil = record(turning, scores={"reid-auc": auc(0.9)}, parameters={"a": turning}, scheme={"caveat": turning})
    site = build(write(evil), tmp_path / "site").parent
    for path in [*site.rglob("*.html"), *site.rglob("rows/*.js")]:
        page = path.read_text(encoding="utf-8")
        found = re.search(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069\x01]|\\u(202e|2067|200f|0001)", page)
        assert found is None, path


def test_a_caveat_stands_before_parameters_whose_end_may_be_cut_off(write: Write, tmp_path: Path) -> None:
    small = record("made-up", scores={"reid-auc": auc(0.9)}, parameters={"a": 1}, scheme={"caveat": "a small network"})
    front = (build(write(small), tmp_path / "site").parent / "board.html").read_text(encoding="utf-8")
    name = re.search('<th scope="row" class="c-method".*?</th>', front)
    assert name is not None
    assert re.sub("<[^>]*>", "", name[0]) == "made-up ! a small network a=1"


def test_a_command_is_broken_before_its_options_alone(site: Path) -> None:
    (page,) = (path for path in (site / "cells").glob("*.html") if path.name.startswith("noise"))
    told = re.search('<p class="command"><code>(.*?)</code>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert told is not None
    parts = re.findall("<span>(.*?)</span>", told.group(1))
    assert parts[0] == "bench run"
    assert all(part.startswith("--") for part in parts[1:])
    assert " ".join(parts) == re.sub("<[^>]*>", "", told.group(1))


def test_pages_name_no_file_that_is_not_there(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long table stands in parts, and the file of its bare name is gone."""
    monkeypatch.setattr(
        "leaderboard.tables.in_parts.__kwdefaults__", {"compress": False, "most": 1000, "most_bytes": 1000}
    )
    monkeypatch.setattr("leaderboard.pages.MOST_PARTS", 0)
    monkeypatch.setattr("leaderboard.pages.MOST_OUTCOMES", 1)
    site = build(write(*some()), tmp_path / "site").parent
    assert not (site / "results.csv.gz").exists()
    for path in site.rglob("*.html"):
        assert "results.csv" not in path.read_text(encoding="utf-8"), path


def test_outcomes_of_an_attack_name_data_shortly(write: Write, tmp_path: Path) -> None:
    """Long names and parameters of data pushed figures and controls out of sight."""
    told = record("a", scores={"reid-auc": auc(0.5)}, dataset=dataset("digits", parameters={"flag": "long" * 9}))
    site = build(write(told), tmp_path / "site").parent
    page = (site / "attacks" / "contrastive.html").read_text(encoding="utf-8")
    assert f'<td title="digits [flag={"long" * 9}]">digits</td>' in page


def test_a_row_draws_the_learning_curves_of_its_attacks(write: Write, tmp_path: Path) -> None:
    curve = LearningCurve("AUC on <own> keys", ((0, 0.5), (50, 0.75)), converged=False, reason="budget spent")
    details = {LEARNING: [curve.content()]}
    build(write(record("blur", scores={"reid-auc": auc(0.6)}, details=details)), tmp_path / "site")
    (page,) = (tmp_path / "site" / "cells").glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert 'points="2.0,58.0 238.0,2.0"' in text
    assert "AUC on &lt;own&gt; keys" in text
    assert "</b>: AUC on &lt;own&gt; keys, 0.75 after 50 steps. Did not converge (budget spent)." in text
    assert "&#34;figure&#34;" not in text


def test_a_curve_at_chance_is_drawn_as_a_level_line() -> None:
    losses = LearningCurve("loss", ((0, 4.16), (50, 4.15), (100, 4.16)), converged=True, reason="plateau")
    points = str(learning_plot(losses)).split('points="')[1].split('"')[0]
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert max(heights) - min(heights) < 5
