"""Scripts in Jupytext's percent format as pages, executed for the site."""

from __future__ import annotations

import re
import tempfile
from importlib import import_module
from pathlib import Path

from docs.generator.markdown import Page, join

_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)
_HEADER = re.compile(r"\A# ---\n(?:#.*\n)*?# ---\n")
KERNEL = "python3"
SECONDS = 1200
"""Of one cell."""


def notebook_page(path: Path, page: str) -> Page:
    """A notebook as it is written, without what its cells give."""
    _, *parts = _CELL.split(_HEADER.sub("", path.read_text(encoding="utf-8")))
    texts = [_cell(kind, text) for kind, text in zip(parts[::2], parts[1::2], strict=True)]
    heading = re.match(r"# (.+)", texts[0])
    if heading is None:
        raise ValueError(f"{path} must start with its title, a Markdown cell with a line that starts with '# '")
    return Page(page, heading[1], join(*texts))


def _cell(kind: str, text: str) -> str:
    if kind.strip() == "[markdown]":
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.strip().splitlines())
    code = text.replace("  # fmt: skip", "").strip()
    return f"```python\n{code}\n```"


def executed(path: Path, stem: str) -> tuple[str, dict[str, bytes]]:
    """A notebook's page with its outputs, and its pictures by name.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raises.
    """
    jupytext, nbconvert = import_module("jupytext"), import_module("nbconvert")  # only the site needs them
    run = import_module("nbconvert.preprocessors").ExecutePreprocessor(timeout=SECONDS, kernel_name=KERNEL)
    notebook = jupytext.read(path)
    for cell in notebook.cells:
        cell.source = cell.source.replace("  # fmt: skip", "")
    with tempfile.TemporaryDirectory() as folder:
        run.preprocess(notebook, {"metadata": {"path": folder}})
    named = {"unique_key": stem, "output_files_dir": stem}
    text, resources = nbconvert.MarkdownExporter().from_notebook_node(notebook, named)
    return text, {Path(name).name: content for name, content in resources["outputs"].items()}
