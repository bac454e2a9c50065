"""Every product function that a job enters is among the hashed definitions of the job's record."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

import pytest
from made.cells import cell, place

from bench.plugins import registry
from bench.plugins.code_digest import definitions
from bench.plugins.configured import configure
from bench.plugins.normal_form import DISPLAYED, PROJECT, Import, Module, module, normal_form
from bench.runs.judge import judge
from bench.runs.plan import evaluators
from bench.types import NotApplicable
from bench.workbench.cell import Cell, Planned
from bench.workbench.inputs import JUDGE, RELEASE, SPLITS
from bench.workbench.workbench import Workbench

LITERALS = 10
"""Most literals of a definition that are changed, one at a time."""
ROOT = Path(__file__).parents[2]
FOLDERS = tuple(f"{ROOT / name}/" for name in PROJECT)
CHANGED = {int: lambda value: value + 1, float: lambda value: 2 * value + 1.5, str: lambda value: f"{value}, changed",
           bytes: lambda value: value + b"changed", bool: lambda value: not value}  # fmt: skip


@contextmanager
def traced() -> Iterator[set[CodeType]]:
    """The product's functions that are entered within the block, in any thread."""
    entered: set[CodeType] = set()
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or code in seen:
            return
        seen.add(code)
        if code.co_filename.startswith(FOLDERS) and not _at_import(frame):
            entered.add(code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def _at_import(frame: FrameType | None) -> bool:
    """If a module or a class is being defined: its code runs once, for all users."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(FOLDERS):
            return True
        frame = frame.f_back
    return False


def outside(entered: set[CodeType], names: frozenset[str]) -> set[str]:
    """The functions entered that are not among these definitions, rooms without figures aside."""
    found = set()
    for code in entered:
        source = module(Path(code.co_filename))
        top = code.co_qualname.partition(".")[0]
        if top.startswith("<"):
            continue  # a lambda or a comprehension of a variable: part of its definition
        if source.figures and f"{source.name}:{top}" not in names:
            found.add(f"{source.name}:{code.co_qualname}")
    return found


def unnoticed(entered: set[CodeType]) -> list[str]:
    """Literals of the definitions entered whose change leaves the digest as it is; words that do not count aside."""
    found = []
    for name in {(module(Path(code.co_filename)), code.co_qualname.partition(".")[0]) for code in entered}:
        source, top = name
        if source.figures and top in source.bindings:
            for node in source.bindings[top]:
                if not isinstance(node, Import):
                    found += [f"{source.name}:{top}: {text}" for text in _unnoticed(source, node)]
    return found


def _unnoticed(source: Module, node: ast.stmt) -> Iterator[str]:
    before = _digest(source, node)
    for constant in list(_literals(node))[:LITERALS]:
        value = constant.value
        constant.value = CHANGED[type(value)](value)
        if _digest(source, node) == before:
            yield repr(value)
        constant.value = value


def _digest(source: Module, node: ast.stmt) -> str:
    return normal_form(source, [node]).digest


def _literals(node: ast.AST, *, evaluator: bool = False) -> Iterator[ast.Constant]:
    """The literals of a definition; those of errors, docstrings, progress and display aside."""
    if isinstance(node, ast.ClassDef):
        evaluator = any(
            isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "evidence" for each in node.body
        )
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        if isinstance(child, ast.FunctionDef) and evaluator and child.name in DISPLAYED:
            continue
        call = child.value if isinstance(child, ast.Expr | ast.Assign | ast.AnnAssign) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"stage", "report", "Column"}:
            continue
        if isinstance(child, ast.Constant) and type(child.value) in CHANGED:
            yield child
        yield from _literals(child, evaluator=evaluator)


def job(one: Cell, planned: Planned, folder: Path) -> set[CodeType]:
    """What a job enters that opens its data, measures and judges, in this process."""
    with traced() as entered, closing(Workbench.open(one, place(folder))) as bench:
        try:
            measurement = planned.evaluator.measure(bench)
        except NotApplicable:
            return entered
        for name in planned.metrics:
            try:
                judge(cast(Any, registry.load("metrics", name))(), measurement.evidence)
            except NotApplicable:
                continue
    return entered


def behind(one: Cell, planned: Planned) -> frozenset[str]:
    """The definitions behind the job's record."""
    plugins = [one.method.plugin, one.choice.dataset.plugin]
    plugins += [] if planned.attack is None else [planned.attack.plugin]
    metrics = [registry.load("metrics", name) for name in planned.metrics]
    roots = [*(type(each) for each in plugins), *metrics, registry.load("evaluators", planned.written)]
    return definitions(*roots, JUDGE, SPLITS, RELEASE, "bench.data.prepare:prepare")


def check(one: Cell, planned: Planned, folder: Path) -> None:
    entered = job(one, planned, folder)
    assert len(entered) > 20
    assert outside(entered, behind(one, planned)) == set()
    assert unnoticed(entered) == []


def planned_for(kind: str, attack: str | None) -> Planned:
    """An evaluator with all its metrics."""
    attacks = [] if attack is None else [configure("attacks", attack, "smoke")]
    return next(each for each in evaluators(attacks, registry.working("metrics")) if each.kind == kind)


@pytest.mark.parametrize(
    ("method", "evaluator", "attack"),
    [("dp-simple", "reidentification", "nearest-neighbour")],
)
def test_a_job_enters_no_function_that_its_record_does_not_hash(
    method: str, evaluator: str, attack: str | None, tmp_path: Path
) -> None:
    check(cell(method), planned_for(evaluator, attack), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", registry.own("methods"))
def test_no_method_enters_a_function_that_its_record_does_not_hash(method: str, tmp_path: Path) -> None:
    check(cell(method), planned_for("reidentification", "chance"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("attack", registry.own("attacks"))
def test_no_attack_enters_a_function_that_its_record_does_not_hash(attack: str, tmp_path: Path) -> None:
    scores = registry.load("attacks", attack).scores  # type: ignore[attr-defined]
    check(cell("noise"), planned_for({"pairs": "reidentification"}.get(scores, scores), attack), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", [each.kind for each in evaluators([], registry.working("metrics"))])
def test_no_evaluator_enters_a_function_that_its_record_does_not_hash(evaluator: str, tmp_path: Path) -> None:
    check(cell("dp-simple", "synth-cxr"), planned_for(evaluator, None), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["digits", "synth-cxr", "diabetes"])
def test_no_data_set_enters_a_function_that_its_record_does_not_hash(dataset: str, tmp_path: Path) -> None:
    check(cell("identity", dataset), planned_for("throughput", None), tmp_path)
