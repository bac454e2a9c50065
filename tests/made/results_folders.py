"""Results folders of made-up records, names of ended processes, and hostile names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from bench.disk.process_id import machine
from bench.randomness import Secret
from bench.results import log_file
from bench.results.records import Record, evidence_record, picture_record
from bench.results.results import Results
from bench.results.run_secret import RunSecret
from bench.results.signed_json import content_key
from bench.results.store import Artefact
from bench.workbench.inputs import COMMITMENT, record_identity
from made.board_records import auc, dataset, keyed, record

PNG = b"\x89PNG\r\n\x1a\n a picture"
EVIDENCE = save({"uint8": torch.arange(5, dtype=torch.uint8)}, metadata={"evidence": "{}"})
SECRET = Secret(bytes(range(32)))


def one(name: str = "a", **more: Any) -> Record:
    """A record of data that may be shared."""
    more = {"cell": f"synth-cxr/{name}", "evaluator": "utility", "scores": {"utility-auc": auc(0.75)}, **more}
    return record("identity", kind="utility", attack=None, **more)


def whole(name: str = "a", **more: Any) -> Record:
    """The same with a picture and evidence."""
    return one(name, pictures={"look": picture_record(PNG, "rows")}, evidence=evidence_record(EVIDENCE), **more)


def restricted(name: str = "r", **more: Any) -> Record:
    """A record of data that may not be shared, as the harness writes it: figures alone."""
    data = dataset("mimic", shareable=False)
    return one(name, cell=f"mimic/{name}", dataset=data, scores={}, **more)


def inputs(made: Record, **more: Any) -> dict[str, Any]:
    """What an artefact of a record's data is made from."""
    assert made.dataset is not None
    return {"data": made.dataset.fingerprint, "public data": made.dataset.public_fingerprint, **more}


def keep(results: Results, *records: Record) -> None:
    for each in records:
        pictures = {"look": PNG} if each.pictures else {}
        results.keep(each, pictures, evidence=EVIDENCE if each.evidence else None)


def artefact(results: Results, kind: str, made: dict[str, Any], value: float = 1.0) -> None:
    results.store.ensure(kind, made, lambda: Artefact({"weight": torch.full((3,), value)}, {"seconds": 1.0}))


def folder(root: Path, *, count: int = 6) -> Results:
    """A folder of records with what belongs to them, a scheme, and everything that must not leave."""
    results = Results(root)
    keep(results, *(whole(f"c{number}") for number in range(count)), one("plain"))
    artefact(results, "schemes", inputs(one(), method="m"))
    artefact(results, "detectors", inputs(one()), 2.0)
    results.keep_secret(SECRET)
    results.journal.keep_plan("synth-cxr/c0", "method: m\nevaluators: []\n", None)
    log = results.log("synth-cxr", "c0", "utility")
    log.parent.mkdir(parents=True)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(handle, b"a patient's name")
    log_file.close(log, handle)
    return results


def cell_of(made: Record, secret: Secret) -> Secret:
    """The secret of a record's cell under a run secret."""
    identity = record_identity(made)
    assert identity is not None
    return RunSecret(secret).of_cell(identity)


def under(made: Record, secret: Secret) -> Record:
    """The record as made under a run secret."""
    again = keyed(made)
    told = {**again.inputs, COMMITMENT: cell_of(made, secret).commitment()}
    return again.model_copy(update={"inputs": told, "key": content_key(told)})


def files(root: Path, *folders: str) -> dict[str, bytes]:
    """Every file below those folders, by name."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for name in folders
        for path in sorted((root / name).rglob("*"))
        if path.is_file() and path.suffix not in (".lock", ".TAG")
    }


CARRIED = ("cells", "artefacts/schemes", "artefacts/detectors", "artefacts/releases")


def gone_name() -> str:
    """A name that a process of this machine could have given, which is no more."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return f"{machine()}-{ended.pid}-{'0a' * 8}"


FORMULAS = (
    "=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "|cmd", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\u200b=1",
    "\ufeff=1", "\uff1d1+1", "\uff20SUM(1)", "\x00=1", "a;=1+1", "a\t=1+1", 'a"\n=1+1', "a;\n @SUM(1)", '";=1+1;"',
)  # fmt: skip
TEX = (
    r"\input{/etc/passwd}", r"\write18{id}", r"^^5cinput{x}", "} \\end{tabular} \\input{x} {", "$x$ & y \\\\ % z",
    "a_b#c~d", "[2cm]", "*", "{", "}", "{{{", "a\n\n\\par b", "\\", "%", "\\\\[1cm]", "`'\"", "π ≠ 中 \U0001f600",
    "\u202egnp",
)  # fmt: skip
XML = (
    "<script>alert(1)</script>", "\"><image href='x'/>", "]]>", "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "&x;", "&#0;", "\x00\x01\x0b\x1f", "\ufffe\uffff", "' onload='alert(1)", "<!--", "</text><script/>",
    "javascript:alert(1)", "\u2028",
)  # fmt: skip
NAMES = (*FORMULAS, *TEX, *XML)
