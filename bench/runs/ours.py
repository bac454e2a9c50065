"""Whether what a process imports by itself is code of this project: then it may do more than that one thing."""

from __future__ import annotations

from bench.plugins import registry
from bench.plugins.spec import parse
from bench.workbench.cell import Planned
from bench.workbench.choice import Choice


def opened_by_us(choice: Choice) -> bool:
    """Whether all that opens the data is this project's: the data sets and the extractor."""
    parts = (choice.dataset, choice.beside, choice.extractor)
    return all(part is None or part.origin == registry.HOME for part in parts)


def judged_by_us(planned: Planned) -> bool:
    """Whether the evaluator and its metrics are this project's; methods and attacks have processes of their own."""
    origins = [registry.origin("evaluators", planned.written)]
    origins += [registry.origin("metrics", parse(name).name) for name in planned.metrics]
    return all(origin == registry.HOME for origin in origins)
