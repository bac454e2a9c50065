"""Folders and memory on this machine."""

from __future__ import annotations

__figures__ = False

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.memory.memory_budget import Budget
from bench.results.cell_secrets import people_of
from bench.results.results import Results

if TYPE_CHECKING:
    from bench.plugins.configured import Configured
    from bench.randomness import Secret
    from bench.types import Source


@dataclass(frozen=True)
class Place:
    """Folders and memory on this machine; no figure depends on them.

    Args:
        results: What runs leave behind.
        cache: Folder of prepared data and extracted features.
        roots: Folders above raw data.
        memory: Bytes that a job may hold, all of its processes together; None for no bound.
    """

    results: Results
    cache: Path
    roots: tuple[Path, ...]
    memory: int | None = None

    @property
    def budget(self) -> Budget | None:
        """The rows' share of a job's memory; None if unbounded."""
        return None if self.memory is None else Budget(self.memory, self.results.rooms.parent)

    def source(self, chosen: Configured[Source]) -> Source:
        """A data set, with people of this folder if drawn.

        They follow from a secret that came with a bundle; else from the run secret, which is made if missing.
        """
        if not chosen.plugin.draws_people:
            return chosen.plugin
        return chosen.plugin.under(people_secret(self.results, str(chosen)))


def people_secret(results: Results, dataset: str) -> Secret:
    """The secret that draws a data set's people in a results folder."""
    brought = results.cell_secrets.read().get(people_of(dataset))
    return results.keep_secret().of_people(dataset) if brought is None else brought
