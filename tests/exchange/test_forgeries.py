"""What a record says beside its figures is held against the code that is here, and the method fitted again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from made import submissions
from made.submissions import METHOD, Handed, forged, found_of, judged, tiers

from bench.cli import main
from bench.exchange.evidence_check import evidence_of
from bench.exchange.recheck_fit import recheck_fit
from bench.exchange.tolerance import alike
from bench.plugins import registry
from bench.results import signed_json
from bench.results.bundle import pack as packed_file
from bench.results.evidence_file import bind, pack
from bench.results.records import Record, evidence_record, score_record
from bench.results.results import evidence_name
from bench.runs.judge import judge

NEAREST = "reidentification-nearest-neighbour.json"
CLAIM = {
    "unit": "image", "epsilon": 0.1, "derived": 0.1, "delta": 0.0, "assumptions": "none", "basis": "a proof",
    "neighbours": "replaced",
}  # fmt: skip
Change = Callable[[dict[str, Any]], object]


def own(handed: Handed, method: str = METHOD) -> list[Record]:
    found = [each for _, each in handed.bundle.results.records() if isinstance(each, Record)]
    return [each for each in found if each.method.name == method]


def everywhere(handed: Handed, change: Change, method: str = METHOD) -> dict[str, Change]:
    """The change in all records of a method's row."""
    return {f"{each.cell}/{each.evaluator}.json": change for each in own(handed, method)}


def told(found: Any) -> str:
    assert found.verdict is None
    return "; ".join(map(str, found.refused))


def fitting(handed: Handed, tmp_path: Path) -> Callable[[Record], Any]:
    return partial(recheck_fit, place=submissions.place_of(tmp_path / "refit", handed.cache))


def setting(*path: str, value: object) -> Change:
    def change(record: dict[str, Any]) -> None:
        inner = record
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (setting("method", "source", value="the best paper"), "the source of its method"),
        (setting("method", "origin", value="elsewhere"), "the origin of its method"),
        (setting("attack", "source", value="the best paper"), "the source of its attack"),
        (setting("threat_model", "eve", value="everything, the key too"), "its account of Eve's knowledge"),
        (setting("keys", value=33), "and the record says 33"),
        (setting("created", value="2999-01-01T00:00:00+00:00"), "lies in the future"),
        (setting("claim", value=CLAIM), "differ in claim"),
        (setting("scheme", value={"caveat": "none at all"}), "differ in scheme"),
        (setting("dataset", "notes", value=["hand-picked"]), "differ in dataset"),
    ],
)
def test_what_one_record_says_wrongly_is_refused(handed: Handed, change: Change, said: str) -> None:
    (one,) = (each for each in own(handed) if each.evaluator == NEAREST.removesuffix(".json"))
    assert said in told(judged(forged(handed, {f"{one.cell}/{NEAREST}": change})))


def test_records_in_the_cell_of_somebody_else_are_refused(handed: Handed) -> None:
    cell = own(handed)[0].cell
    other = f"digits/dp-simple--smoke-seed0--{'0' * 8}"
    files = {name.replace(cell, other): text for name, text in handed.bundle.files.items()}
    moved = forged(handed, {}, **{"cells/": None})
    made = forged(
        cast(Any, type(handed))(handed.folder, handed.results, _with(moved, files), handed.cache),
        {f"{other}/{each.evaluator}.json": setting("cell", value=other) for each in own(handed)},
    )
    assert f"it lies in another cell than its own, {cell}" in told(judged(made))


def _with(bundle: Any, files: dict[str, bytes]) -> Any:
    from dataclasses import replace

    return replace(bundle, files=files)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (setting("claim", value=CLAIM), "it holds a formal claim, and its method none"),
        (setting("scheme", value={"caveat": "trained at full size"}), "caveat is trained at full size in the record"),
        (setting("dataset", "notes", value=["hand-picked"]), "its data are not those"),
        (setting("dataset", "findings", value=[str(k) for k in range(9)] + ["nine"]), "its data are not those"),
    ],
)
def test_what_a_whole_row_says_wrongly_is_found_by_fitting_again(
    handed: Handed, tmp_path: Path, change: Change, said: str
) -> None:
    made = forged(handed, everywhere(handed, change))
    without = judged(made)
    assert set(tiers(without).values()) == {"arithmetic-checked"}
    assert without.verdict is not None
    row = without.verdict.rows[own(handed)[0].cell]
    assert "data" in row.said  # as the author says
    assert said in told(judged(made, recheck=fitting(handed, tmp_path)))


