"""Results of `bench check` as JUnit XML, which continuous integration shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from bench.disk.atomic_file import write_atomically
from bench.wire.text import plain

if TYPE_CHECKING:
    from bench.conformance.isolated_check import PluginCheck


def write_junit(path: Path, found: Mapping[str, Sequence[PluginCheck]]) -> None:
    """Write a suite a plug-in, and a case a check.

    A failed check is a failure with its place and traceback; a check that was skipped or not reached is skipped.
    Notes stand in a case's output.
    """
    root = ElementTree.Element("testsuites")
    for name, results in found.items():
        suite = ElementTree.SubElement(
            root, "testsuite", name=plain(name), tests=str(len(results)),
            failures=str(sum(one.status == "failed" for one in results)), errors="0",
            skipped=str(sum(one.status in ("skipped", "not-reached") for one in results)),
            time=f"{sum(one.seconds for one in results):.3f}",
        )  # fmt: skip
        for one in results:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"{plain(name)} ({one.group})", name=one.check, time=f"{one.seconds:.3f}"
            )
            text = plain(one.detail)
            if one.status == "failed":
                failure = ElementTree.SubElement(case, "failure", message=text)
                failure.text = "\n".join(plain(part, len(part)) for part in (one.where, one.trace) if part)
            elif one.status in ("skipped", "not-reached"):
                ElementTree.SubElement(case, "skipped", message=text)
            elif text:
                ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    write_atomically(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
