"""A machine on which bubblewrap does not work says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import sandbox


@pytest.mark.parametrize(
    ("script", "seconds", "reason"),
    [
        (None, 60.0, "the program bwrap (of the package bubblewrap) is not installed"),
        ("#!/bin/sh\necho no user namespaces >&2\nexit 1\n", 60.0, "bwrap fails here: no user namespaces"),
        ("#!/bin/sh\nexec sleep 1000\n", 0.5, "bwrap cannot be run (TimeoutExpired)"),
        ("#!/bin/sh\n", 60.0, None),
    ],
)
def test_a_sandbox_that_does_not_work_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, seconds: float, reason: str | None
) -> None:
    program = tmp_path / "bwrap"
    program.write_text(script or "")
    program.chmod(0o755)
    monkeypatch.setattr(sandbox, "BWRAP", None if script is None else str(program))
    monkeypatch.setattr(sandbox, "SECONDS", seconds)
    assert sandbox.why_not.__wrapped__() == reason


def test_a_file_that_is_no_program_is_named_by_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("")
    monkeypatch.setattr(sandbox, "BWRAP", str(program))
    reason = str(sandbox.why_not.__wrapped__())
    assert reason.startswith("bwrap fails here: ")
    assert str(program) in reason


@pytest.mark.parametrize(
    ("program", "restricted", "told"),
    [
        (None, "1\n", sandbox.INSTALL),
        (
            "bwrap",
            "1\n",
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, on the host of a container",
        ),
        ("bwrap", "0\n", "let bwrap make user namespaces here"),
        ("bwrap", None, "let bwrap make user namespaces here"),
    ],
)
def test_the_remedy_fits_what_keeps_sandboxes_from_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, restricted: str | None, told: str
) -> None:
    monkeypatch.setattr(sandbox, "BWRAP", program)
    monkeypatch.setattr(sandbox, "RESTRICTED", tmp_path / sandbox.RESTRICTED.name)
    if restricted is not None:
        sandbox.RESTRICTED.write_text(restricted)
    assert sandbox.remedy().startswith(told)
