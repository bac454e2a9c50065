"""`bench check` says of attacks, metrics and data sets, too, what is wrong, and at which line of the author's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from bench.conformance import conform
from bench.conformance.outcome import Result
from bench.plugins import registry
from bench.plugins.groups import Group, Kind
from bench.plugins.skeleton import files
from bench.plugins.spec import PluginSpec, UsageError

SCORES, FIT = "return CosineScores(*apart(self.raw, lines(sealed.samples)))", "return MineAttacker("
FIGURE, SHARE = "return Score(share, None, None, ", "share = float(released / original)"
LABELS, SAMPLES = "vertical[:, None].astype(np.float32)", "samples=noisy[:, None]"
OPENS = "data open or say why not"
CASES: list[tuple[Kind, str, str, str, str, str]] = [  # what is replaced, by what; the check, the place, the reason
    ("attack", FIT, "return None and MineAttacker(", "scores are sound", "fit", "an Attacker, got NoneType"),
    ("attack", SCORES, "return None", "scores are sound", "score", "must return PairScores, got NoneType"),
    ("attack", SCORES, "return self.raw @ self.raw.T", "scores are sound", "score", "PairScores, got Tensor"),
    ("attack", SCORES, f"sealed.samples.zero_(); {SCORES}", "scores are sound", "score", "wrote into the release"),
    ("attack", FIT, f"view.public.samples.zero_(); {FIT}", "scores are sound", "fit", "wrote into its view"),
    ("attack", "    knowledge: ", '    scores: ClassVar[str] = "all"\n    knowledge: ', "describes itself", "Mine",
     "scores must be pairs or membership"),
    ("attack", "def score(", "def scored(", "scores are sound", "MineAttacker", "MineAttacker must define score"),
    ("metric", FIGURE, "return Score(float('nan'), None, None, ", "score is sound", "__call__",
     "value must be finite, got nan"),
    ("metric", FIGURE, "return Score(share, share, float('nan'), ", "score is sound", "__call__", "high must be"),
    ("metric", "return Score", "return str", "score is sound", "__call__", "TypeError"),
    ("metric", FIGURE, "return Score(share, share + 1, share + 2, ", "score is sound", "__call__",
     "lies outside its interval"),
    ("metric", FIGURE, "return share\n        return Score(share, None, None, ", "score is sound", "__call__",
     "must return a Score, got float"),
    ("metric", SHARE, "share = released / original", "score is sound", "__call__", "(`float`), got Tensor"),
    ("metric", SHARE, f"{SHARE}; evidence.released.zero_()", "score is sound", "__call__", "wrote into its evidence"),
    ("dataset", LABELS, f"{LABELS} * 2", OPENS, "scan", "labels must be 0, 1 or NaN"),
    ("dataset", LABELS, "vertical", OPENS, "scan", "one column a finding, got shape (600,)"),
    ("dataset", SAMPLES, "samples=noisy", OPENS, "scan", "samples must be (n, c, h, w) uint8"),
    ("dataset", SAMPLES, "samples=np.full((600, 3), np.inf, np.float32)", OPENS, "scan", "must be finite"),
    ("dataset", SAMPLES, "samples=None", OPENS, "scan", "expected 600 paths or samples"),
    ("dataset", "default_rng(0)", "default_rng()", OPENS, "scan", "differ in labels, samples"),
    ("dataset", "return Scan(", "return None and Scan(", OPENS, "scan", "must return a Scan, got NoneType"),
    ("dataset", 'public: ClassVar[str] = "mine"', 'public: ClassVar[str] = "nowhere"', "says whose it is", "Mine",
     "unknown data set 'nowhere'"),
    ("dataset", "shareable: ClassVar[bool] = True", "shareable: ClassVar[str] = 'no'", "says whose it is", "Mine",
     "must be True or False, got 'no'"),
    ("method", 'ClassVar[str] = "mine"', 'ClassVar[str] = "My own!"', "describes itself", "Mine", "of a-z, 0-9"),
    ("method", "samples = samples.clone()", "samples = samples.clone().requires_grad_() * 1", "release is well-formed",
     "release", "carry gradients: detach them"),
]  # fmt: skip
WHERE: dict[Kind, Group] = {"method": "methods", "attack": "attacks", "metric": "metrics", "dataset": "datasets"}


def checked(folder: Path, kind: Kind, old: str, new: str) -> list[Result]:
    text = files(kind, "mine")["mine.py"]
    assert text.count(old) == 1, old
    path = folder / "mine.py"
    path.write_text(text.replace(old, new))
    return conform(WHERE[kind], f"{path}:Mine", torch.device("cpu"))


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(("kind", "old", "new", "check", "place", "said"), CASES)
def test_the_first_cause_is_named_at_the_authors_line(
    tmp_path: Path, kind: Kind, old: str, new: str, check: str, place: str, said: str
) -> None:
    first = next(result for result in checked(tmp_path, kind, old, new) if result.status == "failed")
    assert first.check == check, first
    assert said in first.detail
    assert re.fullmatch(rf"mine\.py:\d+ in {place}", first.where), first


@pytest.mark.usefixtures("no_training")
def test_what_only_skips_is_said_not_to_have_been_tried(tmp_path: Path) -> None:
    never = "from bench.types import NotApplicable; raise NotApplicable('never')"
    results = checked(tmp_path, "method", "samples = samples.clone()", never)
    assert [(result.check, result.status) for result in results][-1] == ("is tried at work", "noted")
    assert results[-1].detail == "it was not, only described: never"


@pytest.mark.usefixtures("no_training")
def test_whatever_is_raised_is_a_failure_at_its_line(tmp_path: Path) -> None:
    new = "raise type('Bare', (BaseException,), {})('not caught')"
    first = next(each for each in checked(tmp_path, "method", "samples = samples.clone()", new) if each.detail)
    assert (first.check, first.detail) == ("release is well-formed", "Bare: not caught")
    assert first.where.endswith("in query")


def test_a_file_that_ends_the_process_as_it_is_imported_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(UsageError, match="cannot be imported at line 2: SystemExit: 3"):
        registry.load("metrics", PluginSpec(f"{tmp_path}/mine.py:Mine").name)
