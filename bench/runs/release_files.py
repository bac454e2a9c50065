"""Files of a release for strangers: tables, texts, scripts, hashes.

Nothing here names the data set, a path, a file or a person of the owner.
"""

from __future__ import annotations

__figures__ = False

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import JsonValue

from bench.plugins.spec import UsageError
from bench.results import croissant
from bench.results.run_secret import ABOUT
from bench.runs.release_scripts import EXAMPLE, LOADERS

SUMS = "SHA256SUMS"
CARD = "datacard.json"
LABELS, GROUPS = "labels.csv", "groups.csv"
METADATA, DATALIST = "metadata.csv", "datalist.json"
"""The labels once more, for images: as `datasets` (Hugging Face) and as MONAI read them."""
IMAGES_HASH = "images sha256"
NO_CLAIM = "no differential privacy"
TAKEN = frozenset({"released", "path", "class", "group"})
"""Column names that a finding may not have in a table of labels."""


@dataclass(frozen=True, eq=False)
class Contents:
    """A release as its texts describe it.

    Args:
        names: The m released rows: numbers, or paths of images.
        labels: (m, k) float32: 1, 0, NaN; None if none are released.
        groups: (m,) int64, equal for rows that are equal to the bit.
        about: The content of release.json.
        kind: The file that holds the rows, or "png" or "dicom".
    """

    names: Sequence[str]
    labels: torch.Tensor | None
    groups: np.ndarray
    about: Mapping[str, JsonValue]
    kind: str

    @property
    def findings(self) -> list[str]:
        """Names of the findings."""
        found = self.about["findings"]
        assert isinstance(found, list)
        return [str(name) for name in found]

    @property
    def distinct(self) -> int:
        """Number of different rows."""
        return len(np.unique(self.groups))

    @property
    def plain(self) -> bool:
        """If a table can hold the labels: 1, 0 or unknown."""
        return self.labels is not None and _plain(self.labels, self.findings)


def _plain(labels: torch.Tensor, findings: Sequence[str]) -> bool:
    whole = bool(((labels == 0) | (labels == 1) | labels.isnan()).all())
    return whole and TAKEN.isdisjoint(name.strip().casefold() for name in findings)


def check_labels(labels: torch.Tensor | None, about: Mapping[str, JsonValue], form: str) -> None:
    """Raise UsageError for labels that no table can hold."""
    findings = about["findings"]
    assert isinstance(findings, list)
    if labels is not None and not _plain(labels, [str(name) for name in findings]):
        raise UsageError(
            f"--format {form} keeps labels in a table of 1, 0 and blank, and these are mixed, or a finding is called "
            f"{', '.join(sorted(TAKEN))}: use --format safetensors"
        )


def write_texts(folder: Path, contents: Contents) -> None:
    """Write tables, README and scripts of a folder of rows."""
    files: dict[str, str] = {
        GROUPS: table_text(["released", "group"], zip(contents.names, contents.groups, strict=True))
    }
    if contents.plain:
        assert contents.labels is not None
        cells = [["" if mark != mark else f"{mark:g}" for mark in row] for row in contents.labels.tolist()]
        lines = ([name, *row] for name, row in zip(contents.names, cells, strict=True))
        files[LABELS] = table_text(["released", *contents.findings], lines)
        if contents.kind in IMAGES:
            files[DATALIST] = _datalist(contents)
        if contents.kind == "png":
            pairs = zip(contents.names, cells, strict=True)
            files[METADATA] = table_text(["file_name", *contents.findings], ([name, *row] for name, row in pairs))
    files["load.py"] = LOADERS[contents.kind]
    if contents.labels is not None:
        files["example.py"] = EXAMPLE
    files["README.md"] = _readme(contents, has_example=contents.labels is not None)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _datalist(contents: Contents) -> str:
    """MONAI's list of images, with marks of 1, 0 or null."""
    assert contents.labels is not None
    marks = [[None if mark != mark else int(mark) for mark in row] for row in contents.labels.tolist()]
    rows = [{"image": name, "label": row} for name, row in zip(contents.names, marks, strict=True)]
    return json.dumps({"labels": dict(enumerate(contents.findings)), "training": rows}, indent=1) + "\n"


