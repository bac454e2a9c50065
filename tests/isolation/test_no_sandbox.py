"""Without a sandbox, no code of other authors runs unless the user accepts it in so many words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.api import running
from bench.api.running import open_place
from bench.cli import main
from bench.exchange import verify
from bench.isolation import require_sandbox
from bench.plugins import interview, third_party
from bench.plugins.spec import UsageError
from bench.runs.display import Display
from bench.runs.request import Request

REASON = "the program bwrap (of the package bubblewrap) is not installed"
THIEF = """
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from dataclasses import dataclass
from methods.identity import Identity

Path({trace!r}).write_text("ran")

@dataclass(frozen=True)
class Thief(Identity):
    name: ClassVar[str] = "thief"
    role: ClassVar[str | None] = None
"""
FEW = ("--dataset", "digits", "--preset", "smoke", "--attack", "none", "--metric", "max-dispersion", "--no-site",
       "--limit", "40")  # fmt: skip


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap."""
    for module in ("bench.isolation.tenant", "bench.plugins.interview", "bench.sandbox"):
        monkeypatch.setattr(sys.modules[module], "why_not", lambda: REASON)
    monkeypatch.setattr("bench.sandbox.BWRAP", None)


@pytest.fixture
def thief(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A method that leaves a trace when it is imported, and the trace."""
    file, trace = tmp_path / "thief.py", tmp_path / "trace"
    file.write_text(THIEF.format(trace=str(trace)))
    third_party.stand_in.cache_clear()
    interview.UNCONFINED.set(False)
    yield f"{file}:Thief", trace
    interview.UNCONFINED.set(True)


def run(folder: Path, method: str, *more: str) -> int:
    return main(["run", "--method", method, "--results", str(folder / "results"), *FEW, *more])


@pytest.mark.isolated
@pytest.mark.parametrize("setting", [None, "processes"])
def test_code_of_other_authors_is_not_even_imported(
    bare: None, thief: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], setting: str | None,
) -> None:  # fmt: skip
    if setting is not None:
        monkeypatch.setenv("BENCH_ISOLATION", setting)
    method, trace = thief
    for command in (["run"], ["run", "--dry-run"]):
        assert main([*command, "--method", method, "--results", str(tmp_path / "results"), *FEW]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "thief.py:Thief is by another author and has no sandbox here" in said
        assert "apt-get install bubblewrap" in said
        assert "--isolation processes" in said
    assert not trace.exists()


@pytest.mark.isolated
def test_it_runs_if_the_user_says_so_and_the_record_tells(
    bare: None, thief: tuple[str, Path], tmp_path: Path, quick_rooms: None
) -> None:
    method, trace = thief
    assert run(tmp_path, method, "--isolation", "processes") == 0
    assert trace.exists()
    (record,) = (json.loads(path.read_text()) for path in (tmp_path / "results" / "cells").rglob("*.json"))
    assert record["isolation"] == "processes"


@pytest.mark.isolated
def test_methods_of_this_project_go_on_as_before(bare: None, tmp_path: Path, quick_rooms: None) -> None:
    assert run(tmp_path, "identity") == 0
    (record,) = (json.loads(path.read_text()) for path in (tmp_path / "results" / "cells").rglob("*.json"))
    assert record["isolation"] == "processes"


def test_a_description_without_consent_is_refused(bare: None, thief: tuple[str, Path]) -> None:
    """`status`, `verify` and `list` describe plug-ins as well, and take no wish."""
    method, trace = thief
    with pytest.raises(UsageError, match="it is not even imported"):
        third_party.stand_in("methods", third_party.parse(method), "smoke")
    assert not trace.exists()


@pytest.mark.parametrize("setting", ["none", "processes", "auto"])
def test_neither_reruns_nor_seals_go_without_a_sandbox(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("BENCH_ISOLATION", setting)
    for more in ({"rerun": 0}, {"rerun": 1}, {"sealed": True}):
        with pytest.raises(UsageError, match=r"needs a sandbox.*apt-get install bubblewrap"):
            verify.verify(tmp_path / "any.bundle.zip", place=None, **more)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs a sandbox"):
        require_sandbox("a draw")


@pytest.mark.parametrize(
    ("why", "match"), [(REASON, "--draw needs a sandbox"), (None, "goes with --isolation sandbox")]
)
def test_a_run_of_a_draw_takes_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str | None, match: str
) -> None:
    monkeypatch.setattr(sys.modules["bench.isolation.tenant"], "why_not", lambda: why)
    request = Request({"methods": ["identity"], "datasets": ["digits"], "preset": "smoke", "isolation": "processes"})
    with pytest.raises(UsageError, match=match):
        running.run(request, open_place(tmp_path / "results"), running.Observer(Display()), draw=tmp_path / "draw.json")
