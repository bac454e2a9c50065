"""What the guides show runs: the notebook, the workflow, the container's lines."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import bench.evidence
import bench.types
from bench.cli import command_line, main
from bench.randomness import Secret, Stream
from docs.generator import NOTEBOOKS, executed, pages
from docs.generator.reference import DERIVED, SECTIONS, classes_of

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_a_script_without_a_guard(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(160, 1, 8, 8)") == 1, "once, in no process that it starts"
    assert "unknown method 'grey-level'" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_becomes_a_page_with_its_tables_and_plots(path: Path) -> None:
    pytest.importorskip("nbconvert", reason="of the extra docs")
    text, pictures = executed(path, path.stem)
    assert "<table" in text
    assert "reid-auc" in text
    assert any(content.startswith(b"\x89PNG") for content in pictures.values())
    assert all(f"{path.stem}/{name}" in text for name in pictures)
    assert "Traceback" not in text


def test_every_class_of_the_contract_is_on_the_page_of_classes() -> None:
    named = {name for names in SECTIONS.values() for name in names}
    aliases = {name for name, cls in classes_of(bench.types).items() if cls.__name__ != name}
    assert set(classes_of(bench.types)) - DERIVED - aliases == named


def test_methods_of_streams_and_evidence_have_a_page() -> None:
    site = {page.path: page.text for page in pages()}
    for cls in (Stream, Secret):
        assert f"::: {cls.__module__}.{cls.__qualname__}\n" in site["secrets.md"]
    for name, cls in classes_of(bench.evidence).items():
        if cls.__module__ == "bench.evidence":
            assert f"::: bench.evidence.{name}\n" in site["evidence.md"]
    told = re.findall(
        r"`(?:Stream\.)?(\w+_integers)`", site["secrets.md"] + (HOW_TO / "write-a-plug-in.md").read_text()
    )
    assert told
    assert all(hasattr(Stream, name) for name in told)


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (HOW_TO / page).read_text(encoding="utf-8"), re.DOTALL)


def commands(text: str) -> list[list[str]]:
    lines = text.replace("\\\n", " ").splitlines()
    return [
        shlex.split(re.split(r" [|>] ", line)[0], comments=True) for line in lines if line.strip().startswith("bench ")
    ]


@pytest.mark.parametrize(
    "page",
    [
        "use-in-scripts.md",
        "debug-a-plug-in.md",
        "upgrade.md",
        "measure-mimic-cxr.md",
        "lab-engineers-journey.md",
    ],
)
def test_commands_of_the_guides_are_read(page: str) -> None:
    found = [words for text in blocks(page, "sh") for words in commands(text)]
    assert found
    for words in found:
        command_line().parse_args(words[1:], exit_on_error=False, print_error=False)


def test_the_commands_of_a_lab_engineer_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = "lab-engineers-journey.md"
    (text,) = blocks(page, "yaml")
    Path("night.yaml").write_text(text, encoding="utf-8")
    small = yaml.safe_load(text) | {"attacks": ["nearest-neighbour"], "metrics": ["reid-auc"], "seeds": [0]}
    small["methods"] = ["blur", "dp-simple"]
    Path("small.yaml").write_text(yaml.safe_dump(small), encoding="utf-8")
    lines = [words[1:] for block in blocks(page, "sh") for words in commands(block)]
    assert [words for words in lines if words[0] == "run"] == [
        ["run", "--config", "night.yaml", "--dry-run"],
        ["run", "--config", "night.yaml"],
    ]
    for words in lines:
        given = ["small.yaml" if word == "night.yaml" and "--dry-run" not in words else word for word in words]
        assert main(given) == 0, (words, capsys.readouterr().err)
        if "--dry-run" in words:
            assert "24 to run, 0 to keep" in capsys.readouterr().out
    assert Path("site/index.html").is_file()


def test_the_workflow_is_one_and_its_commands_are_read() -> None:
    (text,) = blocks("continuous-integration.md", "yaml")
    workflow = yaml.safe_load(text)
    job = workflow["jobs"]["score"]
    assert job["timeout-minutes"] == 10
    found = [words for step in job["steps"] for words in commands(step.get("run", ""))]
    assert [words[1] for words in found] == ["check", "run"]
    for words in found:
        command_line().parse_args(words[1:], exit_on_error=False, print_error=False)
    (script,) = re.findall(r"python - <<'END'\n(.*?)\s*END", text, re.DOTALL)
    compile("\n".join(line.strip() for line in script.splitlines()), "script", "exec")


def test_the_container_installs_extras_that_exist() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (named,) = re.findall(r'"/src\[(.*?)\]"', text)
    assert set(named.split(",")) <= set(extras)
    for name in ("libpango-1.0-0", "libpangoft2-1.0-0", "bubblewrap"):
        assert name in text


def test_the_workflow_of_the_pages_pins_its_actions_and_runs_what_this_project_has() -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text())
    steps = [step for job in flow["jobs"].values() for step in job["steps"]]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert len(uses) == 4
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each) for each in uses), uses
    lines = [step["run"] for step in steps if "run" in step]
    assert lines == ["python -m pip install tox", "tox -e site"]
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    first, second = tox["testenv:site"]["commands"].strip().splitlines()
    assert first.startswith("mkdocs build --strict --site-dir {work_dir}/pages")
    folder = second.split()[-1]
    assert folder == "{work_dir}/pages/board"
    command_line().parse_args(shlex.split(second)[1:], exit_on_error=False, print_error=False)
    upload = next(step for step in steps if "upload-pages-artifact" in step.get("uses", ""))
    assert upload["with"]["path"] == ".tox/pages"
    assert flow["permissions"] == {"contents": "read"}
    assert flow["jobs"]["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
