"""The schema of records as a page and as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from bench.results import records
from docs.generator.docstrings import Docstring, read
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page

PATH = "records.md"
FILE = "record.schema.json"
Schema = Mapping[str, JsonValue]


def record_pages(targets: Mapping[str, str]) -> list[Page]:
    """The page and the schema itself."""
    schema = records.json_schema()
    parts = cast("dict[str, Schema]", schema.get("$defs", {}))
    prose = Prose(PATH, targets)
    page = Page(PATH, "Records", join(
        "# Records",
        "Every outcome is a record: one JSON file for each evaluator of each cell, with sorted keys. What failed or "
        "does not apply has a record too, with the reason. Pages and tables are made from records alone.",
        f"For programs: <a href=\"{FILE}\">{FILE}</a>, the JSON Schema that every record follows; `bench leaderboard "
        "build` writes it beside the pages too.",
        _part("Record", schema, prose),
        *(_part(name, part, prose) for name, part in parts.items() if "properties" in part),
    ))  # fmt: skip
    return [page, Page(FILE, "", json.dumps(schema, indent=2, sort_keys=True) + "\n")]


def _part(name: str, schema: Schema, prose: Prose) -> str:
    doc = read(str(schema.get("description", "")))
    needed = cast("list[str]", schema.get("required", []))
    fields = cast("dict[str, Schema]", schema.get("properties", {}))
    rows = [
        (f"`{field}`", _type(found), "required" if field in needed else f"`{json.dumps(found.get('default'))}`",
         prose.line(_said(field, found, doc)))
        for field, found in fields.items()
    ]  # fmt: skip
    return join(
        f"## {name} {{#{name.lower()}}}",
        prose.block(f"{doc.summary}\n\n{doc.text}"),
        table(("field", "type", "default", "what it is"), rows),
    )


def _said(name: str, field: Schema, doc: Docstring) -> str:
    """The description of a field, or of its part's docstring."""
    return str(field.get("description", "")) or doc.arguments.get(name, "")


def _type(schema: Schema) -> str:
    """The type of a field in words, with links."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return "any JSON value" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in cast("list[Schema]", schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in cast("list[str]", schema["enum"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(cast(Schema, schema.get('items', {})))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"mapping of text to {_type(cast(Schema, schema['additionalProperties']))}"
    words = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
    return words.get(str(schema.get("type")), str(schema.get("type", "any JSON value")))
