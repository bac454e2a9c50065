"""Leaking plug-ins on data that may not be shared: no byte of what may leave the machine, or be shown, is of theirs."""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from made.forked import Forked
from PIL import Image

from bench.results.disclosure_check import PEAKS
from bench.results.reason import PHASES, SAID
from bench.results.records import Record
from bench.results.results import Results

HERE = Path(__file__).parent
PIXELS = "QzKwXvJyCANARYjq"
FOLDER = "patient-10000032"
ENDING = ("not-applicable", "contract", "contract-colon", "data", "class")


BOTH = """
import json, sys
from pkgutil import resolve_name
from bench.cli import main
from made.forked import quicken
quicken(lambda name, value: setattr(resolve_name(name.rpartition(".")[0]), name.rpartition(".")[2], value))
code, _ = [main(words) for words in json.loads(sys.argv[1])]
sys.exit(code)
"""


@dataclass(frozen=True)
class Ran:
    """A run on confidential images: its folder, and all that the terminal showed."""

    folder: Path
    terminal: bytes
    code: int


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("leaks")
    line = np.frombuffer(PIXELS.encode(), np.uint8)
    for kind in ("a", "b"):
        (folder / FOLDER / kind).mkdir(parents=True)
        for number in range(40):
            grey = np.random.default_rng(number + 100 * (kind == "b")).integers(0, 255, (16, 16), dtype=np.uint8)
            grey[0] = line
            Image.fromarray(grey).save(folder / FOLDER / kind / f"{number}.png")
    (folder / "tmp").mkdir()
    leaky = HERE / "leaky.py"
    asked = [*(f"--method={leaky}:LeakyMethod[leak={leak}]" for leak in ("talk", *ENDING))]
    asked += [f"--attack={leaky}:LeakyAttack[leak={leak}]" for leak in ("talk", "not-applicable", "class")]
    asked += [f"--evaluator={leaky}:LeakyEvaluator", f"--metric={leaky}:LeakyMetric", "--metric=reid-auc"]
    command = ["run", *asked, "--dataset", f"folder:{folder / FOLDER}", "--size", "16"]
    command += ["--preset", "smoke", "--jobs", "2", "--device", "cpu", "--results", str(folder / "results")]
    home = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config")}
    environment = {**os.environ, **home, "TMPDIR": str(folder / "tmp")}
    status = ["status", "--results", str(folder / "results")]
    with (folder / "shown").open("wb") as shown:
        line = [sys.executable, "-c", BOTH, json.dumps([command, status])]
        code = Forked(line, env=environment, stdout=shown).wait()
    return Ran(folder, (folder / "shown").read_bytes(), code)


def forms(text: str) -> Iterator[bytes]:
    """A text as it could stand in a file."""
    raw = text.encode("latin-1")
    yield from (raw, raw[::-1])
    yield from (text.encode(kind) for kind in ("utf-16-le", "utf-16-be", "utf-32-le"))
    yield from (raw.hex().encode(), raw.hex().upper().encode(), raw.hex(" ").encode(), raw.hex(":").encode())
    for ahead in range(3):  # the alignments of base 64, without what the neighbours decide
        coded = base64.b64encode(b"\0" * ahead + raw).rstrip(b"=")
        yield coded[(ahead * 8 + 5) // 6 : -1]
    yield base64.b32encode(raw).rstrip(b"=")[:-1]
    yield str(int.from_bytes(raw[:6], "big")).encode()
    yield "".join(f"\\u{mark:04x}" for mark in raw).encode()
    yield "".join(f"&#{mark};" for mark in raw).encode()
    yield "".join(f"%{mark:02X}" for mark in raw).encode()
    for between in (",", ", ", " ", "\n"):
        yield between.join(str(mark) for mark in raw).encode()
    yield json.dumps(list(raw), indent=2).encode()[2:-2].strip()
    yield struct.pack(f"<{len(raw)}f", *(mark / 255 for mark in raw))
    yield struct.pack(f"<{len(raw)}f", *raw)
    yield struct.pack(f"<{len(raw)}d", *(mark / 255 for mark in raw))


CANARIES = {form for text in (PIXELS, "CANARY", FOLDER) for form in forms(text)}


def places(folder: Path) -> list[Path]:
    """Every file of results, pages, cache and temporary files that others could read."""
    found = [path for name in ("results", "cache", "config", "tmp") for path in (folder / name).rglob("*")]
    shut = [part for part in folder.rglob("*") if part.is_dir() and part.stat().st_mode & 0o077 == 0]
    return [path for path in found if not any(part == path or part in path.parents for part in shut)]


def held(content: bytes) -> list[bytes]:
    return [form for form in CANARIES if form in content]


def test_leaking_plugins_leave_nothing_of_theirs_outside_the_private_store(ran: Ran) -> None:
    """One test, so that the run is made once: workers of the test runner would each make their own."""
    _no_byte_outside_the_private_store_holds_a_canary(ran)
    _no_byte_of_the_terminal_holds_a_canary_of_plugins(ran)
    _records_take_codes_phases_and_figures(ran)
    _the_canaries_were_there_to_be_found(ran)


def _no_byte_outside_the_private_store_holds_a_canary(ran: Ran) -> None:
    files = places(ran.folder)
    assert {".json", ".html", ".csv"} <= {path.suffix for path in files}
    for path in files:
        assert not held(str(path.relative_to(ran.folder)).encode()), path
        if path.is_file():
            assert not held(path.read_bytes()), path


def _no_byte_of_the_terminal_holds_a_canary_of_plugins(ran: Ran) -> None:
    assert ran.terminal.count(b"done") > 3
    named = ran.terminal.replace(f"folder:{ran.folder / FOLDER}".encode(), b"")  # as the user wrote it
    assert not held(named)


def _records_take_codes_phases_and_figures(ran: Ran) -> None:
    records = [record for _, record in Results(ran.folder / "results").records() if isinstance(record, Record)]
    assert ran.code == 1
    assert {record.code for record in records} >= {None, "not-applicable", "contract", "error"}
    for record in records:
        assert record.dataset is not None
        assert not record.dataset.shareable
        assert record.phase is None or record.phase in PHASES
        assert record.code is None or (record.reason or "").startswith(f"{record.code}: {SAID[record.code]}")
        assert (record.scheme, record.threat_model, record.pictures) == ({}, {}, {})
        assert set(record.details) <= {PEAKS}
        assert set(record.details.get(PEAKS, ())) <= set(PHASES)
        assert set(record.seconds) <= {"open", "total", "fit", "wall", "cpu"}
    figures = [record for record in records if record.scores]
    assert {"reid-auc", "leaky.py:LeakyMetric"} & {name for record in figures for name in record.scores}
    claims = [record.claim for record in records if record.claim is not None]
    assert claims
    assert {(claim.epsilon, claim.derived) for claim in claims} == {(1.0, 2.0)}


def _the_canaries_were_there_to_be_found(ran: Ran) -> None:
    """Every plug-in did leak: the log holds it; and the search finds it there."""
    logs = list((ran.folder / "results" / "artefacts" / "logs").rglob("*.log"))
    told = [path for path in logs if held(path.read_bytes())]
    assert len(told) >= 10
    assert all(path.stat().st_mode & 0o077 == 0 for path in logs)
    assert (ran.folder / "results" / "artefacts").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("form", sorted(forms(PIXELS)))
def test_the_search_finds_every_form(form: bytes) -> None:
    assert held(b"{something " + form + b" else}")
