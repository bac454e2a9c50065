"""YAML configuration: plain data, unique keys, bounded size and depth.

PyYAML alone takes the last of two equal keys, reads 010 as 8 and 1:30 as 90, and ends in a traceback on text that nests
deep, is no UTF-8, or names a day or number that there is not.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

BYTES = 4_000_000
DEPTH = 32
NODES = 100_000  # with what aliases stand for counted again each time: a few of them can stand for millions
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,39})")


class YamlError(ValueError):
    """Invalid YAML; the message names the line and the fault."""


def read_yaml(path: Path) -> object:
    """Read a YAML file; YamlError as `parse_yaml`, or for no UTF-8; OSError."""
    if not path.is_file() and path.exists():
        raise YamlError("expected a file, found a folder, pipe or device")
    if path.stat().st_size > BYTES:
        raise YamlError(f"expected at most {BYTES} bytes, found {path.stat().st_size}")
    try:
        return parse_yaml(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise YamlError(f"expected UTF-8, found another encoding (byte {error.start}): save it as UTF-8") from error


def parse_yaml(text: str) -> object:
    """Parse YAML text to mappings, lists, text, numbers, booleans, None.

    >>> parse_yaml("seed: 1\\nseed: 2")
    Traceback (most recent call last):
    bench.data.yaml_text.YamlError: line 2: the key 'seed' occurs twice

    Raises:
        YamlError: It is not such text.
    """
    try:
        _bound(text)
        return yaml.load(text, Loader=_Plain)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        if r"'\t'" in (error.problem or ""):
            raise YamlError(f"{line}found a tab, expected spaces: YAML allows only spaces as indentation") from error
        raise YamlError(f"{line}{', '.join(filter(None, (error.context, error.problem)))}") from error
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(f"not YAML: {error!s:.200}") from error


def _bound(text: str) -> None:
    """Raise YamlError if the text nests too deep or expands too far."""
    open_nodes: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # anchor, nodes and height so far
    anchors: dict[str, tuple[int, int]] = {}
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1, 1))
            if len(open_nodes) > DEPTH:
                raise YamlError(f"line {_line(event)}: nested deeper than {DEPTH} levels")
            continue
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise YamlError(f"line {_line(event)}: *{event.anchor} has no anchor before it")
            size, height = anchors[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            size, height = 1, 1
            if event.anchor:
                anchors[event.anchor] = size, height
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size, height = open_nodes.pop()
            if anchor:
                anchors[anchor] = size, height
        else:
            continue
        anchor, nodes, tall = open_nodes[-1]
        open_nodes[-1] = anchor, nodes + size, max(tall, height + 1)
        if nodes + size > NODES or len(open_nodes) + height > DEPTH + 1:
            raise YamlError(f"line {_line(event)}: more than {NODES} values or {DEPTH} levels")


def _line(place: yaml.Event | yaml.Node) -> int:
    return place.start_mark.line + 1 if place.start_mark else 1


class _Plain(yaml.SafeLoader):
    """PyYAML's loader of plain data, without its surprises."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        """A mapping whose keys are plain and stand once."""
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise YamlError(f"line {_line(key)}: expected a plain key, found a list or mapping")
            name = self.construct_object(key)
            if name in seen:
                raise YamlError(f"line {_line(key)}: the key {key.value!r} occurs twice")
            seen.add(name)
        return dict(super().construct_mapping(node, deep=deep))

    def whole(self, node: yaml.ScalarNode) -> int:
        """A whole number of up to 40 digits, as it looks."""
        if not _WHOLE.fullmatch(node.value):
            raise YamlError(
                f"line {_line(node)}: {node.value[:40]!r} may be meant as a number or as text: write the "
                f"number in digits, or put the text in quotes"
            )
        return int(node.value)

    yaml_constructors = yaml.SafeLoader.yaml_constructors | {"tag:yaml.org,2002:int": whole}
