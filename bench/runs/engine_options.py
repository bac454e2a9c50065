"""Options of SLURM and Ray: partition, time, memory and others."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bench.plugins.spec import UsageError, did_you_mean

KINDS = ("cpu", "cuda", "alone")
"""Of jobs: `alone.partition=timings` is for those that hold a machine alone."""
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([MGT]?)(?:i?B)?", re.IGNORECASE)
_GIB = {"M": 1 / 1024, "": 1.0, "G": 1.0, "T": 1024.0}
OVERHEAD_GIB = 1.0  # of a worker beside its job
_TIME = re.compile(r"(?:(?P<days>[0-9]+)-)?(?P<parts>[0-9]+(?::[0-9]+){0,2})")


@dataclass(frozen=True)
class Needs:
    """A resource class: jobs with equal needs go into one array.

    Args:
        device: "cpu" or "cuda".
        alone: Nothing else may run on the machine meanwhile (timings).
        minutes: Most minutes of processor time.
        memory: Bytes; None if `--memory` was not given.
    """

    device: str
    alone: bool
    minutes: int
    memory: int | None

    @property
    def name(self) -> str:
        """The class in a word.

        >>> Needs("cuda", True, 60, 16 * 2**30).name
        'cuda-alone-60m-16g'
        """
        memory = "" if self.memory is None else f"-{self.memory / 2**30:g}g"
        return f"{self.device}{'-alone' if self.alone else ''}-{self.minutes}m{memory}"


@dataclass(frozen=True)
class EngineOptions:
    """Options by name, which may begin with a kind of job, `alone.`

    Args:
        values: As they were written.
    """

    values: Mapping[str, str]

    @classmethod
    def read(cls, flags: Sequence[str], told: Mapping[str, object]) -> EngineOptions:
        """Options of a configuration, overridden by NAME=VALUE flags. Raises UsageError."""
        found = {}
        for name, value in told.items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise UsageError(f"engine option {name}: expected a text or a number, got {value!r:.80}")
            found[name] = str(value)
        for each in flags:
            name, equals, value = each.partition("=")
            if not (name and equals and value):
                raise UsageError(f"--engine: expected NAME=VALUE such as partition=gpu, got {each!r}")
            found[name] = value
        return cls(found)

    def check(self, known: Collection[str], free: str | None = None) -> None:
        """Raise UsageError for unknown names; those that begin with `free` pass."""
        for name in self.values:
            kind, dot, rest = name.partition(".")
            plain = rest if dot and kind in KINDS else name
            if plain not in known and not (free is not None and plain.startswith(free)):
                raise UsageError(f"engine option {name!r} is unknown; {did_you_mean(plain, known)}")

    def text(self, name: str, kinds: Sequence[str]) -> str | None:
        """An option for kinds of job; the last kind has precedence."""
        found = self.values.get(name)
        for kind in kinds:
            found = self.values.get(f"{kind}.{name}", found)
        return found

    def count(self, name: str, kinds: Sequence[str]) -> int | None:
        """A whole number of at least 1."""
        value = self.text(name, kinds)
        if value is not None and (not value.isdigit() or int(value) == 0):
            raise UsageError(f"engine option {name}: expected a whole number of at least 1, got {value!r}")
        return None if value is None else int(value)

    def gib(self, name: str, kinds: Sequence[str]) -> float | None:
        """GiB, written as 16, 16G, 16GB or 512M."""
        value = self.text(name, kinds)
        if value is None:
            return None
        found = _SIZE.fullmatch(value)
        if found is None or not float(found[1]) > 0:
            raise UsageError(f"engine option {name}: expected a size such as 16G or 512M, got {value!r}")
        return float(found[1]) * _GIB[found[2].upper()]

    def memory(self, needs: Needs, kinds: Sequence[str]) -> float | None:
        """GiB to ask of the engine for a job; None if unset.

        Raises UsageError if that is less than the job may hold.
        """
        asked = self.gib("mem", kinds)
        least = None if needs.memory is None else needs.memory / 2**30 + OVERHEAD_GIB
        if asked is not None and least is not None and asked < least:
            raise UsageError(
                f"engine option mem: expected at least {least:.1f} GiB, for a job may hold what --memory says and its "
                f"task needs {OVERHEAD_GIB:.0f} GiB beside it; got {self.text('mem', kinds)!r}"
            )
        return least if asked is None else asked

    def minutes(self, name: str, kinds: Sequence[str]) -> int | None:
        """Minutes from SLURM's formats M, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
        value = self.text(name, kinds)
        if value is None:
            return None
        found = _TIME.fullmatch(value)
        if found is None:
            raise UsageError(f"engine option {name}: expected minutes, H:M:S or D-H:M:S, got {value!r}")
        parts = [int(part) for part in found["parts"].split(":")]
        if found["days"] is None:
            hours, minutes, seconds = [0, *parts, 0] if len(parts) == 1 else [0, *parts] if len(parts) == 2 else parts
        else:
            hours, minutes, seconds = [*parts, 0, 0][:3]
        whole = math.ceil(int(found["days"] or 0) * 1440 + hours * 60 + minutes + seconds / 60)
        if not whole:
            raise UsageError(f"engine option {name}: expected at least a minute, got {value!r}")
        return whole

    def own(self, free: str, kinds: Sequence[str]) -> dict[str, str]:
        """Options that begin with `free`, without that prefix."""
        names = {name.rpartition(free)[2] for name in self.values if free in name}
        found = {name: self.text(f"{free}{name}", kinds) for name in sorted(names)}
        return {name: value for name, value in found.items() if value is not None}


def kinds(needs: Needs) -> tuple[str, ...]:
    """The kinds of a resource class in options, special ones last."""
    return (needs.device, "alone") if needs.alone else (needs.device,)
