"""The style guide's rules on words that a program can check.

A module, class or function opens its docstring with a line of at most twelve words that begins with no question word.
Some words stand in no docstring, comment, string or page, tests included. No file name stands twice within `bench`.
`python tests/test_words.py FOLDER` lists what a folder breaks.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 12  # words of a docstring's first line
OPENINGS = {"what", "where", "how", "whether", "which", "that", "whoever", "nobody"}
WORDS = re.compile(r"\b(nobody|whoever|of\s+which|likewise)\b", re.IGNORECASE)
PAGES = {".css", ".html", ".js", ".md", ".tmpl", ".toml", ".yaml"}
OTHERS = ("leaderboard/published/", "leaderboard/submissions/", "leaderboard/static/uplot/")  # data, and others' texts
SHARED_NAMES = {"__init__.py", "__main__.py"}
TOP = ("README.md", "CONTRIBUTING.md", "CITATION.cff", "pyproject.toml", "tox.ini")  # the room "."


def rooms() -> dict[str, list[Path]]:
    """The product's files by room: the folders of `bench`, its own files, the other packages, and the top texts."""
    found: dict[str, list[Path]] = defaultdict(list)
    found["."] = [ROOT / name for name in TOP]
    for package in ("attacks", "bench", "docs", "leaderboard", "methods", "metrics"):
        for path in sorted((ROOT / package).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in {".py", *PAGES} and not name.startswith(OTHERS):
                inner = package == "bench" and name.count("/") > 1
                found["/".join(name.split("/")[:2]) if inner else package].append(path)
    found["tests"] = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    return dict(found)


def repeated_names(paths: list[Path]) -> Iterator[tuple[Path, int, str]]:
    """Python files of `bench` that share their name with another one; commands are named by their verb."""
    places = defaultdict(list)
    for path in paths:
        part = path.relative_to(ROOT).parts
        if part[0] == "bench" and path.suffix == ".py" and path.name not in SHARED_NAMES and "commands" not in part:
            places[path.name].append(path)
    for same in places.values():
        for path in same if len(same) > 1 else []:
            yield path, 1, "the name of " + ", ".join(str(p.relative_to(ROOT)) for p in same if p != path)


def first_lines(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line number and breach of each first line of a docstring that is too long or opens with a question word."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        words = (ast.get_docstring(node) or "").partition("\n")[0].split()
        number = node.body[0].lineno if words else 1
        if len(words) > LONGEST:
            yield number, f"a first line of {len(words)} words: {' '.join(words)}"
        if words and (opening := re.sub(r"\W.*", "", words[0].lower())) in OPENINGS:
            yield number, f"a first line that begins with {opening!r}: {' '.join(words)}"


def words(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """Line number and breach of each word that stands nowhere."""
    for match in WORDS.finditer(text):
        line = text[: match.start()].count("\n")
        yield first + line, f"the word {' '.join(match[0].split())!r}: {text.splitlines()[line].strip()}"


def breaches(path: Path) -> Iterator[tuple[Path, int, str]]:
    """What one file breaks, file names aside."""
    if path.suffix != ".py":
        yield from ((path, number, breach) for number, breach in words(path.read_text(encoding="utf-8")))
        return
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    if not path.is_relative_to(ROOT / "tests"):
        yield from ((path, number, breach) for number, breach in first_lines(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((path, number, breach) for number, breach in words(node.value, node.lineno))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from ((path, number, breach) for number, breach in words(token.string, token.start[0]))


def breaches_by_room() -> dict[str, list[str]]:
    """Each room's breaches, "file:line: breach"."""
    files = rooms()
    repeated = list(repeated_names([path for paths in files.values() for path in paths]))
    return {
        room: [
            f"{path.relative_to(ROOT)}:{number}: {breach}"
            for path, number, breach in sorted(
                {*(b for b in repeated if b[0] in paths), *(b for path in paths for b in breaches(path))}
            )
        ]
        for room, paths in files.items()
    }


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return breaches_by_room()


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_keeps_the_rules_on_words(room: str, found: dict[str, list[str]]) -> None:
    assert not found[room], "\n".join(found[room])


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ('"""What a file holds."""', 1),
        ('"""Rows."""\n\n\nclass Row:\n    """\n    Whether, by now, it is one.\n    """', 1),
        ('def one() -> int:\n    """A first line of a docstring that goes on for thirteen words at least."""', 1),
        ('message = f"{name}: nobody\'s"', 1),
        ('message = (\n    "two, of "\n    "which one"\n)', 1),
        ("x = 1  # Likewise", 1),
        ('"""The first line of a docstring that goes on for twelve words."""\n\nwhich = 1  # which', 0),
        ('"""Whatever comes; nobodies.\n\nWhat follows is free.\n"""', 0),
    ],
)
def test_a_breach_is_found(source: str, number: int, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source, encoding="utf-8")
    assert len(list(breaches(file))) == number


def test_a_repeated_name_is_found() -> None:
    names = ["bench/a/one.py", "bench/b/one.py", "bench/b/__init__.py", "bench/__init__.py", "methods/one.py"]
    names += ["bench/cli/commands/two.py", "bench/two.py"]
    paths = [ROOT / name for name in names]
    assert [path for path, _, _ in repeated_names(paths)] == paths[:2]


if __name__ == "__main__":
    wanted = [path.rstrip("/") for path in sys.argv[1:]] or [""]
    for lines in breaches_by_room().values():
        for line in lines:
            if line.startswith(tuple(wanted)):
                print(line)
