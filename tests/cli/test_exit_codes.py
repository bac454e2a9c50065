"""Exit codes of every verb: 0 done, 1 something failed, 2 wrong usage or missing data, 3 a reason is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli import GROUPS, VERBS, main

RUN = ["--method", "identity", "--dataset", "digits", "--preset", "smoke"]
METRIC = ["--metric", "max-dispersion", "--attack", "none"]
FAILING = """
from dataclasses import dataclass
from typing import ClassVar
from bench.types import Method

@dataclass(frozen=True)
class Failing(Method):
    name: ClassVar[str] = "failing"
    source: ClassVar[str] = "none"
    claims: ClassVar[str] = "none"
    def fit(self, public, seed):
        raise RuntimeError("no scheme")
    def load(self, state):
        raise RuntimeError("no scheme")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one record, and files for the commands."""
    folder = tmp_path_factory.mktemp("exit-codes")
    assert main(["run", *RUN, *METRIC, "--no-site", "--results", str(folder / "results")]) == 0
    (folder / "failing.py").write_text(FAILING)
    failing = ["--method", f"{folder / 'failing.py'}:Failing", "--dataset", "digits", "--preset", "smoke"]
    assert main(["run", *failing, *METRIC, "--no-site", "--results", str(folder / "failed")]) == 1
    (folder / "empty").mkdir()
    (folder / "not.zip").write_bytes(b"no bundle")
    assert main(["keys", "new", str(folder / "own.key")]) == 0
    return folder


CASES: list[tuple[str, int, str]] = [
    ("run", 0, "run RUN METRIC --no-site --results results"),
    ("run", 1, "run --method failing.py:Failing --dataset digits --preset smoke METRIC --no-site --results again"),
    ("run", 2, "run --method identity --dataset nih --preset smoke METRIC --no-site --results absent"),
    ("run", 2, "run --dataset digits"),
    ("audit", 0, "audit --method identity --dataset digits --preset smoke --dry-run --results results"),
    ("audit", 2, "audit --method blur --public none"),
    (
        "release",
        0,
        "release --method blur --dataset digits --out out --accept testing --results results --ledger ledger",
    ),
    ("release", 2, "release --method blur --dataset digits --out results --results results --ledger ledger"),
    ("release", 3, "release --method blur --dataset digits --out other --results results --ledger ledger"),
    ("encode", 2, "encode nowhere --release empty --out queries.safetensors"),
    ("decode", 2, "decode nowhere.csv --release empty --out decoded.csv"),
    ("report", 2, "report empty"),
    ("report", 2, "report --before"),
    ("report", 2, "report"),
    ("debug", 0, "debug identity --metric top-1"),
    ("debug", 1, "debug failing.py:Failing"),
    ("debug", 2, "debug max-dispersion"),
    ("debug", 2, "debug identity --profile nowhere/profile"),
    ("show", 0, "show RUN --out picture.png --results results"),
    ("show", 2, "show RUN --out picture.txt"),
    ("status", 0, "status --results results"),
    ("status", 1, "status --results failed"),
    ("status", 0, "status --results results --format json"),
    ("status", 2, "status --results empty"),
    ("status", 2, "status --results results --cost --format json"),
    ("list", 0, "list features"),
    ("list", 2, "list everything"),
    ("info", 0, "info dp-simple"),
    ("info", 2, "info nothing-of-that-name"),
    ("new", 0, "new metric share --into new"),
    ("new", 2, "new metric guesswork --into new"),
    ("plugin add", 2, "plugin add nowhere.py:Method"),
    ("plugin list", 0, "plugin list"),
    ("plugin list", 2, "plugin list nothing-of-that-name"),
    ("plugin remove", 2, "plugin remove nothing-of-that-name"),
    ("check", 0, "check max-dispersion"),
    ("check", 1, "check failing.py:Failing"),
    ("check", 1, "check failing.py:Failing --format json --junit checks.xml"),
    ("check", 2, "check"),
    ("check", 2, "check blur --pdb --format json"),
    ("compare", 1, "compare --results results"),
    ("compare", 2, "compare --results empty"),
    ("table", 0, "table --results results --format latex --out table.tex"),
    ("table", 2, "table --results results --metrics nothing-of-that-name"),
    ("table", 2, "table --results results --format word"),
    ("plot", 0, "plot trade-off --x max-dispersion --y max-dispersion --results results --out plot.pdf"),
    ("plot", 2, "plot trade-off --results results --out plot.pdf"),
    ("plot", 2, "plot matrix --results results --out plot.jpg"),
    ("reach", 0, "reach --results results"),
    ("reach", 2, "reach --results results --preset smoke"),
    ("clean", 0, "clean --results results"),
    ("clean", 2, "clean --results empty"),
    ("data list", 0, "data list"),
    ("data list", 2, "data list digits"),
    ("data info", 0, "data info digits"),
    ("data info", 1, "data info nih"),
    ("data info", 2, "data info nothing"),
    ("data prepare", 0, "data prepare digits"),
    ("data prepare", 2, "data prepare nih"),
    ("data verify", 0, "data verify digits"),
    ("data verify", 2, "data verify nih"),
    ("leaderboard build", 0, "leaderboard build --results results --site pages"),
    ("leaderboard build", 2, "leaderboard build --results nowhere"),
    ("leaderboard serve", 2, "leaderboard serve --results nowhere"),
    ("leaderboard publish", 1, "leaderboard publish --results results --to published"),
    ("leaderboard publish", 2, "leaderboard publish --results nowhere --to published"),
    ("leaderboard ledger", 0, "leaderboard ledger"),
    ("leaderboard ledger", 2, "leaderboard ledger now"),
    ("leaderboard submit", 1, "leaderboard submit results --out one.bundle.zip"),
    ("leaderboard submit", 2, "leaderboard submit nowhere"),
    ("leaderboard commit", 2, "leaderboard commit"),
    ("leaderboard draw", 2, "leaderboard draw not.zip"),
    ("leaderboard verify", 0, "leaderboard verify --results results"),
    ("leaderboard verify", 2, "leaderboard verify not.zip"),
    ("leaderboard merge", 0, "leaderboard merge results --into merged"),
    ("leaderboard merge", 2, "leaderboard merge results --into results"),
    ("leaderboard export", 0, "leaderboard export shared --results results"),
    ("leaderboard export", 2, "leaderboard export shared --results nowhere"),
    ("challenge make", 2, "challenge make --method k-same --preset smoke --out public --sealed public/sealed"),
    ("challenge score", 2, "challenge score empty --sealed empty"),
    ("keys new", 0, "keys new another.key"),
    ("keys new", 2, "keys new own.key"),
    ("keys show", 0, "keys show own.key"),
    ("keys show", 2, "keys show not.zip"),
]


@pytest.mark.parametrize(("verb", "code", "words"), CASES, ids=[words for _, _, words in CASES])
def test_the_exit_code_of(
    verb: str, code: int, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    arguments = words.replace("RUN", " ".join(RUN)).replace("METRIC", " ".join(METRIC)).split()
    found = main(arguments)
    out, err = capsys.readouterr()
    assert found == code, f"{out}\n{err}"
    assert "Traceback" not in err or code == 1


def test_the_table_speaks_of_every_verb() -> None:
    assert {verb for verb, _, _ in CASES} == set(VERBS)
    assert {verb for verb, code, _ in CASES if code == 2} == set(VERBS), "of wrong usage"


@pytest.mark.parametrize("words", [[], *([name] for name in GROUPS)], ids=lambda words: " ".join(("bench", *words)))
def test_a_verb_that_is_left_out_is_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert f"Usage: {' '.join(('bench', *words))} COMMAND" in capsys.readouterr().out
