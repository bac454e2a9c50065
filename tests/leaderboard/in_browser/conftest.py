"""Pages in a browser: where playwright or chromium is missing, these tests are skipped and say so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made.many_records import write

from bench.results.results import Results
from leaderboard.site import build

RECORDS = 330


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser that is installed on this machine."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'"
    )
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed: apt-get install chromium, or name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a few hundred made-up records on two data sets."""
    folder = tmp_path_factory.mktemp("browser")
    write(RECORDS, folder / "results")
    return build(Results(folder / "results"), folder / "site").parent


@pytest.fixture
def paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages of a board that is too long for one, as pages go here."""
    monkeypatch.setattr("leaderboard.pages.MOST_LINES", 8)
    monkeypatch.setattr("leaderboard.pages.MOST_LINES", 8)
    monkeypatch.setattr("leaderboard.pages.MOST_FRONT", 6)
    write(RECORDS // 2, tmp_path / "results")
    return build(Results(tmp_path / "results"), tmp_path / "site").parent


@pytest.fixture
def visit(chromium: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page of the site, at a width and in a scheme of colours; what the browser complains of fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_page(name: str, width: int = 1440, scheme: str = "light", script: bool = True) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)  # a load of ten
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if "file:" not in request.url[:5] else None)
        page.goto(f"{(site / name.partition('?')[0]).as_uri()}{''.join(name.partition('?')[1:])}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [said for said in complaints if not said.startswith("data:")] == []


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which checks pages for what shuts people out."""
    path = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    if not path.is_file():
        pytest.skip("axe-core is not here: npm install --no-save axe-core, or name axe.min.js in AXE_CORE")
    return path.read_text(encoding="utf-8")
