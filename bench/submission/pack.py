"""A results folder packed into a bundle: records, pictures, evidence, environment, lock file, the secret if wished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import distributions, version
from pathlib import Path

from bench.results import bundle
from bench.results.records import Record, dumps
from bench.results.results import Results, evidence_name, picture_name
from bench.results.run_secret import kept
from bench.results.signing_key import SigningKey
from bench.submission.beside import environment
from bench.submission.check import check
from bench.submission.finding import Finding


def submit(results: Results, out: Path, *, signer: SigningKey | None, disclose: bool) -> tuple[Finding, ...]:
    """Check a results folder and pack it.

    Args:
        results: The folder.
        out: The new file.
        signer: Signs the bundle.
        disclose: Put the run secret in, without which nobody can derive the keys.

    Returns:
        Why it is not packed; nothing where it was.
    """
    checked = check(results)
    findings = list(checked.findings)
    if not checked.records:
        findings.append(Finding("incomplete", str(results.root), "it holds no record; `bench run` makes them"))
    elif all(record.method.role is not None for record in checked.records.values()):  # those of a run that was cut off
        findings.append(Finding("incomplete", str(results.root), "it holds controls and no row that they are for; "
                                "the same `bench run` goes on"))  # fmt: skip
    hidden = [name for name, record in checked.records.items() if record.dataset and not record.dataset.shareable]
    if disclose and hidden:
        findings.append(Finding("restricted", hidden[0], "the run secret undoes releases of data that may not "
                                "be shared: leave --disclose out, or run what may be shared apart"))  # fmt: skip
    if findings:
        return tuple(findings)
    files = {name: dumps(record).encode() for name, record in checked.records.items()}
    for record in checked.records.values():
        files |= _beside(results, record)
    files[bundle.ENVIRONMENT] = (
        json.dumps(environment(list(checked.records.values())), indent=2, sort_keys=True) + "\n"
    ).encode()
    files[bundle.LOCK] = lock().encode()
    if disclose and (secret := kept(results.secret_file)) is not None:
        files[bundle.SECRET] = f"{secret.content.hex()}\n".encode()
    bundle.pack(out, files, f"veil-bench {version('veil-bench')}", signer)
    return ()


def _beside(results: Results, record: Record) -> Mapping[str, bytes]:
    found = {picture_name(record, name): results.picture(record, name) for name in record.pictures}
    if record.evidence is not None:
        found[evidence_name(record)] = results.evidence(record)
    return {name: content for name, content in found.items() if content is not None}


def lock() -> str:
    """Every package that is installed, at its version, a line each: `pip install -r` makes the environment again."""
    found = {each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"]}
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found, key=str.lower))
