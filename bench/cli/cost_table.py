"""`bench status --cost`: hours and price of a board at another size, from the seconds that records hold."""

from __future__ import annotations

from rich.table import Table

from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.cost import costs, hours_on


def print_costs(results: Results, *, rows: int, workers: int, price: float | None) -> int:
    """Print a line an evaluator, and the sum.

    Args:
        results: Whose records tell the seconds.
        rows: Private rows of each data set.
        workers: How many share the work.
        price: Of a worker's hour, in whatever currency; None for no price.

    Raises:
        UsageError: There are no records with seconds.
    """
    found = costs((record for _, record in results.records() if isinstance(record, Record)), rows)
    if not found:
        raise UsageError(f"no records with seconds in {results.root}: run some at a small size first")
    asked = f"hours at {rows:,} rows"
    table = Table("evaluator", "device", "jobs", "rows", "seconds a job", "grows as rows to the", asked)
    for each in found:
        growth = f"{each.growth:.2f}" if each.fitted else "1 (one size only)"
        table.add_row(
            each.kind, each.device, str(each.jobs), f"{each.rows:,}", f"{each.seconds:.1f}", growth, f"{each.hours:.1f}"
        )
    to_stdout().print(table)
    hours = sum(each.hours for each in found)
    print(f"{hours:.1f} hours of a worker; {hours_on(found, workers):.1f} hours on {workers} workers at best")
    if price is not None:
        print(f"{hours * price:,.0f} at {price:g} an hour")
    return 0
