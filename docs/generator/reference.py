"""Reference pages of classes that authors and scripts use."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import bench.api
import bench.evidence
import bench.randomness
import bench.types
from bench.plugins import registry
from bench.plugins.groups import GROUPS
from docs.generator.markdown import Page, escape, join, table
from docs.generator.plugin_pages import add_path

SECTIONS: Mapping[str, Sequence[str]] = {
    "Methods": ("Method", "Scheme", "Key", "Keyless", "Mechanism", "PrivacyClaim", "PrivateStep"),
    "Attacks": ("Attack", "View", "Attacker", "PairScores", "LearningCurve"),
    "Rows": ("Dataset", "Release", "Generator", "Rows", "Attributes", "Recorded"),
    "Metrics and evaluators": (
        "Metric", "Score", "Column", "Replicates", "Exchanges", "Evaluator", "Measurement", "Picture"
    ),
    "Data sets and extractors": ("Source", "Scan", "Extractor", "Embedding", "Profile"),
    "Of every plug-in": ("Plugin", "NotApplicable", "DataError"),
}  # fmt: skip
"""Classes of `bench.types` by their use."""
DERIVED = frozenset({"KeylessKey", "KeylessScheme"})
"""Classes that `Keyless` makes, and no author names."""


def reference_pages() -> list[Page]:
    """Pages of functions, contract, secrets and evidence."""
    return [_face(), _classes(), _secrets(), _evidence()]


def classes_of(module: object) -> dict[str, type]:
    """The public classes of a module by name."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return {name: found for name in names if inspect.isclass(found := getattr(module, name))}


def _face() -> Page:
    functions = [name for name in bench.api.__all__ if not inspect.isclass(getattr(bench.api, name))]
    classes = ["BenchError", "Results", "Scored", "Comparisons"]
    return Page("python.md", "Python", join(
        "# Python",
        "`import bench` gives these names; `bench.api` has the same. They do what the command line does, with the same "
        "results folders. [A first method in a notebook](first-method.md) walks through them. A script needs no "
        "`if __name__ == \"__main__\"`: the processes that a run starts do not import it.",
        *(_directive(f"bench.api.scripting.{name}", members=False) for name in functions),
        *(_directive(f"bench.api.{'scripting' if name == 'BenchError' else 'frames'}.{name}") for name in classes),
    ))  # fmt: skip


def _classes() -> Page:
    parts: list[str] = []
    elsewhere = {registry.kind(group): add_path(group) for group in GROUPS}
    for title, names in SECTIONS.items():
        some = [getattr(bench.types, name) for name in names]
        rows = [(f"[`{cls.__name__}`]({elsewhere.get(cls, '')}#{_path(cls)})", escape(_summary(cls))) for cls in some]
        parts += [f"## {title}", table(("class", "what it is"), rows)]
        parts += [_directive(_path(cls), level=3) for cls in some if cls not in elsewhere]
    return Page("classes.md", "Classes for plug-ins", join(
        "# Classes for plug-ins",
        "All of `bench.types` that an author derives from, gets or returns. How they go together: [Write a "
        "plug-in](how-to/write-a-plug-in.md).",
        *parts,
    ))  # fmt: skip


def _secrets() -> Page:
    names = ["Secret", "Stream", "Grid"]
    return Page("secrets.md", "Secrets and streams", join(
        "# Secrets and streams",
        "Everything in a method that must not be guessed comes from the `Secret` of its key. `Stream.laplace_integers` "
        "and `gaussian_integers` draw exact discrete noise; `Grid.laplace` and `Grid.gaussian` put it on a grid of "
        "real numbers, as claims of differential privacy need it.",
        *(_directive(_path(getattr(bench.randomness, name))) for name in names),
    ))  # fmt: skip


def _evidence() -> Page:
    found = [cls for cls in classes_of(bench.evidence).values() if cls.__module__ == "bench.evidence"]
    return Page("evidence.md", "Evidence for metrics", join(
        "# Evidence for metrics",
        "What evaluators hand to metrics. A metric names the class that it reads: `Metric[SetEvidence]`.",
        *(_directive(_path(cls)) for cls in found),
    ))  # fmt: skip


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _directive(path: str, *, level: int = 2, members: bool = True) -> str:
    inherited = (
        "\n      inherited_members: true\n      filters: ['!^_(?!_call__)']" if members else "\n      members: false"
    )
    return f"::: {path}\n    options:\n      show_root_heading: true\n      heading_level: {level}{inherited}"


def _summary(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n\n")[0]
