"""The rules of `[tool.importlinter]` hold, each one forbids what it says, and the how-to lists what they allow."""

from __future__ import annotations

import re
import tomllib
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import importlinter.api  # sets import-linter up
import pytest
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract

from bench.plugins.groups import GROUPS

ROOT = Path(__file__).parent.parent
KINDS = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
}
OPTIONS = importlinter.api.read_configuration(str(ROOT / "pyproject.toml"))
RULES = {rule["id"]: rule for rule in OPTIONS["contracts_options"]}
BREAKS = [
    ("floors", [("bench.seeds", "bench.types")]),
    ("floors", [("bench.contract.method", "bench.types")]),
    ("floors", [("bench.pairs.sweep", "bench.evidence")]),
    ("floors", [("bench.nets.transformers", "bench.owner.label_code")]),  # one floor
    ("floors", [("bench.bob.model_selection", "bench.eve.gram_matching")]),
    ("floors", [("bench.workbench.cell", "bench.runs.plan")]),
    ("floors", [("bench.runs.plan", "bench.cli.parameters")]),
    ("no-plugin", [("bench.nets.transformers", "methods.noise")]),
    ("no-plugin", [("bench.cli.parameters", "metrics.ranks")]),
    ("no-plugin", [("bench.runs.run", "leaderboard.board")]),
    ("roofs", [("leaderboard.board", "metrics.ranks")]),
    ("roofs", [("methods.noise", "attacks.chance")]),
    ("doors-of-methods", [("methods.noise", "bench.eve.gram_matching")]),
    ("doors-of-methods", [("methods.noise", "bench.contract.mechanism")]),
    ("doors-of-attacks", [("attacks.chance", "bench.owner.label_code")]),
    ("doors-of-metrics", [("metrics.ranks", "bench.workbench.cell")]),
    ("doors-of-leaderboard", [("leaderboard.board", "bench.runs.plan")]),
    ("doors-of-evaluators", [("bench.evaluators.throughput", "bench.plugins.registry")]),
    ("evaluators", [("bench.evaluators.utility", "bench.evaluators.transfer_learning")]),
    ("doors-of-datasets", [("bench.data.sets.folder", "bench.plugins.registry")]),
    ("doors-of-features", [("bench.features.pixels", "bench.plugins.registry")]),
    ("variants", [("methods.noise", "methods.blur")]),
    ("variants", [("metrics.ranks", "metrics.pair_roc")]),
    ("circles", [("bench.pairs.one", "bench.pairs.two"), ("bench.pairs.two", "bench.pairs.one")]),
    ("heavy", [("bench.nets.transformers", "opacus")]),
    ("heavy", [("methods.noise", "matplotlib")]),
]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Every module and import of the five packages, those of other packages too."""
    first, *rest = OPTIONS["session_options"]["root_packages"]
    return grimp.build_graph(first, *rest, include_external_packages=True, cache_dir=None)


def kept(rule: str, graph: grimp.ImportGraph, *imports: tuple[str, str]) -> bool:
    """Whether the rule is kept once the imports (from, what) are added."""
    graph = deepcopy(graph)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = KINDS[RULES[rule]["type"]](RULES[rule]["name"], OPTIONS["session_options"], RULES[rule])
    return contract.check(graph, verbose=False).kept


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_is_kept(rule: str, graph: grimp.ImportGraph) -> None:
    assert kept(rule, graph)


@pytest.mark.parametrize(("rule", "imports"), BREAKS)
def test_the_rule_forbids(rule: str, imports: list[tuple[str, str]], graph: grimp.ImportGraph) -> None:
    assert not kept(rule, graph, *imports)


def test_every_rule_is_seen_to_forbid_something() -> None:
    assert {rule for rule, _ in BREAKS} == set(RULES)


def test_a_new_room_needs_a_floor(graph: grimp.ImportGraph) -> None:
    graph = deepcopy(graph)
    graph.add_module("bench.cellar")
    assert not kept("floors", graph)


def test_no_module_imports_itself_by_way_of_others(graph: grimp.ImportGraph) -> None:
    # "circles" looks at the files of one folder; this looks at a folder's __init__.py and its files, too.
    allowed = {tuple(line.split(" -> ")) for line in RULES["circles"]["ignore_imports"]}

    def order(graph: grimp.ImportGraph) -> None:
        imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
        held = {name: {other for other in found if (name, other) not in allowed} for name, found in imports.items()}
        TopologicalSorter(held).prepare()

    order(graph)
    circle = deepcopy(graph)
    circle.add_import(importer="bench.randomness.noise_grid", imported="bench.randomness")
    with pytest.raises(CycleError):
        order(circle)


@pytest.mark.parametrize("kind", GROUPS)
def test_the_how_to_names_what_a_plugin_may_import(kind: str) -> None:
    text = (ROOT / "docs" / "how-to" / "write-a-plug-in.md").read_text(encoding="utf-8")
    sentence = re.search(r"a plug-in imports only (.*?)and the packages of tools", text, re.DOTALL)
    row = re.search(rf"^\| {kind} \| (.*) \|$", text, re.MULTILINE)
    assert sentence is not None
    assert row is not None
    told = set(re.findall(r"`([\w.]+)`", sentence[1] + row[1]))
    rule = RULES[f"doors-of-{kind}"]
    held = {line.partition(" -> ")[2].removesuffix(".**") for line in rule["ignore_imports"]}
    if rule["forbidden_modules"] != ["bench"]:  # a room of bench itself: what is not forbidden is open
        rooms = {f"bench.{room.strip('() ')}" for floor in RULES["floors"]["layers"] for room in floor.split("|")}
        held |= rooms - set(rule["forbidden_modules"])
    assert told == held


def test_the_rules_cover_every_package_that_is_installed() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = {pattern.removesuffix("*") for pattern in setup["packages"]["find"]["include"]}
    assert found == set(OPTIONS["session_options"]["root_packages"])


ROOMS = [
    path.relative_to(ROOT)
    for folder in ("bench", "methods", "attacks", "metrics")
    for path in [ROOT / folder / "__init__.py", *sorted((ROOT / folder).glob("*/__init__.py"))]
]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.parent))
def test_every_room_says_if_figures_depend_on_it(room: Path) -> None:
    """`__figures__` decides if a room's code counts in the digests of plug-ins (`bench.plugins.code_digest`)."""
    marks = re.findall(r"^__figures__ = (?:True|False)$", (ROOT / room).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(marks) == 1
