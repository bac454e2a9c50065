"""Data roots: find, stamp and describe the raw files of data sets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from bench.contract.source import DataError
from bench.data.yaml_text import YamlError, read_yaml

VARIABLE = "BENCH_DATA"
DATA_ROOTS = "data_roots"
"""The one key of the user's configuration file."""
STAY = (
    "The data stay on your machine; this program never downloads them and puts nothing else in their place (for a run "
    "without access: --dataset synth-mimic)."
)


def config_path() -> Path:
    """The user's configuration file; its key `data_roots` is a list of folders."""
    return Path(platformdirs.user_config_dir("veil-bench")) / "config.yaml"


def resolve(
    values: Sequence[Path | str] = (), *, environment: Mapping[str, str] | None = None, config: Path | None = None
) -> tuple[Path, ...]:
    """The data roots in search order: --data-root, BENCH_DATA, configuration file.

    Args:
        values: Folders named on the command line.
        environment: None stands for the process's own. BENCH_DATA separates folders as PATH does.
        config: None stands for `config_path()`; the file need not exist.

    Raises:
        DataError: If the config file is not the YAML it should be.
    """
    environment = os.environ if environment is None else environment
    named = [str(value) for value in values]
    named += [part for part in environment.get(VARIABLE, "").split(os.pathsep) if part]
    named += _configured(config_path() if config is None else config)
    return tuple(dict.fromkeys(Path(os.path.realpath(Path(part).expanduser())) for part in named))


def locate(roots: Sequence[Path], *, name: str, folders: Sequence[str], markers: Sequence[str], obtain: str) -> Path:
    """The first folder that holds one of the `markers`.

    Args:
        roots: Data roots; each is tried itself and with each of `folders` below it.
        name: The data set, for the message.
        folders: Usual names of its folder, relative to a root.
        markers: Files that are not empty, or folders, relative to the folder; one must be there.
        obtain: How to get the data, for the message.

    Raises:
        DataError: If no folder holds a marker; the text names every place looked at.
    """
    tried = [root / folder for root in roots for folder in ("", name, *folders)]
    empty = list[Path]()
    for place in tried:
        there = [place / marker for marker in markers if (place / marker).exists()]
        if any(path.is_dir() or path.stat().st_size for path in there):
            return Path(os.path.realpath(place))
        empty += there
    names = ", ".join(dict.fromkeys((name, *folders)))
    looked = "\n".join(
        f"  {root}, there or in {names}" if root.is_dir() else f"  {root}  (no such folder)"
        for root in dict.fromkeys(roots)
    )
    cut = f"\n  {empty[0]} has 0 bytes: fetch it again" if empty else ""
    raise DataError(
        f"{name}: expected {' or '.join(markers)} in one of\n{looked or '  (no data root is set)'}{cut}\n"
        f"and found it nowhere. Name the folder above the data with --data-root, {VARIABLE} or data_roots in "
        f"{config_path()}. {obtain}"
    )


def stamp_files(paths: Iterable[Path]) -> str:
    """A line for each existing file: path, bytes and time of change."""
    lines = []
    for path in sorted(paths):
        if path.exists():
            status = path.stat()
            lines.append(f"{path}|{status.st_size}|{status.st_mtime_ns}")
    return "\n".join(lines)


def stamp_images(folders: Iterable[Path], top: Path, obtain: str, *, sizes: bool = False) -> str:
    """`stamp_folder` of a set's image folders; DataError if there are no images."""
    stamped = [_stamped(folder, sizes) for folder in folders if folder.is_dir()]
    if not any(entries for entries, _ in stamped):
        raise DataError(f"expected images in {top}, found none. {obtain}")
    return "\n".join(line for _, line in stamped)


def stamp_folder(folder: Path, *, sizes: bool = False) -> str:
    """A line for a folder: path, count, hash (also of `sizes`)."""
    return _stamped(folder, sizes)[1]


def _stamped(folder: Path, sizes: bool) -> tuple[int, str]:
    """The number of entries, and the line of `stamp_folder`."""
    seen = hashlib.sha256()
    with os.scandir(folder) as entries:
        names = sorted(entries, key=lambda entry: entry.name)
        for entry in names:
            seen.update(entry.name.encode("utf-8", "surrogateescape") + b"\0")
            if sizes:
                try:
                    status = entry.stat()
                except OSError:  # a link to nowhere or in circles; decoding will say so
                    continue
                seen.update(f"{status.st_size}|{status.st_mtime_ns}".encode())
    return len(names), f"{folder}|{len(names)}|{seen.hexdigest()}"


def _configured(config: Path) -> list[str]:
    if not config.exists():
        return []
    try:
        content = read_yaml(config) or {}
    except (OSError, YamlError) as error:
        raise DataError(f"{config} is not valid YAML: {error}") from error
    if isinstance(content, dict) and (unknown := [key for key in content if key != DATA_ROOTS]):
        raise DataError(f"{config}: unknown key {unknown[0]!r}; the file has one key, {DATA_ROOTS}")
    named = content.get(DATA_ROOTS, []) if isinstance(content, dict) else None
    if isinstance(named, str):
        named = [named]
    if not isinstance(named, list) or not all(isinstance(part, str) for part in named):
        raise DataError(f"{config}: {DATA_ROOTS} must be a list of folders, got {content!r}")
    return named


@contextmanager
def downloading(name: str, obtain: str) -> Iterator[None]:
    """Turn a failure of the block into a DataError with other instructions."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise DataError(f"{name}: the download failed ({error}). {obtain}") from error


def physionet(title: str, address: str) -> str:
    """Instructions for a data set with credentialed access on PhysioNet."""
    return (
        f"{title} needs credentialed access: register at https://physionet.org, complete the CITI course 'Data or "
        f"Specimens Only Research', sign the data use agreement at {address}, then fetch it there with your own "
        f"account. {STAY}"
    )
