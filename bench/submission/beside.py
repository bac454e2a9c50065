"""What lies in a bundle beside its records: their pictures and evidence, machines and versions, a lock."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from bench.results import bundle
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.results import names_beside
from bench.submission.finding import Finding

LOCKED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+_-]+")


def environment(records: Sequence[Record]) -> dict[str, JsonValue]:
    """The machines and versions that the records name, each once: no host name, no path."""

    def distinct(each: list[JsonValue]) -> list[JsonValue]:
        return [json.loads(text) for text in sorted({json.dumps(one, sort_keys=True) for one in each})]

    return {
        "hardware": distinct([{**record.hardware, "jobs": None} for record in records]),
        "versions": distinct([cast(JsonValue, record.versions) for record in records]),
        "git": cast("list[JsonValue]", sorted({str(record.git) for record in records})),
        "isolation": cast("list[JsonValue]", sorted({record.isolation for record in records})),
    }


def out_of_place(found: Bundle, records: Mapping[str, Record]) -> Iterator[Finding]:
    """What is in the bundle and belongs to no record of it, or is lacking, or says otherwise than they do."""
    known = {*records, *(name for record in records.values() for name in names_beside(record))}
    for name in sorted(found.files):
        if name not in bundle.PARTS and name not in known:
            yield Finding("altered", name, "no record of the bundle speaks of it: pack it again with `bench submit`")
    told = {name: found.files.get(name, b"").decode(errors="replace") for name in (bundle.ENVIRONMENT, bundle.LOCK)}
    if _parsed(told[bundle.ENVIRONMENT]) != environment(list(records.values())):
        yield Finding("altered", bundle.ENVIRONMENT, "it is not what the records say of their machines and versions")
    if not all(map(LOCKED.fullmatch, told[bundle.LOCK].removesuffix("\n").split("\n"))):
        yield Finding("altered", bundle.LOCK, "expected a line NAME==VERSION for each package")


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
