"""An owner's declaration on a release; nothing of it is measured."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator, model_validator

from bench.data.yaml_text import YamlError, read_yaml
from bench.disk.disk_errors import unread
from bench.plugins.spec import UsageError, expected
from bench.results.record_parts import Part

USUAL_THRESHOLD = 0.09
USUAL_BASIS = "0.09: EMA Policy 0070 and Health Canada, Public Release of Clinical Information"


class Declaration(Part):
    """The owner's declaration; nothing of it is measured.

    Args:
        recipient, purpose: Who gets the release, and what for.
        other_data: Other data that the recipient may hold or get.
        protections: Contracts and technical limits on the recipient's side.
        threshold: The largest acceptable probability that a person is named, in (0, 1].
        threshold_basis: Where it is from.
        release_date, review_date: ISO dates, such as 2026-11-27.
        signed_by: Roles or names, each with a line to be signed by hand.
    """

    recipient: str = ""
    purpose: str = ""
    other_data: str = ""
    protections: str = ""
    threshold: Annotated[float, Field(gt=0, le=1)] = USUAL_THRESHOLD
    threshold_basis: str = USUAL_BASIS
    release_date: str = ""
    review_date: str = ""
    signed_by: list[str] = Field(default=["prepared by", "approved by"])

    @model_validator(mode="before")
    @classmethod
    def _basis_is_of_the_threshold(cls, told: object) -> object:
        """Another threshold has no basis until the owner names one."""
        if isinstance(told, dict) and told.get("threshold", USUAL_THRESHOLD) != USUAL_THRESHOLD:
            basis = told.get("threshold_basis", USUAL_BASIS)
            return {**told, "threshold_basis": "" if basis == USUAL_BASIS else basis}
        return told

    def under(self, threshold: float) -> Declaration:
        """The same with the threshold of a command.

        Raises UsageError if the owner declared another.
        """
        if "threshold" in self.model_fields_set and self.threshold != threshold:
            raise UsageError(
                f"the threshold is {self.threshold:g} by the declaration and {threshold:g} by --max-risk: state one"
            )
        return type(self).model_validate({**self.model_dump(), "threshold": threshold})

    @field_validator("release_date", "review_date", mode="before")
    @classmethod
    def _is_a_date(cls, value: object) -> str:
        text = value.isoformat() if isinstance(value, date) else value
        if not isinstance(text, str) or (text and not re.fullmatch(r"\d{4}-\d\d-\d\d", text)):
            raise ValueError("expected a date such as 2026-11-27")
        return text

    @classmethod
    def read(cls, path: Path) -> Declaration:
        """The declaration in a YAML file. Raises UsageError."""
        try:
            found = read_yaml(path) or {}
        except (OSError, YamlError) as error:
            raise UsageError(f"cannot read {path}: {unread(error) if isinstance(error, OSError) else error}") from error
        if not isinstance(found, dict):
            raise UsageError(f"{path} must hold a mapping, with any of {', '.join(cls.model_fields)}")
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                raise UsageError(f"{path}: {name} is not known; there are {', '.join(cls.model_fields)}") from error
            raise UsageError(f"{path}: {name}: {expected(first)}") from error

    def template(self) -> str:
        """A YAML file to fill in."""
        lines = ["# What you declare about the release; nothing of it is measured. Then repeat the command with"]
        lines.append("# --declare and this file. Empty lines are printed as not declared.")
        for name, value in self.model_dump().items():
            if isinstance(value, list):
                lines += [f"{name}:", *(f"  - {each}" for each in value)]
            else:
                lines.append(f"{name}: {value if isinstance(value, float) else _quoted(value)}")
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
