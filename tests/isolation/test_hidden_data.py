"""Code of other authors finds none of the benchmark's data sets, generators and results to look rows up in."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from bench.isolation import OutsideError, RemoteMethod, tenant
from bench.plugins.configured import configure
from bench.sandbox import HOME, data_folders, python, why_not

LOOKING = """
import os
from dataclasses import dataclass
from typing import ClassVar
from methods.identity import Identity

NAMES = ("digits", "diabetes", "breast_cancer", "olivetti", "mnist", "lfw", "faces", "synth", "anatomy",
         "published", "rows.xz", "olivetti_py3")

NO_DATA = (".tex", ".py", ".pyc", ".pyi", ".so", ".h", ".hpp", ".cuh", ".rst", ".html", ".svg")

@dataclass(frozen=True)
class Looking(Identity):
    name: ClassVar[str] = "looking"
    role: ClassVar[str | None] = None

    def load(self, state):
        found = []
        for folder, _, names in os.walk("/"):
            if not folder.startswith(("/proc", "/sys", "/usr/share", "/usr/lib/jvm")):
                found += [os.path.join(folder, name) for name in names if name.startswith(NAMES)
                          and not name.endswith(NO_DATA)]
        for module in ("bench.data.synthetic.film", "bench.data.sets.synth_cxr", "leaderboard.published"):
            try:
                __import__(module)
                found.append(module)
            except ImportError:
                pass
        raise RuntimeError(f"found {len(found)}: {found[:9]}")
"""


@pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
def test_a_spy_finds_nothing_to_look_rows_up_in(tmp_path: Path) -> None:
    (tmp_path / "looking.py").write_text(LOOKING)
    chosen = configure("methods", f"{tmp_path / 'looking.py'}:Looking", "smoke")
    rooms = tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "folder" / "rooms")
    with closing(RemoteMethod(chosen.plugin, rooms)) as method, pytest.raises(OutsideError, match=r"found 0: \[\]"):
        method.load({}).handle()


def test_what_is_hidden_lies_in_what_is_shown_and_holds_the_digits() -> None:
    hidden = set(data_folders())
    assert {HOME / "bench" / "data", HOME / "leaderboard"} <= hidden
    digits = [path for path in hidden if (path / "digits.csv.gz").is_file()]
    assert digits
    shown = [*python(), Path("/usr")]
    assert all(any(path.is_relative_to(place) for place in shown) for path in hidden)


def test_methods_of_this_project_are_shown_what_they_were(tmp_path: Path) -> None:
    chosen = configure("methods", "identity", "smoke")
    assert tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "rooms").hidden == ()