def write_sums(folder: Path) -> Mapping[str, str]:
    """Write SHA256SUMS over all files of a folder; its content."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    sums = {name: sha256_of(folder / name) for name in names}
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()), encoding="utf-8")
    return sums


def images_hash(folder: Path) -> str:
    """SHA-256 (hex) over names and contents of all released images."""
    paths = sorted(path for path in (folder / "images").rglob("*") if path.is_file())
    lines = "".join(f"{sha256_of(path)}  {path.name}\n" for path in paths)
    return hashlib.sha256(lines.encode()).hexdigest()


def altered(folder: Path, about: Mapping[str, Any]) -> list[str]:
    """Files of rows that are missing, or other than release.json says."""
    names = [name for name, digest in about["sha256"].items() if _sum(folder / name) != digest]
    same = IMAGES_HASH not in about or about[IMAGES_HASH] == images_hash(folder)
    return sorted(names if same else [*names, "images"])


def changed(folder: Path) -> list[str]:
    """Files other than SHA256SUMS and release.json say, missing, or new.

    The list itself, if it is gone.
    """
    if not (folder / SUMS).is_file():
        return [SUMS]
    lines = (line.partition("  ") for line in (folder / SUMS).read_text(encoding="utf-8").splitlines())
    listed = {name: digest for digest, _, name in lines}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {SUMS}
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    others = {name for name in there | listed.keys() if _sum(folder / name) != listed.get(name)}
    return sorted(
        others | {*altered(folder, {"sha256": {}, **about})}
    )  # a new list does not make changed rows released


def _sum(path: Path) -> str:
    return sha256_of(path) if path.is_file() else ""


def write_card(folder: Path, contents: Contents) -> None:
    """Write the data card: Croissant with RAI fields."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    objects: list[JsonValue] = [
        {
            "@type": "cr:FileObject", "@id": path.name, "name": path.name, "contentUrl": path.name,
            "encodingFormat": FORMATS.get(path.suffix, "application/octet-stream"),
            "contentSize": f"{path.stat().st_size} B", "sha256": sha256_of(path),
        }
        for path in paths
    ]  # fmt: skip
    if contents.kind in IMAGES:
        suffix, media = IMAGES[contents.kind]
        objects += [
            {
                "@type": "cr:FileSet", "@id": "images", "name": "images", "encodingFormat": media,
                "includes": f"images/*{suffix}",
            }
        ]  # fmt: skip
    sets: list[JsonValue] = []
    if contents.plain:
        columns: list[JsonValue] = [
            {
                "@type": "cr:Field", "@id": f"labels/{number}", "name": f"labels/{number}", "description": name,
                "dataType": "sc:Text" if number == 0 else "sc:Float",
                "source": {"fileObject": {"@id": LABELS}, "extract": {"column": name}},
            }
            for number, name in enumerate(["released", *contents.findings])
        ]  # fmt: skip
        sets = [{"@type": "cr:RecordSet", "@id": "labels", "name": "labels", "field": columns}]
    about = contents.about
    method = about["method"]
    assert isinstance(method, dict)
    claim = about["claim"]
    promised = f"{about['claims']}; {NO_CLAIM if claim is None else json.dumps(claim, sort_keys=True)} here"
    card: dict[str, JsonValue] = {
        **croissant.head(),
        "name": "released-rows",
        "description": f"{len(contents.names)} rows of medical data, released by {method['written']}.",
        "version": "1.0.0",
        "distribution": objects,
        "recordSet": sets,
        "rai:dataPreprocessingProtocol": [f"Every row is a form of private rows made by {method['written']}."],
        "rai:dataLimitations": [
            f"{contents.distinct} of {len(contents.names)} rows are different ones: rows of one group of {GROUPS} "
            "belong on one side of every split. Several rows may come of one person; the release does not say which."
        ],
        "rai:dataUseCases": [_use(about)],
        "rai:personalSensitiveInformation": [f"Made of images or records of people. Formal guarantee: {promised}."],
        "rai:dataSocialImpact": ["Do not try to find out who is in the data."],
    }  # fmt: skip
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def bit_groups(hashes: Sequence[bytes]) -> np.ndarray:
    """Group numbers (m,) int64 of equal hashes, by appearance."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(each, len(numbers)) for each in hashes], dtype=np.int64)


def _use(about: Mapping[str, JsonValue]) -> str:
    if about.get("rows") == "encoded" or about.get("labels") == "encoded":
        return (
            "Train a model on the rows. The owner encodes new images with her key, and decodes the model's predictions."
        )
    return "Train a model on the rows. New images reach it as they are."


def _readme(contents: Contents, *, has_example: bool) -> str:
    about = contents.about
    method, claim, accepted = about["method"], about["claim"], about.get("accepted")
    assert isinstance(method, dict)
    shape = " x ".join(map(str, about["shape"])) if isinstance(about["shape"], list) else ""
    lines = [
        "# A release of private rows", "",
        f"{len(contents.names):,} rows, each {shape}, made from private ones by `{method['written']}` "
        f"({method['source']}).", "",
        f"- Guarantee: {about['claims']}.",
    ]  # fmt: skip
    parameters = method["parameters"]
    if isinstance(parameters, dict) and parameters:
        lines.insert(3, "Parameters: " + ", ".join(f"{name} {value}" for name, value in parameters.items()) + ".")
        lines.insert(4, "")
    if isinstance(claim, dict):
        epsilon = claim["epsilon"] if claim["derived"] is None else claim["derived"]
        lines.append(
            f"- Differential privacy: epsilon {epsilon if epsilon is not None else 'unbounded'} per {claim['unit']}, "
            f"delta {claim['delta']:g}. Assumed: {claim['assumptions']}"
        )
    elif NO_CLAIM not in str(about["claims"]):
        lines.append(f"- {NO_CLAIM.capitalize()} is claimed with these parameters.")
    if isinstance(accepted, dict) and isinstance(accepted["in spite of"], list):
        lines += [f"- The owner released it in spite of this: {cause}." for cause in accepted["in spite of"]]
        lines.append(f"- Her reason to release it: {accepted['reason']}")
        lines.append("- What the private rows themselves may say against it is not published.")
    lines += ["- Do not try to find out who is in the data, and do not join them with other data about people.", ""]
    lines += ["## Rows", "", _rows(contents), ""]
    lines += ["## Labels", "", *_coding(contents), ""]
    lines += [
        "## Use",
        "",
        _use(about),
        "",
        "    python load.py      # prints what is here; needs " + NEEDS[contents.kind],
    ]
    if has_example:
        lines += [
            "    python example.py   # trains a small model, and prints its AUC on rows that it has not seen",
            "    python example.py queries.safetensors predictions.csv   # predictions for the owner's new images",
        ]
    lines += ["", f"`{ABOUT}` has all of this for programs, `{CARD}` in the Croissant format. `sha256sum -c {SUMS}` "
              "checks the files.", ""]  # fmt: skip
    return "\n".join(lines)


def _rows(contents: Contents) -> str:
    where = {
        "safetensors": "`release.safetensors` holds `samples`, float32",
        "png": "`images/` holds a PNG file each, 8 bits a value",
        "dicom": "`images/` holds a DICOM file each (Secondary Capture), 8 bits a value",
    }[contents.kind]
    twice = len(contents.names) - contents.distinct
    told = f"{where}. `{GROUPS}` gives equal rows one number. "
    if twice:
        return told + (
            f"**Only {contents.distinct:,} rows are different ones**: {twice:,} are copies of others, to the bit. Keep "
            "the rows of a group on one side of every split, or cross-validation will say more than is true."
        )
    return told + "All rows are different ones. Several may come of one person, and the release does not say which."


def _coding(contents: Contents) -> list[str]:
    if contents.labels is None:
        return ["None are released."]
    encoded = contents.about.get("labels") == "encoded"
    kind = "exactly one a row" if contents.about["exclusive"] else "several may come together"
    lines = [f"1 is yes, 0 is no, blank (NaN) is unknown; {kind}."]
    if encoded:
        lines.append("They are in code: the owner alone knows which 1 means yes, or which class a column stands for.")
    if contents.plain and contents.kind in IMAGES:
        theirs = f"`{METADATA}` for `datasets` (Hugging Face), " if contents.kind == "png" else ""
        lines.append(f"`{LABELS}` has them; the same stand in {theirs}`{DATALIST}` for MONAI.")
    lines += ["", "| finding | 1 | 0 | unknown | between |", "| --- | --- | --- | --- | --- |"]
    for name, marks in label_counts(contents.findings, contents.labels).items():
        cell = name.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {cell} | {marks['yes']} | {marks['no']} | {marks['unknown']} | {marks['mixed']} |")
    return lines


def label_counts(findings: Sequence[str], labels: torch.Tensor | None) -> dict[str, dict[str, int]]:
    """Number of rows by finding and mark: yes, no, unknown, mixed.

    >>> label_counts(["Edema"], torch.tensor([[1.0], [1.0], [0.0], [torch.nan], [0.5]]))
    {'Edema': {'yes': 2, 'no': 1, 'unknown': 1, 'mixed': 1}}
    """
    found = {}
    for name, column in zip(findings, () if labels is None else labels.T, strict=labels is not None):
        yes, no, unknown = int((column == 1).sum()), int((column == 0).sum()), int(column.isnan().sum())
        found[name] = {"yes": yes, "no": no, "unknown": unknown, "mixed": len(column) - yes - no - unknown}
    return found


def table_text(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A CSV table, lines ended by a line feed."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(head)
    table.writerows(lines)
    return file.getvalue()


def sha256_of(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


IMAGES: Mapping[str, tuple[str, str]] = {"png": (".png", "image/png"), "dicom": (".dcm", "application/dicom")}
"""Ending and media type of image formats."""
NEEDS: Mapping[str, str] = {"safetensors": "numpy", "png": "numpy and pillow", "dicom": "numpy and pydicom"}
FORMATS: Mapping[str, str] = {
    ".csv": "text/csv", ".json": "application/json", ".md": "text/markdown", ".py": "text/x-python",
}  # fmt: skip
