"""`bench check` names the first cause, at the author's own line, and does not reach what depends on it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench.cli import main
from bench.conformance import conform
from bench.conformance.isolated_check import _wait
from bench.conformance.outcome import Result
from bench.plugins import registry
from bench.plugins.spec import UsageError

pytestmark = pytest.mark.usefixtures("no_training")

GOOD = '''
from __future__ import annotations
import os, sys
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.randomness import Secret
from bench.types import Dataset, Key, Method, Release, Scheme, State, paired

COUNT = [0]

@dataclass(frozen=True)
class Mine(Method):
    """Adds a number to every pixel."""
    name: ClassVar[str] = "mine"
    source: ClassVar[str] = "a test"
    def fit(self, public, seed):
        return MineScheme()  # fit
    def load(self, state):
        return MineScheme()  # load

class MineScheme(Scheme):
    def sample_key(self, secret):
        return MineKey(secret)  # key
    def load_key(self, state):
        return MineKey(Secret.load(state["secret"]))  # load key

class MineKey(Key):
    def __init__(self, secret):
        self.secret = secret
    def shift(self):
        return float(self.secret.stream("shift").normal(1)[0])
    def release(self, private):
        return paired(self.query(private.samples), private.labels)  # release
    def query(self, samples):
        return samples + self.shift()  # query
    def state(self):
        return {"secret": self.secret.tensor()}  # state
'''

POST_INIT = "    def __post_init__(self):\n        raise TypeError('no luck')\n    def fit("
LOAD_KEY = """    def load_key(self, state):
        return MineKey(Secret.load(state["secret"]))  # load key
"""
FIT, QUERY = "return MineScheme()  # fit", "return samples + self.shift()  # query"
FORMED, ONE = "release is well-formed", "one key, one release"
RELEASE = "return paired(self.query(private.samples), private.labels)  # release"
CASES: dict[str, tuple[str, str, str, str, str]] = {  # what is replaced, by what; the check that fails, where, and why
    "no load": ("    def load(self, state):\n        return MineScheme()  # load\n", "", "describes itself",
                "in Mine", "must define load"),
    "name of another": ('ClassVar[str] = "mine"', 'ClassVar[str] = "blur"', "describes itself", "in Mine",
                        "is that of a registered method"),
    "no load_key": (LOAD_KEY, "", "fits public rows", "in fit", "load_key"),
    "raises when built": ("    def fit(", POST_INIT, "can be built", "in __post_init__", "no luck"),
    "raises in fit": (FIT, "raise KeyError('fit')  # fit", "fits public rows", "in fit", "KeyError"),
    "fit gives nothing": (FIT, "return None  # fit", "fits public rows", "in fit",
                          "must return a Scheme, got NoneType"),
    "raises in key": ("return MineKey(secret)  # key", "return [][1]  # key", "draws keys", "in sample_key",
                      "IndexError"),
    "key is none": ("return MineKey(secret)  # key", "return secret  # key", "draws keys", "in sample_key",
                    "must return a Key, got Secret"),
    "state is no tensors": ('{"secret": self.secret.tensor()}  # state', '{"secret": 3}  # state', "draws keys",
                            "in state", "must return tensors by name"),
    "raises in release": (RELEASE, "return 1 / 0  # release", FORMED, "in release", "ZeroDivisionError"),
    "raises in what release calls": (QUERY, "return samples @ torch.ones(3)  # query",
                                     FORMED, "in query", "RuntimeError"),
    "release gives rows": (RELEASE, "return private.samples  # release", FORMED, "in release",
                           "must return a Release, got Tensor"),
    "not a number": (RELEASE, "return paired(private.samples * float('nan'), private.labels)  # release",
                     FORMED, "in release", "must be finite"),
    "wrong kind": (RELEASE, "return paired(private.samples.double(), private.labels)  # release",
                   FORMED, "in release", "float32"),
    "wrong shape": (RELEASE, "return paired(private.samples[:, 0], private.labels)  # release",
                    FORMED, "in release", "must be images (m, c, h, w)"),
    "fewer labels": (RELEASE, "return paired(private.samples, private.labels[:, :1])  # release",
                     FORMED, "in release", "labels must have shape"),
    "links outside": (RELEASE, "return Release(private.samples, private.labels, torch.tensor([[0, 999]]))  # release",
                      FORMED, "in release", "links must lie in"),
    "writes in release": (RELEASE, "private.samples.add_(1); return paired(private.samples.clone(), None)  # release",
                          "inputs stay untouched", "in release", "release wrote into its input"),
    "writes in fit": (FIT, "public.samples.zero_(); return MineScheme()  # fit",
                      "inputs stay untouched", "in fit", "fit wrote into its input"),
    "draws without its key": (QUERY, "return samples + torch.rand(samples.shape)  # query",
                              ONE, "in release", "under one key"),
    "counts its calls": (QUERY, "COUNT[0] += 1; return samples + COUNT[0]  # query",
                         ONE, "in release", "under one key"),
    "fits as chance has it": (FIT, "return chancy()  # fit", "same seed, same bits", "in fit",
                              "two fits with one seed"),
    "ignores its key": (QUERY, "return samples + 1  # query", "different keys differ",
                        "in release", "two keys gave the same release"),
    "links another row": (RELEASE, "return paired(self.query(private.samples).roll(1, 0), private.labels)  # release",
                          "links follow the rows", "in release", "not linked to it"),
    "query of another shape": (QUERY, "return (samples + self.shift())[..., :8]  # query",
                               "queries look like releases", "in query", "query must give rows like the release"),
    "ends the process": (RELEASE, "sys.exit(3)  # release", FORMED, "in release", "it ends the process"),
    "acts as if stopped": (RELEASE, "raise KeyboardInterrupt('hm')  # release", FORMED, "in release",
                           "KeyboardInterrupt: hm, which stops a command as Ctrl-C does"),
    "raises an uncaught error": (FIT, "raise GeneratorExit('hm')  # fit", "fits public rows", "in fit",
                                   "GeneratorExit: hm"),
    "cannot say why": (FIT, "raise Mute  # fit", "fits public rows", "in fit", "Mute: it cannot say why"),
    "load forgets": ("return MineScheme()  # load", "return Other()  # load", "saves and loads", "in load",
                     "a scheme and its loaded state"),
}  # fmt: skip
MORE = """
class Other(MineScheme):
    def sample_key(self, secret):
        return MineKey(secret.derive("other"))

