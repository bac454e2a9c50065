"""The request of a run: methods, attacks, metrics, data and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.plugins.spec import Amount, Count, option
from bench.sandbox import Isolation
from bench.types import Parameter

if TYPE_CHECKING:  # the command line is laid out from this module, before anything heavy is imported
    from bench.plugins.configured import Configured
    from bench.types import Attack, Method
    from bench.workbench.choice import Choice

Overwrite = Literal["never", "failed", "stale", "always"]
Written = str | dict[str, dict[str, Parameter | list[Parameter]] | None]
"""A plug-in in a configuration file; a list of values stands for a plug-in each."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that `bench run` was asked for, plug-ins built.

    Args:
        choices: Choices of data; each gives a cell with each method.
        methods, attacks: Plug-ins.
        metrics: Names.
        evaluators: Beside those that are registered.
        controls: Also run every attack on the reference methods, without which no attack is certified.
        device: "cpu" or "cuda".
        jobs: Worker processes at a time.
        timeout: Seconds of processor time a job (see `bench.runs.job_process`); None for the preset's.
        memory: Bytes a worker.
        overwrite: What to run again beside what is missing: nothing ("never"), what failed or speaks of other data or
            sizes ("failed"), also what earlier code computed ("stale"), or all.
        isolation: Where methods and attacks work: within bubblewrap, in processes of their own, or in the judge's.
        keep_releases: Keep stored releases after a cell is complete.
        skip_absent: Do without data sets whose files are not here; else nothing is concluded without them.
    """

    choices: tuple[Choice, ...]
    methods: tuple[Configured[Method], ...] = option(
        Written, "a method, or FILE.py:CLASS", flag="--method", many="methods", metavar="NAME", group="methods"
    )
    attacks: tuple[Configured[Attack], ...] = option(
        Written, "an attack, or all, or none (default: all)", flag="--attack", many="attacks", metavar="NAME",
        group="attacks",
    )  # fmt: skip
    metrics: tuple[str, ...] = option(
        str, "a metric (default: all except those on request)", flag="--metric", many="metrics", metavar="NAME",
        group="metrics",
    )  # fmt: skip
    evaluators: tuple[str, ...] = option(
        str, "an evaluator of your own, in addition to the registered ones: FILE.py:CLASS", flag="--evaluator",
        many="evaluators", metavar="FILE.py:CLASS", group="evaluators",
    )  # fmt: skip
    controls: bool = option(bool, "run the attacks on the reference methods too (default: with all attacks)")
    device: str = option(
        Literal["auto", "cpu", "cuda"], "the device of methods and attacks (default: auto)", usual="auto"
    )
    jobs: int = option(Count, "number of worker processes (default: from the number of cores)", metavar="N")
    timeout: float | None = option(
        Amount, "limit of a job in processor seconds (default: the preset's)", metavar="SECONDS"
    )
    memory: int = option(
        Amount, "limit of a worker's memory in GiB (default: its share of 80 % of the machine's)", metavar="GIB"
    )
    overwrite: Overwrite = option(
        Overwrite, "results to compute again: failed ones and those of other data or sizes; stale: also those of "
        "earlier code (default: failed)",
        metavar="WHAT", usual="failed",
    )  # fmt: skip
    keep_releases: bool = option(bool, "keep stored releases after a cell is complete", usual=False)
    isolation: Isolation = option(
        Literal["auto", Isolation],
        "isolation of methods and attacks (default: the strongest that works here)",
        metavar="HOW", usual="auto",
    )  # fmt: skip
    skip_absent: bool = option(
        bool, "leave out data sets with missing files, with a message", default=False, usual=False
    )

    @property
    def preset(self) -> str:
        """The size of the run."""
        return self.choices[0].preset
