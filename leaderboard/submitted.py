"""The records that others handed in: bundles, read where they lie, of which the board takes what may be shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.results.bundle import ENDING, Bundle, BundleError
from bench.results.results import Results, cell_and_evaluator
from leaderboard.published import examined
from leaderboard.tiers import SUBMISSIONS


def submitted(folder: Path = SUBMISSIONS) -> tuple[list[Results], list[tuple[str, str]]]:
    """Every bundle in a folder as a source of records, without the rows that may not be shown; and these, with reasons.

    A bundle that is not what was packed is refused whole. Code moves on and bundles stay, as published records do.
    """
    found: list[Results] = []
    refused: list[tuple[str, str]] = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            bundle = Bundle.open(path)
        except (BundleError, OSError) as error:
            refused.append((path.name, str(error).replace(str(path), path.name).removeprefix(f"{path.name}: ")))
            continue
        fit, why = examined(bundle.results, current=False)
        refused += [(f"{path.name}: {name}", reason) for name, reason in why]
        kept = {name: each for name, each in bundle.files.items() if cell_and_evaluator(name)[0] in fit}
        found.append(replace(bundle, files=kept).results)
    return found, refused
