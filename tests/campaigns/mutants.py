"""Mutation check: break random places of the product, one at a time, and run the nearest tests.

`python tests/campaigns/mutants.py --places 40 --seed 0` works in a copy of the tree. A place is a comparison, number,
operator, `not`, `and` or `or` that is turned round, or a function that returns at once. The nearest tests are the
module's doctests, the mirrored test file, the test files that import or name the module, those that import a module
that imports it, and the rest of its room. A test that fails on the unbroken code too does not count. Survivors are
printed last; 90 % should be caught.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("attacks", "bench", "leaderboard", "methods", "metrics")
COMPARISONS = {
    "==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in", "not in": "in", "is": "is not",
    "is not": "is",
}  # fmt: skip
OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
MOST_TESTS = 12  # test files a place


@dataclass(frozen=True)
class Place:
    """One way to break a file: `new` takes the place of the characters from `start` to `end`."""

    file: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old!r} -> {self.new!r}"


def places(file: Path) -> Iterator[Place]:
    """All ways to break the functions of a file, relative to `ROOT`."""
    text = (ROOT / file).read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        raw = text[starts[line - 1] : starts[line]].encode()
        return starts[line - 1] + len(raw[:column].decode())

    def place(node: ast.AST, start: int, end: int, new: str) -> Place:
        return Place(file, node.lineno, start, end, text[start:end], new)  # type: ignore[attr-defined]

    def between(node: ast.AST, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Place]:
        start = offset(left.end_lineno or 0, left.end_col_offset or 0)
        found = re.search(
            rf"(?<![\w<>=!*/]){re.escape(old)}(?![\w<>=*/])", text[start : offset(right.lineno, right.col_offset)]
        )
        if found:
            yield place(node, start + found.start(), start + found.end(), new)

    names = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
             ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}  # fmt: skip
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if len(body) > 1:
            start = offset(body[0].lineno, body[0].col_offset)
            yield place(body[0], start, start, f"return None\n{' ' * body[0].col_offset}")
        for node in (inner for statement in body for inner in ast.walk(statement)):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                old = names[type(node.ops[0])]
                yield from between(node, node.left, node.comparators[0], old, COMPARISONS[old])
            elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
                yield from between(node, node.left, node.right, *OPERATORS[type(node.op)])
            elif isinstance(node, ast.BoolOp):
                old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                yield from between(node, node.values[0], node.values[1], old, new)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                start = offset(node.lineno, node.col_offset)
                yield place(node, start, start + len("not "), "")
            elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
                start, end = (
                    offset(node.lineno, node.col_offset),
                    offset(node.end_lineno or 0, node.end_col_offset or 0),
                )
                if text[start:end] and text[start - 1] not in "{:.":  # no format of an f-string
                    new = str(not node.value) if isinstance(node.value, bool) else f"({text[start:end]} + 1)"
                    yield place(node, start, end, new)


def imports(text: str, module: str) -> bool:
    """True if a source text names the module or imports it from its package."""
    parent, _, stem = module.rpartition(".")
    pattern = rf"\b{re.escape(module)}\b|from {re.escape(parent)} import (?:\([\w\s,]*|[\w ,]*)\b{stem}\b"
    return re.search(pattern, text) is not None


def dotted(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def nearest_tests(file: Path) -> list[str]:
    """The module's doctests, then test files from the mirrored one to the rest of its room; short ones first."""
    module = dotted(file)
    stem = module.rpartition(".")[2]
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))
             if path.parent.name != "benchmarks"}  # fmt: skip
    room = (
        "tests"
        if len(file.parts) == 2 and file.parts[0] == "bench"
        else f"tests/{Path(*file.parts[file.parts[0] == 'bench' :]).parts[0]}"
    )
    users = [
        dotted(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if imports(path.read_text(encoding="utf-8"), module)
    ]
    written = re.compile(rf"\b{stem.replace('_', '-')}\b")
    kinds = (
        [path for path in texts if stem.strip("_") in path.stem],
        [path for path, text in texts.items() if imports(text, module)],
        [path for path, text in texts.items() if written.search(text)],
        [path for path, text in texts.items() if any(imports(text, user) for user in users)],
        [path for path in texts if str(path.relative_to(ROOT)).startswith(f"{room}/")],
    )
    ordered = [path for paths in kinds for path in sorted(paths, key=lambda path: len(texts[path]))]
    doctests = [str(file)] if ">>> " in (ROOT / file).read_text(encoding="utf-8") else []
    return [*doctests, *dict.fromkeys(str(path.relative_to(ROOT)) for path in ordered)][:MOST_TESTS]


def failing(tree: Path, tests: Sequence[str], seconds: float, without: Sequence[str] = ()) -> str | None:
    """The first test that fails in a tree, or "time" if the time ran out; None if all pass."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", *tests]
    command += [f"--deselect={test}" for test in without]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "output").open("w+", encoding="utf-8") as output:
        command += ["-o", "addopts=--doctest-modules --benchmark-skip", "-o", f"cache_dir={folder}/cache"]
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return "time"
        if code in (0, 5):
            return None
        failed = Path(folder, "cache/v/cache/lastfailed")  # whole names, of any characters
        output.seek(0)
        return next(iter(json.loads(failed.read_text()))) if failed.exists() else output.read()[-500:]


def outcome(place: Place, tree: Path, seconds: float) -> str:
    """The test that catches a broken place, "survived", or "time"."""
    original = (ROOT / place.file).read_text(encoding="utf-8")
    broken = original[: place.start] + place.new + original[place.end :]
    tests, end = nearest_tests(place.file), time.monotonic() + seconds
    without: list[str] = []  # they fail on the unbroken code, too
    while tests and (left := end - time.monotonic()) > 0:
        (tree / place.file).write_text(broken, encoding="utf-8")
        test = failing(tree, tests, left, without)
        (tree / place.file).write_text(original, encoding="utf-8")
        if test is None:
            return "survived"
        if test == "time":
            return "time"
        file, found, _ = test.partition("::")
        if file not in tests or failing(tree, [test], seconds) is None:
            return test
        tests, without = tests[tests.index(file) + (not found) :], [*without, test]
    return "time" if tests else "survived"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--places", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="per place (default: 120)")
    parser.add_argument("--only", default="", help="files whose path begins so")
    arguments = parser.parse_args()
    files = [path.relative_to(ROOT) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    every = [place for file in files if str(file).startswith(arguments.only) for place in places(file)]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.places, len(every)))
    outcomes: dict[Place, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.egg-info"))
        for place in chosen:
            outcomes[place] = outcome(place, tree, arguments.seconds)
            print(f"{place}   {outcomes[place]}", flush=True)
    survivors = [place for place, word in outcomes.items() if word == "survived"]
    late = sum(word == "time" for word in outcomes.values())
    print(f"\n{len(outcomes)} places of {len(every)}: {len(outcomes) - len(survivors) - late} caught, "
          f"{len(survivors)} survived, {late} ran out of time")  # fmt: skip
    print("\n".join(map(str, survivors)))
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