class Chancy(MineScheme):
    def __init__(self):
        COUNT[0] += 1
        self.name = str(COUNT[0])
    def sample_key(self, secret):
        return MineKey(secret.derive(self.name))

def chancy():
    return Chancy()

class Mute(BaseException):
    def __str__(self):
        raise ValueError
"""


def broken(folder: Path, old: str, new: str) -> tuple[Path, str]:
    assert GOOD.count(old) == 1, old
    own = "return paired(private.samples + self.shift(), private.labels)  # release"
    text = GOOD.replace(RELEASE, own) if "..., :8" in new else GOOD  # there the release keeps its own shape
    path = folder / "mine.py"
    path.write_text(text.replace(old, new) + MORE)
    return path, path.read_text()


def first(results: list[Result]) -> Result:
    return next(result for result in results if result.status == "failed")


@pytest.mark.parametrize("name", CASES)
def test_the_first_cause_is_named_at_the_authors_line(tmp_path: Path, name: str) -> None:
    old, new, check, where, said = CASES[name]
    path, text = broken(tmp_path, old, new)
    found = first(conform("methods", f"{path}:Mine", torch.device("cpu")))
    assert found.check == check, found
    assert said in found.detail
    place = re.fullmatch(r"mine\.py:(\d+) in (\w+)", found.where)
    assert place is not None, found
    assert f"in {place[2]}" == where
    assert int(place[1]) <= text.count("\n")
    assert "KeyError" not in found.detail or "mine.py" in found.trace


def test_what_depends_on_the_first_cause_is_not_reached(tmp_path: Path) -> None:
    old, new, *_ = CASES["no load"]
    path, _ = broken(tmp_path, old, new)
    results = conform("methods", f"{path}:Mine", torch.device("cpu"))
    assert [result.status for result in results].count("failed") == 1
    assert {result.status for result in results[1:]} == {"not-reached"}
    assert results[1].detail == 'because "describes itself" failed'


def test_a_failure_that_nothing_depends_on_stops_nothing(tmp_path: Path) -> None:
    old, new, *_ = CASES["ignores its key"]
    path, _ = broken(tmp_path, old, new)
    results = conform("methods", f"{path}:Mine", torch.device("cpu"))
    assert not [result for result in results if result.status == "not-reached"]


def test_a_sound_method_has_no_cause_and_what_it_prints_is_noted(tmp_path: Path) -> None:
    path, _ = broken(tmp_path, RELEASE, f"print('busy'); {RELEASE}")
    results = {result.check: result for result in conform("methods", f"{path}:Mine", torch.device("cpu"))}
    assert not [result for result in results.values() if result.status == "failed"]
    assert results["keeps quiet"].status == "noted"
    assert "'busy'" in results["keeps quiet"].detail


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.usefixtures("quick_rooms")
def test_a_process_that_ends_is_a_finding_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = broken(tmp_path, RELEASE, "os._exit(0)  # release")
    assert main(["check", f"{path}:Mine", "--device", "cpu"]) == 1
    told = capsys.readouterr().err
    assert 'First cause: "release is well-formed" failed' in told
    assert "it ended the process" in told


@pytest.mark.parametrize("said", ["ZeroDivisionError", "KeyboardInterrupt", "GeneratorExit", "SystemExit"])
def test_a_file_that_cannot_be_imported_is_named_with_its_line(tmp_path: Path, said: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"x = 1\nraise {said}('hm')\n")
    with pytest.raises(UsageError, match=f"cannot be imported at line 2: {said}: hm"):
        registry.load("methods", f"{path}:Mine")


def test_a_signal_stops_a_check_and_an_import_all_the_same(tmp_path: Path) -> None:
    stop = "os.kill(os.getpid(), 2)"
    path, _ = broken(tmp_path, FIT, f"{stop}; {FIT}")
    with pytest.raises(KeyboardInterrupt):
        conform("methods", f"{path}:Mine", torch.device("cpu"))
    (tmp_path / "other.py").write_text(f"import os\n{stop}\n")
    with pytest.raises(KeyboardInterrupt):
        registry.load("methods", f"{tmp_path / 'other.py'}:Mine")


def test_a_check_that_hangs_is_named_while_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    silence = iter([False, False, True])
    ours = SimpleNamespace(poll=lambda seconds: next(silence))
    _wait(ours, "keys repeat")  # type: ignore[arg-type]
    assert capsys.readouterr().err.count('"keys repeat" goes on') == 2
