"""A method or an attack in record form."""

from __future__ import annotations

from pydantic import Field, JsonValue

from bench.results.part import Part
from bench.types import Role


class PluginRecord(Part):
    """A plug-in as it ran: every parameter, the paper, and a hash of its source and of what it imports from here.

    Args:
        name: As registered, or the file's name and the class.
        parameters: Every one, those at their defaults too.
        source: The paper.
        code: The hash.
    """

    name: str
    written: str = Field(description="as the command line takes it; capitals stand for what is confidential")
    parameters: dict[str, JsonValue]
    source: str
    code: str
    origin: str = Field(description="the distribution or file that provided the plug-in")
    role: Role | None = Field(default=None, description="what a reference method is there for")
