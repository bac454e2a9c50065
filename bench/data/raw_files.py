"""Raw files of data sets: roots, folders, image files, and stamps.

Links are followed, wherever they lead, and counted. A link that leads nowhere, to itself, or back to a folder that it
was reached through, is an error.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import ClassVar

import numpy as np
import platformdirs

from bench.contract.source import DataError, Source
from bench.data.dicom import is_dicom
from bench.data.subjects import spelling
from bench.data.yaml_text import YamlError, read_yaml
from bench.disk.system_names import system_names

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

    None stands for the process's environment and for `config_path()`. Raises DataError if that is not the YAML it
    should be.
    """
    environment = os.environ if environment is None else environment
    named = [str(value) for value in values]
    named += [part for part in environment.get(VARIABLE, "").split(os.pathsep) if part]
    named += _configured(config_path() if config is None else config)
    return tuple(dict.fromkeys(Path(os.path.realpath(Path(part).expanduser())) for part in named))


def locate(roots: Sequence[Path], *, name: str, folders: Sequence[str], markers: Sequence[str], obtain: str) -> Path:
    """The first folder that holds one of the `markers`.

    Each root is tried itself and with each of `folders` below it; a marker is a folder, or a file that is not
    empty. Raises DataError with every place looked at.
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
        f"and did not find it. Name the folder above the data with --data-root, {VARIABLE} or data_roots in "
        f"{config_path()}. {obtain}"
    )


class FileSource(Source):
    """A data set in a folder below a data root.

    `folders` are its usual names, one of `markers` tells it, and `required` parts must be there. Its state are the
    `tables` and the folders of `images` (patterns): names, and with `sizes` also bytes and times of images.
    """

    folders: ClassVar[tuple[str, ...]]
    markers: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[str, ...]]
    images: ClassVar[tuple[str, ...]] = ()
    sizes: ClassVar[bool] = False

    def top(self, roots: Sequence[Path]) -> Path:
        """The set's folder; DataError as `locate`, or for missing parts."""
        top = locate(roots, name=self.name, folders=self.folders, markers=self.markers, obtain=self.obtain)
        missing = [part for part in self.required if not (top / part).exists()]
        if missing:
            raise DataError(f"{self.name}: expected {' and '.join(missing)} in {top}, found none. {self.obtain}")
        return top

    def stamp(self, roots: Sequence[Path]) -> str:
        """State of tables and images."""
        top = self.top(roots)
        tables = stamp_files(path for pattern in self.tables for path in matching(top, pattern))
        folders = sorted(folder for pattern in self.images for folder in matching(top, pattern))
        return f"{tables}\n{stamp_images(folders, top, self.obtain, sizes=self.sizes)}" if self.images else tables


def matching(top: Path, pattern: str) -> list[Path]:
    """Paths below a folder that match a pattern, in order.

    Unlike `Path.glob`, it takes a folder that may not be read for no empty one.

    Raises:
        DataError: A folder on the way may not be read.
    """
    found = [top]
    for part in PurePath(pattern).parts:
        try:
            entries = [entry for folder in found if folder.is_dir() for entry in sorted(folder.iterdir())]
        except OSError as error:
            raise DataError(f"{error.filename} may not be read ({error.strerror}): let this account read it") from error
        found = [entry for entry in entries if fnmatchcase(entry.name, part)]
    return found


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
    """A line for a folder: path, number of names, and hash."""
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


ENDINGS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pgm", ".ppm", ".pnm", ".jp2",
    ".j2k", ".dcm", ".dicom",
)  # fmt: skip
_HIDDEN = re.compile(r"\._|\.@__thumb|\.(trash|recycle|thumb)", re.IGNORECASE)
_DIRECTORY = "dicomdir"  # DICOM's list of the files beside it


@dataclass(frozen=True)
class Tree:
    """Folders and files below a folder, with links.

    Args:
        folders: The folder itself and all below, in order.
        files: Files, in order.
        system: Files and folders with names that systems make (`bench.disk.system_names`), in order.
    """

    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    system: tuple[Path, ...] = ()

    def notes(self, kept: Collection[str] = ()) -> Iterator[str]:
        """A note that counts images under system names, `kept` ones aside."""
        images = {str(image) for path in self.system for image in _images_in(path)}
        if left := len(images.difference(kept)):
            yield (
                f"{left} images in recycle bins, thumbnails, hidden files and other names that systems make are left "
                f"out"
            )


def walk(top: Path) -> Tree:
    """The tree below `top`; DataError for dead or circular links."""
    folders: list[Path] = []
    files: list[Path] = []
    wrong: list[Path] = []
    system: list[Path] = []
    waiting = [(top, frozenset[tuple[int, int]]())]
    while waiting:
        folder, above = waiting.pop()
        try:
            status = folder.stat()
            here = (status.st_dev, status.st_ino)
            if here in above:
                raise OSError("a link back to a folder above it")
            names, made = listed(folder)
        except OSError:
            wrong.append(folder)
            continue
        folders.append(folder)
        system += made
        for path in names:
            if path.is_dir():
                waiting.append((path, above | {here}))
            else:
                (files if path.is_file() else wrong).append(path)
    if wrong:
        raise DataError(
            f"{len(wrong)} names in the folder are links that lead nowhere or in circles, folders that cannot be read, "
            f"or pipes and the like. `find -L FOLDER -type l` lists such links; remove or repair them."
        )
    return Tree(tuple(sorted(folders)), tuple(sorted(files)), tuple(sorted(system)))


