"""A bundle packed from a results folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distributions, version
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.exchange import disclosed_secrets
from bench.exchange.check import Finding, check
from bench.exchange.disclosed_secrets import disclosable
from bench.plugins.spec import UsageError
from bench.results import bundle, cell_secrets
from bench.results.bundle import ENDING, Bundle
from bench.results.records import Record, dumps
from bench.results.results import Results, evidence_name, names_beside, picture_name
from bench.results.signing_key import SigningKey

NOT_HERE = (
    "the secret of its cell cannot be disclosed: it is not in this folder, or it is the run secret of a folder of an "
    "earlier version, behind every cell. Leave --disclose out, or measure the row again in a new folder"
)
LOCKED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+_-]+")


def submit(
    results: Results, out: Path | None = None, *, signer: SigningKey | None = None, disclose: bool = False,
    disclose_to: Path | None = None,
) -> tuple[Path, tuple[Finding, ...]]:  # fmt: skip
    """Check a results folder and pack it.

    Args:
        results: The folder.
        out: The new file; None stands for FOLDER.bundle.zip beside the folder.
        signer: Signs the bundle.
        disclose: Add the secret of each cell, from which others derive its keys; never the run secret.
        disclose_to: A new file for these secrets instead, for a verifier alone.

    Returns:
        The bundle's path, and the faults for which nothing was packed.

    Raises:
        UsageError: There is no folder, or the file exists.
    """
    if not results.root.is_dir():
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    out = (out or results.root.parent / f"{results.root.name}{ENDING}").resolve()
    if out.exists():
        raise UsageError(f"{out} is there already: name another with --out, or remove it")
    checked = check(results)
    records = checked.records
    secrets, without = disclosable(results, records) if disclose or disclose_to is not None else ({}, [])
    undisclosed = [Finding("secret", name, NOT_HERE) for name in without]
    if findings := (*checked.findings, *_faults(results, records, disclose=disclose), *undisclosed):
        return out, findings
    files = {name: dumps(record).encode() for name, record in records.items()}
    for record in records.values():
        files |= _beside(results, record)
    files[bundle.ENVIRONMENT] = (json.dumps(environment([*records.values()]), indent=2, sort_keys=True) + "\n").encode()
    files[bundle.LOCK] = lock().encode()
    if disclose:
        files[bundle.SECRETS] = cell_secrets.dumps(secrets)
    if results.draw_file.exists():
        files[bundle.DRAW] = results.draw_file.read_bytes()
    if disclose_to is not None:
        disclosed_secrets.write(disclose_to, secrets)
    bundle.pack(out, files, f"veil-bench {version('veil-bench')}", signer)
    return out, ()


def _faults(results: Results, records: Mapping[str, Record], *, disclose: bool) -> Iterator[Finding]:
    """The faults of a folder as a whole."""
    if not records:
        yield Finding("incomplete", str(results.root), "it holds no record; `bench run` makes them")
    elif all(record.method.role is not None for record in records.values()):  # a run that was cut off
        yield Finding("incomplete", str(results.root), "it holds controls and no row that they are for; the same "
                      "`bench run` goes on")  # fmt: skip
    hidden = [name for name, record in records.items() if record.dataset and not record.dataset.shareable]
    if disclose and hidden:
        yield Finding("restricted", hidden[0], "its cell's secret undoes releases of data that may not be shared: "
                      "leave --disclose out (--disclose-to writes it for a verifier), or run what may be shared "
                      "apart")  # fmt: skip


def _beside(results: Results, record: Record) -> Mapping[str, bytes]:
    files = {picture_name(record, name): results.picture(record, name) for name in record.pictures}
    if record.evidence is not None:
        files[evidence_name(record)] = results.evidence(record)
    return {name: content for name, content in files.items() if content is not None}


def environment(records: Sequence[Record]) -> dict[str, JsonValue]:
    """The distinct machines and versions of the records, without host names."""

    def distinct(values: list[JsonValue]) -> list[JsonValue]:
        return [json.loads(text) for text in sorted({json.dumps(value, sort_keys=True) for value in values})]

    return {
        "hardware": distinct([{**record.hardware, "jobs": None} for record in records]),
        "versions": distinct([cast(JsonValue, record.versions) for record in records]),
        "git": cast("list[JsonValue]", sorted({str(record.git) for record in records})),
        "isolation": cast("list[JsonValue]", sorted({record.isolation for record in records})),
    }


def lock() -> str:
    """Every installed package as a line NAME==VERSION, for `pip install -r`."""
    versions = {each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"]}
    return "".join(f"{name}=={versions[name]}\n" for name in sorted(versions, key=str.lower))


def misplaced(bundle_file: Bundle, records: Mapping[str, Record]) -> Iterator[Finding]:
    """Files of a bundle that contradict its records, or belong to none."""
    known = {*bundle.PARTS, *records, *(name for record in records.values() for name in names_beside(record))}
    for name in sorted(bundle_file.files.keys() - known):
        yield Finding(
            "altered", name, "no record of the bundle names it: pack it again with `bench leaderboard submit`"
        )
    texts = {name: bundle_file.files.get(name, b"").decode(errors="replace") for name in bundle.PARTS}
    if _parsed(texts[bundle.ENVIRONMENT]) != environment(list(records.values())):
        yield Finding("altered", bundle.ENVIRONMENT, "it differs from the machines and versions of the records")
    if not all(map(LOCKED.fullmatch, texts[bundle.LOCK].removesuffix("\n").split("\n"))):
        yield Finding("altered", bundle.LOCK, "expected a line NAME==VERSION for each package")


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
