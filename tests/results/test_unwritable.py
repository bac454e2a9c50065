"""Whatever a command cannot write: one sentence with the place, the reason and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.disk import atomic_file
from bench.disk.atomic_file import make_folder, write_atomically, write_new
from bench.disk.disk_errors import why

COMMANDS = {
    "--site": ["leaderboard", "build", "--results", "{here}", "--site"],
    "--results": ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--metric", "guesswork",
                  "--results"],
    "--dry-run": ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--dry-run", "--results"],
    "--into": ["new", "method", "mine", "--into"],
    "keys": ["keys", "new"],
}  # fmt: skip


@pytest.mark.parametrize("option", COMMANDS)
def test_a_file_in_the_path_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    file, here = tmp_path / "file", tmp_path / "here"
    file.touch()
    here.mkdir()
    assert main([*(part.format(here=here) for part in COMMANDS[option]), str(file / "x/y")]) == 2
    said = capsys.readouterr().err
    assert "Errno" not in said
    assert f"{file} is not a folder; choose another place" in said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk of {place} is full; free some room (`bench clean`"),
        (errno.EDQUOT, "the disk of {place} is full"),
        (errno.EROFS, "the disk of {place} is read-only"),
        (errno.EACCES, "no permission to write to {place}"),
        (errno.ENAMETOOLONG, "File name too long (below {place})"),
    ],
)
@pytest.mark.parametrize("write", [write_new, write_atomically])
def test_a_disk_that_takes_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., object], number: int, said: str
) -> None:
    def fail(*given: object, **more: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic_file.os, "fsync" if number == errno.ENOSPC else "open", fail)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        write(tmp_path / "a", b"text", mode=0o644)
    told = why(caught.value)
    assert told is not None
    assert told.startswith(f"cannot write {tmp_path / 'a'}: {said.format(place=tmp_path)}")


def test_what_cannot_be_removed_either_does_not_hide_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(given[0]))

    monkeypatch.setattr(atomic_file.os, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_atomically(tmp_path / "a", b"text")
    assert str(why(caught.value)).startswith(f"cannot write {tmp_path / 'a'}: the disk of {tmp_path} is read-only")


def test_a_disk_that_takes_nothing_is_named_wherever_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(tmp_path / "artefacts"))

    monkeypatch.setattr("bench.shadowing.guard", refuse)
    assert main(["list"]) == 2
    assert f"cannot write {tmp_path / 'artefacts'}: the disk of {tmp_path} is read-only;" in capsys.readouterr().err


def test_what_is_there_is_not_called_a_full_disk(tmp_path: Path) -> None:
    write_new(tmp_path / "a", b"one", mode=0o644)
    with pytest.raises(FileExistsError) as caught:
        write_new(tmp_path / "a", b"two", mode=0o644)
    assert "it is there already, and is not overwritten" in str(why(caught.value))
    make_folder(tmp_path)
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "a")
