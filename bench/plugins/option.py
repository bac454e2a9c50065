"""Options as fields of frozen dataclasses: flags, configuration, records and commands are derived from the fields.

A field that `option` declares is known in one place: its help, what a value must be, whether it may be repeated, and
whether what is written may enter a record. Imports nothing heavy, for the command line is laid out from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated, Any

from annotated_types import Ge, Interval

Value = str | int | bool | None
Count = Annotated[int, Ge(1)]
Amount = Annotated[float, Interval(gt=0, lt=math.inf)]
KEY = "option"


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name and default.

    Args:
        help: For the command line and the documentation.
        kind: What pydantic holds a written value to; a `bool` becomes two flags, --name and --no-name.
        flag: On the command line; empty stands for the field's own name.
        many: Its name in a configuration file where it may be given several times; empty where it may not.
        metavar: What stands for the value in the help.
        group: The group of plug-ins that a value names; None for plain values.
        usual: What a missing value stands for, where that is no field's default.
        confidential: What is written never enters a record, a page or a log.
        draws: It sizes or draws the rows: rows that differ in nothing else come from one collection.
        words: Values that name no plug-in, where others do.
        covered: What it does to released rows is in their fingerprints or counts, or it does nothing to them. What an
            option is set to that is not covered is part of every content key.
    """

    help: str
    kind: Any
    flag: str = ""
    many: str = ""
    metavar: str | None = None
    group: str | None = None
    usual: Value = None
    confidential: bool = False
    draws: bool = False
    covered: bool = False
    words: tuple[str, ...] = ()


def option(kind: Any, help: str, *, default: Any = MISSING, **rest: Any) -> Any:
    """A dataclass field that is an option; `rest` are the other fields of `Option`."""
    return dataclasses.field(default=default, metadata={KEY: Option(help, kind, **rest)})


def options(cls: type) -> Mapping[str, Option]:
    """The options of a dataclass by field name, in order."""
    return {field.name: field.metadata[KEY] for field in dataclasses.fields(cls) if KEY in field.metadata}


def defaults(cls: type) -> Mapping[str, Any]:
    """The default of every field of a dataclass by name; MISSING where it has none."""
    return {field.name: field.default for field in dataclasses.fields(cls)}


def flag_of(name: str, known: Option) -> str:
    """The flag of an option: --skip-corrupt for `skip_corrupt`."""
    return known.flag or "--" + name.replace("_", "-")


def expected(error: Mapping[str, Any]) -> str:
    """What pydantic says of a value, in the words of this project: expected ..., got ..."""
    if error["type"] == "list_type":
        return f"expected a list, such as [{error['input']}], got {error['input']!r}"
    said, _, _ = str(error["msg"]).partition(", unable to parse")  # which says it a second time
    return f"{said}, got {error['input']!r}".replace("Input should be", "expected")


def words(cls: type, values: Mapping[str, Value]) -> list[str]:
    """The words of a command line that give a dataclass's options these values; what is None or off is left out.

    What is confidential stands in capitals: WEIGHTS.

    >>> @dataclass(frozen=True)
    ... class Example:
    ...     size: int | None = option(int, "a side", default=None)
    ...     skip_corrupt: bool = option(bool, "leave out", default=False)
    ...     balance: bool | None = option(bool, "withhold", default=None)
    >>> words(Example, {"size": 64, "skip_corrupt": True, "balance": False})
    ['--size', '64', '--skip-corrupt', '--no-balance']
    """
    found: list[str] = []
    usual = defaults(cls)
    for name, known in options(cls).items():
        value, flag = values.get(name), flag_of(name, known)
        if value is None or (known.kind is bool and value == usual[name]):
            continue
        if known.kind is bool:
            found.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            found += [flag, name.upper() if known.confidential else str(value)]
    return found
