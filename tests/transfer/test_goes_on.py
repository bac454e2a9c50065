"""A run goes on in a folder that was joined or pulled, with what is missing and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli import main

ASKED = ("--attack", "none", "--metric", "max-dispersion", "--dataset", "digits", "--preset", "smoke", "--limit", "60",
         "--device", "cpu", "--isolation", "none", "--no-site")  # fmt: skip
SECRET = bytes(range(32))


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_bytes(SECRET)
    return path


def ran(results: Path, secret: Path, *methods: str) -> int:
    named = [word for method in methods for word in ("--method", method)]
    return main(["run", *named, *ASKED, "--results", str(results), "--secret", str(secret)])


def planned(results: Path, capsys: pytest.CaptureFixture[str], *methods: str) -> str:
    """The last line of a dry run."""
    capsys.readouterr()
    named = [word for method in methods for word in ("--method", method)]
    assert main(["run", *named, *ASKED, "--results", str(results), "--dry-run"]) == 0
    return capsys.readouterr().out.splitlines()[-1]


def records(results: Path) -> dict[str, bytes]:
    return {path.relative_to(results).as_posix(): path.read_bytes() for path in results.glob("cells/*/*/*.json")}


def test_a_run_goes_on_in_a_joined_and_in_a_pulled_folder(
    tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, joined, pulled = (tmp_path / name for name in ("first", "second", "joined", "pulled"))
    assert ran(first, secret, "identity") == 0
    assert ran(second, secret, "mosaic") == 0
    assert main(["merge", str(first), str(second), "--into", str(joined)]) == 0
    both = records(joined)
    assert len(both) == 2
    assert planned(joined, capsys, "identity", "mosaic") == "0 to run, 2 to keep; nothing was run"

    assert main(["push", str(tmp_path / "target"), "--results", str(joined)]) == 0
    assert main(["pull", str(tmp_path / "target"), "--results", str(pulled)]) == 0
    assert records(pulled) == both
    capsys.readouterr()
    assert ran(pulled, secret, "identity", "mosaic", "blur") == 0
    assert "1 computed, 2 already there" in capsys.readouterr().out
    assert {name: text for name, text in records(pulled).items() if name in both} == both
