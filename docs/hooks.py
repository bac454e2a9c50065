"""MkDocs hooks: pages from the generator, and no remote resource."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.generator import NOTEBOOKS, executed, navigation, notebook_path, pages

ROOT = str(Path(__file__).parents[1])

_REMOTE = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?![^>]*rel=[\"']?canonical)[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>"
    r"|url\(\s*[\"']?(?:https?:)?//[^)]*\)|@import\s+[\"'](?:https?:)?//[^\"']*",
    re.IGNORECASE,
)


def on_startup(command: str, dirty: bool) -> None:
    """Keep the root on the path, which MkDocs restores after this file."""
    sys.path.insert(0, ROOT)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Build the menu from the pages."""
    config.nav = navigation(pages())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generator's pages in place of those in `docs/`, notebooks executed."""
    for page in pages():
        if page.path in files.src_uris:  # as it lies in the repository, without links to generated pages
            files.remove(files.src_uris[page.path])
        files.append(File.generated(config, page.path, content=page.text))
    for path in NOTEBOOKS:
        text, pictures = executed(path, path.stem)
        files.remove(files.src_uris[notebook_path(path)])
        files.append(File.generated(config, notebook_path(path), content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"{path.stem}/{name}", content=content))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that loads anything from another server."""
    found = [
        f"{path.name}: {match[0][:100]}"
        for path in sorted(Path(config.site_dir).rglob("*"))
        if path.suffix in (".html", ".css")
        for match in _REMOTE.finditer(path.read_text(encoding="utf-8"))
    ]
    if found:
        raise PluginError("the site must not load from other servers:\n" + "\n".join(found))
