"""An outside row is measured again in real sandboxes, under its author's secrets and under the verifier's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from made.environments import wheel

from bench.cli import main
from bench.exchange import check
from bench.plugins import environment_build, environments, registry
from bench.plugins.code_digest import environment_digest
from bench.plugins.environment_build import Wanted
from bench.plugins.third_party import stand_in
from bench.randomness import Secret
from bench.results.records import Record
from bench.results.results import Results
from bench.sandbox import why_not

METHOD = '''"""A method of another author."""
from dataclasses import dataclass
from typing import ClassVar
from bench_room import Keyless

@dataclass(frozen=True)
class Mine(Keyless):
    """Gives rows as they are."""
    name: ClassVar[str] = "mine"
    source: ClassVar[str] = "a test"
    def transform(self, samples):
        return samples * 1
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The method in an environment of its own."""

    def forget() -> None:
        environments.forget()
        for cache in (environment_digest, registry.entries, stand_in):
            cache.cache_clear()

    monkeypatch.setenv("BENCH_PLUGINS", str(tmp_path / "plugins"))
    forget()
    package = wheel(
        tmp_path, "other_author", {"other_author.py": METHOD}, "[bench.methods]\nmine = other_author:Mine\n"
    )
    environment_build.add(Wanted.of([str(package)], python=None, alone=False, sandbox=False))
    yield
    monkeypatch.undo()
    forget()


@pytest.mark.slow
@pytest.mark.isolated
@pytest.mark.usefixtures("mine")
@pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
def test_an_outside_row_is_run_again_and_sealed_in_sandboxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "required", lambda choice: [])  # one attack is a row
    results, own, bundle = tmp_path / "results", tmp_path / "own", tmp_path / "mine.bundle.zip"
    run = ["run", "--method", "mine", "--dataset", "digits", "--preset", "smoke", "--attack", "chance", "--metric",
           "guesswork", "--no-controls", "--no-site", "--jobs", "1", "--device", "cpu"]  # fmt: skip
    assert main([*run, "--isolation", "sandbox", "--results", str(results)]) == 0
    assert main(["leaderboard", "submit", str(results), "--disclose", "--out", str(bundle)]) == 0
    capsys.readouterr()
    verify = ["leaderboard", "verify", str(bundle), "--verdict"]
    assert main([*verify, str(tmp_path / "a.json"), "--rerun", "1"]) == 0
    assert "re-run: digits/mine" in capsys.readouterr().out
    assert main([*verify, str(tmp_path / "b.json"), "--seal", "--results", str(results)]) == 2  # the author's secret
    capsys.readouterr()
    Results(own).keep_secret(Secret.of_seed(1, "the verifier's"))
    assert main([*verify, str(tmp_path / "b.json"), "--seal", "--results", str(own)]) == 0
    assert "Tier: sealed" in capsys.readouterr().out
    ((_, theirs),), ((_, ours),) = (list(Results(folder).records()) for folder in (results, own))
    assert isinstance(ours, Record)
    assert isinstance(theirs, Record)
    assert ours.isolation == theirs.isolation == "sandbox"
    assert ours.inputs["run secret commitment"] != theirs.inputs["run secret commitment"]
    assert ours.scores["guesswork"].value != theirs.scores["guesswork"].value
