"""The pages of a report, and the owner's private annex."""

from __future__ import annotations

import base64
import io
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from bench.disk.atomic_file import make_folder, write_atomically
from bench.disk.process_id import own_name
from bench.plugins.profile_spec import read_profile
from leaderboard.entries import number
from leaderboard.environment import environment
from leaderboard.risk_report import QUESTIONS, RiskReport, Word

CLASSES: Mapping[Word, str] = {"below": "below", "not shown below": "unshown", "above": "above"}
"""The style of a conclusion on the page."""
COLOURS: Mapping[Word, str] = {"below": "#1c6b45", "not shown below": "#94420a", "above": "#a1202c"}
DECLARED: Mapping[str, str] = {
    "recipient": "Recipient", "purpose": "Purpose", "other_data": "Other data it may hold",
    "protections": "Protections", "threshold": "Threshold", "threshold_basis": "Basis of the threshold",
    "release_date": "Date of the release", "review_date": "Date of the next review",
}  # fmt: skip
OUTSIDE = 0.25
"""As far as values may leave 0 to 1 and still be grey levels."""
NO_PDF = "no PDF: WeasyPrint is not installed, or lacks Pango (pip install 'veil-bench[report]')"


def page(report: RiskReport) -> str:
    """One page of HTML, for a screen and for print."""
    told = report.declared.model_dump()
    eves = {each.eve: f"Eve, the attacker, holds {read_profile(each.eve).holds}." for each in report.concluded}
    return environment().get_template("risk_report.html").render(
        report=report, questions=QUESTIONS, classes=CLASSES, colours=COLOURS, eves=eves,
        declared={label: _written(told[name]) for name, label in DECLARED.items()},
    )  # fmt: skip


def _written(value: str | float) -> str:
    return number(value, None) if isinstance(value, float) else value


def pdf(html: str) -> bytes | None:
    """The page as PDF; None if WeasyPrint or its libraries are missing."""
    try:
        from weasyprint import HTML
    except (ImportError, OSError):  # without Pango, importing it raises OSError
        return None
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # it warns of rules that are for screens
    made: bytes = HTML(string=html, url_fetcher=_refuse).write_pdf()
    return made


def _refuse(url: str, *rest: object, **more: object) -> dict[str, object]:
    """Fetches nothing: a report is one file."""
    raise ValueError(f"a report reads nothing from elsewhere, and {url:.40} was asked for")


def write(report: RiskReport, out: Path, annex: str | None = None, form: str | None = None) -> list[Path]:
    """Write report.html, report.json, and what else there is, in one step.

    The folder gets mode 0700, files 0600. What a killed process left is never taken for a report.

    Args:
        report: What it says.
        out: A new or empty folder.
        annex: HTML of the private annex, for annex.html: neither the PDF nor the JSON has anything of it.
        form: Text for declaration.yaml; None if the owner declared something.
    """
    html = page(report)
    contents = {"report.html": html.encode(), "report.json": report.model_dump_json(indent=1).encode() + b"\n"}
    if (printed := pdf(html)) is not None:
        contents["report.pdf"] = printed
    contents |= {} if annex is None else {"annex.html": annex.encode()}
    contents |= {} if form is None else {"declaration.yaml": form.encode()}
    make_folder(out.parent)
    building = out.with_name(f".{out.name}.{own_name()}")
    try:
        make_folder(building, mode=0o700)
        for name, content in contents.items():
            write_atomically(building / name, content, mode=0o600)
        building.replace(out)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return [out / name for name in contents]


@dataclass(frozen=True, eq=False)
class Person:
    """A person of the annex.

    Args:
        title: File and name of the person, as the owner knows them.
        text: What the attack did.
        images: Raw, released, and what the attack ranked first: (c, h, w) float32 in any units, or (d,).
    """

    title: str
    text: str
    images: Sequence[np.ndarray]


@dataclass(frozen=True, eq=False)
class Worst:
    """The people whom the strongest attack finds under one profile.

    `note` says why there are none.
    """

    eve: str
    holds: str
    attack: str
    people: Sequence[Person]
    note: str = ""


def annex_page(report: RiskReport, worst: Sequence[Worst], withheld: Mapping[str, str]) -> str:
    """The private annex: people at high risk, and withheld reasons.

    Args:
        report: The report that it belongs to.
        worst: By profile.
        withheld: Reasons by what they explain.
    """
    return environment().get_template("risk_annex.html").render(
        report=report, worst=worst, withheld=withheld, drawn=_drawn, captions=CAPTIONS
    )  # fmt: skip


CAPTIONS = "raw", "released", "ranked first"


def _drawn(image: np.ndarray) -> str:
    """An image as a data: URL; empty for other rows."""
    if image.ndim != 3:
        return ""
    image = image[:3] if len(image) >= 3 else image[:1]
    low, high = np.quantile(image, (0.01, 0.99))
    if low < -OUTSIDE or high > 1 + OUTSIDE:  # in other units: they are stretched over black to white
        image = (image - low) / max(float(high - low), 1e-12)
    pixels = (image.clip(0, 1) * 255).round().astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