def test_what_was_fitted_again_is_no_longer_the_authors_word(handed: Handed, tmp_path: Path) -> None:
    found = judged(handed.bundle, recheck=fitting(handed, tmp_path)).verdict
    assert found is not None
    for row in found.rows.values():
        assert not {"data", "formal claim", "caveats and notes of the method"} & {*row.said}
        assert "machine, versions, commit and times" in row.said
    row = found.rows[own(handed)[0].cell]
    assert {*row.controls} == {own(handed, name)[0].cell for name in ("identity", "noise", "hidden-control")}


def test_a_made_up_control_is_found_by_measuring_again(handed: Handed, tmp_path: Path) -> None:
    """Evidence of `noise` under the name of `hidden-control`, and of a weak attack under that of `identity`."""
    again = partial(submissions.again, handed.folder / "again", handed.cache)
    one, other = (
        next(each for each in own(handed, name) if each.evaluator.endswith(end))
        for name, end in (("identity", "nearest-neighbour"), ("identity", "chance"))
    )
    content = handed.bundle.results.evidence(other)
    assert content is not None
    evidence = evidence_of(other, content)

    def change(record: dict[str, Any]) -> None:
        record["evidence"] = evidence_record(bind(pack(evidence), one.key)).model_dump()
        for name in record["scores"]:
            metric = cast(Any, registry.load("metrics", name))()
            figure = score_record(judge(metric, evidence), better=metric.better, unit=metric.unit)
            record["scores"][name] = figure.model_dump(mode="json")

    held = evidence_record(bind(pack(evidence), one.key))
    beside = {evidence_name(one.model_copy(update={"evidence": held})): bind(pack(evidence), one.key)}
    made = forged(handed, {f"{one.cell}/{one.evaluator}.json": change})
    made = _with(made, {**{n: t for n, t in made.files.items() if n != evidence_name(one)}, **beside})
    assert {each.tier.word for each in found_of(judged(made))} == {"arithmetic-checked"}
    assert "it comes out otherwise: " in told(judged(made, rerun=9, again=again))


def test_what_a_bundle_says_is_printed_plainly_and_shortly(
    handed: Handed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[31m\x07\u202eEVIL\r" * 5000
    (one, *_) = own(handed)
    name = f"cells/{one.cell}/{one.evaluator}.json"
    forgeries: Iterable[dict[str, bytes]] = (
        {name: _written(handed, name, evil, "1")},
        {name: _written(handed, name, "status", evil)},
        {name: handed.bundle.files[name].replace(b"sandbox", evil.encode())},
        {"run-secret": evil.encode()},
        {"cells/a/b/c.json": evil.encode()},
    )
    for number, files in enumerate(forgeries):
        path = tmp_path / f"{number}.bundle.zip"
        packed_file(path, {**handed.bundle.files, **files}, evil, None)
        assert main(["leaderboard", "verify", str(path)]) in (1, 2)
        said = capsys.readouterr()
        text = said.out + said.err
        assert not {"\x1b", "\x07", "\u202e", "\r"} & {*text}
        assert max(map(len, text.splitlines())) <= 2100


def _written(handed: Handed, name: str, field: str, value: str) -> bytes:
    record = signed_json.parsed(handed.bundle.files[name])
    record[field] = value
    return signed_json.written(signed_json.attest(record, "record"))


def test_numbers_within_texts_are_compared_as_numbers() -> None:
    assert alike({"a": "scale 2.001, range 1"}, {"a": "scale 2.002, range 1"})
    assert not alike({"a": "scale 2"}, {"a": "scale 2", "b": "3"})
    assert not alike("trained for 100 steps", "trained for 200 steps")
    assert not alike(None, 0.0)
