"""The cost of a board at paper size, from the published records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from bench.contract.preset import PRESETS
from bench.results.records import Record
from bench.runs.cost import EvaluatorCost, costs, hours_on
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page
from leaderboard.packed_rows import published_results
from leaderboard.published import PUBLISHED

PATH = "cost.md"
ROWS = (10_000, 50_000, 100_000)
WORKERS = (1, 10, 50, 200)


def cost_page(targets: Mapping[str, str]) -> Page:
    """The hours of every evaluator at several sizes and numbers of workers."""
    prose = Prose(PATH, targets)
    records = _published()
    sizes = {rows: costs(records, rows) for rows in ROWS}
    paper, least = PRESETS["paper"], PRESETS["first-look"]
    cells = len({record.cell for record in records})
    return Page(PATH, "What a board costs", join(
        "# What a board costs",
        f"Computed from the seconds of the {len(records):,} published records ({cells} cells), as `bench status --cost "
        "--results leaderboard/published --rows 50000 --workers 50` does it for the records of any folder: of each "
        "evaluator, the median of its jobs at their largest size (as many as are shown), grown as "
        "a power of the private rows. The power is "
        "fitted where there are records of several sizes, and 1 where there are not.",
        _evaluators(sizes),
        "Hours on the wall until so many workers of the same kind are through, at best: no job is shared.",
        _workers(sizes),
        prose.block(
            f"Only rows are reckoned with. A preset changes more than these: `paper` trains decoders for "
            f"{paper.decoder_steps:,} steps and Bob for {paper.bob_steps:,}, where `first-look`, which most of these "
            f"records are of, takes {least.decoder_steps:,} and {least.bob_steps:,}. So these hours are the least, and "
            f"the most are those after which jobs are stopped: {paper.timeout / 3600:.0f} for each. Run two sizes of "
            "what you plan, and ask again. Fitting a method is a job of its own, which no record times."
        ),
        "How the work is handed to machines is said in [Run on several machines](how-to/run-on-several-machines.md).",
    ))  # fmt: skip


@cache
def _published() -> tuple[Record, ...]:
    """Read once, for MkDocs asks for the pages more than once."""
    return tuple(found for _, found in published_results(PUBLISHED).records() if isinstance(found, Record))


def _evaluators(sizes: Mapping[int, Sequence[EvaluatorCost]]) -> str:
    first = next(iter(sizes.values()))
    hours = {rows: {(each.kind, each.device): each.hours for each in found} for rows, found in sizes.items()}
    rows = [
        (f"`{each.kind}`", each.device, str(each.jobs), f"{each.rows:,}", f"{each.seconds:.1f}",
         f"{each.growth:.2f}" if each.fitted else "1 (one size only)",
         *(f"{hours[size][each.kind, each.device]:.1f}" for size in sizes))
        for each in first
    ]  # fmt: skip
    whole = ("all", "", str(sum(each.jobs for each in first)), "", "", "",
             *(f"{sum(each.values()):.1f}" for each in hours.values()))  # fmt: skip
    head = ("evaluator", "device", "jobs", "at rows", "seconds a job", "grows as rows to the",
            *(f"hours at {size:,} rows" for size in sizes))  # fmt: skip
    return table(head, [*rows, whole])


def _workers(sizes: Mapping[int, Sequence[EvaluatorCost]]) -> str:
    rows = [(str(count), *(f"{hours_on(found, count):.1f}" for found in sizes.values())) for count in WORKERS]
    return table(("workers", *(f"at {size:,} rows" for size in sizes)), rows)