def listed(folder: Path) -> tuple[list[Path], list[Path]]:
    """Sorted entries of a folder, and those with system names.

    Raises OSError for what is no folder that may be read.
    """
    names = sorted(os.listdir(folder))  # noqa: PTH208
    made = system_names(names)
    return [folder / name for name in names if name not in made], [folder / name for name in sorted(made)]


def has_system_name(listed: str) -> bool:
    """If a path has a system name, hidden ones aside."""
    parts = [part for part in PurePath(listed).parts if not part.startswith(".") or _HIDDEN.match(part)]
    return any(system_names([part]) for part in parts)


def _images_in(path: Path) -> Iterator[Path]:
    """The readable images of a file or folder."""
    inside = (Path(place, name) for place, _, names in os.walk(path) for name in names) if path.is_dir() else (path,)
    return (each for each in inside if each.is_file() and is_image(each))


def links_note(paths: Sequence[Path], folder: Path | None) -> Iterator[str]:
    """A note if files are reached through links; counts those outside `folder`."""
    homes: dict[Path, str] = {}
    top = None if folder is None else os.path.join(os.path.realpath(folder), "")  # noqa: PTH118
    linked = outside = 0
    for path in paths:
        home = homes.get(path.parent)
        if home is None:
            home = homes[path.parent] = os.path.realpath(path.parent)
        plain = os.path.join(home, path.name)  # noqa: PTH118
        real = os.path.realpath(path) if path.is_symlink() else plain
        linked += real != os.path.abspath(path)  # noqa: PTH100
        outside += top is not None and not real.startswith(top)
    if linked or outside:
        yield f"{linked} of {len(paths)} images are reached through links, and {outside} lie outside the set's folder"


def is_image(path: Path) -> bool:
    """True for image endings, the DICOM mark, and unreadable files."""
    if path.suffix.lower() in ENDINGS:
        return True
    try:
        return path.name.lower() != _DIRECTORY and is_dicom(path)
    except OSError:
        return True


def absent(top: Path, listed: Iterable[str]) -> list[str]:
    """The reason for each missing `listed` file, without files' names."""
    try:
        there = {_form(str(path.relative_to(top))) for path in walk(top).files}
    except DataError:
        there = set()
    return [_absent(name, there) for name in listed]


def _absent(name: str, there: set[str]) -> str:
    if not name.strip():
        return "path is blank, expected the name of an image"
    if "\\" in name:
        return "the image was not found: write / between folders, not \\"
    if _form(name) not in there:
        return "the image was not found" + (", but one of that name with an ending" if _ended(name, there) else "")
    return "the image was not found, but one whose name differs in capitals, blanks or how accents are coded"


def _ended(name: str, there: set[str]) -> bool:
    """If a file is called so, but for its ending."""
    return any(other.startswith(f"{_form(name)}.") for other in there)


def _form(name: str) -> str:
    """The normal form of a name, or the name if unreadable."""
    try:
        return spelling(name.replace("\\", "/"))
    except DataError:
        return name


@dataclass(frozen=True, eq=False)
class Present:
    """Rows whose image is here.

    Args:
        rows: (n,) bool over the listed rows.
        paths: Files of those that are here.
        notes: How many are not; empty if all are.
    """

    rows: np.ndarray
    paths: list[Path]
    notes: tuple[str, ...]


def present(paths: Sequence[Path], *, name: str, where: str, obtain: str) -> Present:
    """Find the listed files on this machine; DataError if there are none.

    Folders are listed once; every file of a folder that may not be read counts as present.
    """
    known = dict(_listings({path.parent for path in paths}))
    listings = (known[path.parent] for path in paths)
    rows = np.array([names is None or path.name in names for path, names in zip(paths, listings, strict=True)], bool)
    if not rows.any():
        raise DataError(f"{name}: none of the {len(paths)} listed images was found at {where}. {obtain}")
    gone = int((~rows).sum())
    return Present(
        rows,
        [path for path, here in zip(paths, rows, strict=True) if here],
        (f"{gone} of {len(paths)} listed images are not on this machine",) if gone else (),
    )


def _listings(folders: set[Path]) -> Iterator[tuple[Path, frozenset[str] | None]]:
    """Each folder with its names, None if unreadable (decoding reports it)."""
    for folder in folders:
        try:
            yield folder, frozenset(os.listdir(folder))  # noqa: PTH208
        except PermissionError:
            yield folder, None
        except OSError:
            yield folder, frozenset()


def of_row(words: Sequence[str], rows: Iterable[bool]) -> list[str]:
    """The words of the selected rows."""
    return [word for word, here in zip(words, rows, strict=True) if here]


def attributes_of(attributes: Mapping[str, Sequence[str]], rows: np.ndarray) -> dict[str, list[str]]:
    """The attributes of the selected rows."""
    return {name: of_row(words, rows) for name, words in attributes.items()}
