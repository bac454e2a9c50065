"""What a run would do: a line a job, and how many of each part."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.cli.suite import part_title
from bench.cli.terminal import to_stdout
from bench.runs.plan import data_key, standing, to_run, work
from bench.runs.run_spec import RunSpec
from bench.workbench.place import Place


def dry_run(specs: Sequence[RunSpec], where: Place) -> int:
    """Print what stands and what would run, and why."""
    table = Table("data set", "method", "seed", "evaluator", "state", "would run", "why")
    seen = set[tuple[str, str]]()
    tally = []
    for number, spec in enumerate(specs, 1):
        counts = {True: 0, False: 0}
        for cell, planned in work(spec).items():
            data = where.results.journal.data(data_key(cell.choice))
            for evaluator in planned:
                if (cell.folder, evaluator.name) in seen:  # an earlier part has it
                    continue
                seen.add((cell.folder, evaluator.name))
                found = standing(where.results, cell, evaluator, data)
                runs = to_run(found, spec.overwrite)
                counts[runs] += 1
                table.add_row(
                    str(cell.choice.dataset), str(cell.method), str(cell.choice.seed), evaluator.name, found.state,
                    "yes" if runs else "no", found.reason,
                )  # fmt: skip
        tally.append((part_title(number, specs), counts))
    to_stdout().print(table)
    if len(specs) > 1:
        for name, counts in tally:
            print(f"{name}: {counts[True]} to run, {counts[False]} to keep")
    all_of = {runs: sum(counts[runs] for _, counts in tally) for runs in (True, False)}
    print(f"{all_of[True]} to run, {all_of[False]} to keep; nothing was run")
    return 0
