"""Environments of plug-ins: added as a whole or not at all, noticed when they change, and never run by the judge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from made.environments import wheel

from bench.cli import main
from bench.plugins import environment_build, environments, registry
from bench.plugins.code_digest import environment_digest, plugin_digest
from bench.plugins.configured import configure
from bench.plugins.environment_build import Wanted
from bench.plugins.spec import UsageError, parse
from bench.plugins.third_party import is_outside, stand_in
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
    side: int = 1
    def transform(self, samples):
        return samples * 1
'''


@pytest.fixture(autouse=True)
def forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """An own place for environments; `forget()` has them looked at again."""

    def clear() -> None:
        environments.forget()
        environment_digest.cache_clear()
        registry.entries.cache_clear()
        stand_in.cache_clear()

    monkeypatch.setenv("BENCH_PLUGINS", str(tmp_path / "plugins"))
    clear()
    yield clear
    monkeypatch.undo()
    clear()


def add(*words: str, name: str | None = None) -> environments.Environment:
    return environment_build.add(Wanted.of(words, python=None, alone=False, sandbox=False), name)


def written(folder: Path, text: str = METHOD, name: str = "mine.py") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_file_is_added_listed_described_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", "add", written(tmp_path), "--isolation", "processes"]) == 0
    assert "method mine: Gives rows as they are." in capsys.readouterr().out
    assert (tmp_path / "plugins").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "plugins" / "mine" / "manifest.json").stat().st_mode & 0o777 == 0o600
    assert main(["plugin", "list"]) == 0
    assert "mine (methods)" in capsys.readouterr().out
    assert main(["list", "methods"]) == 0
    assert "Gives rows as they are." in capsys.readouterr().out
    assert main(["info", "mine"]) == 0
    assert "side: int = 1" in capsys.readouterr().out
    assert is_outside("methods", parse("mine"))
    assert configure("methods", "mine", "smoke").origin == "mine.py"
    assert main(["plugin", "remove", "mine"]) == 0
    assert list((tmp_path / "plugins").iterdir()) == []
    assert "mine" not in registry.entries("methods")
    assert main(["plugin", "remove", "mine"]) == 2
    assert "no plug-ins were added as 'mine'" in capsys.readouterr().err


def test_a_failure_leaves_nothing_and_an_earlier_environment_as_it_was(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad", "raise RuntimeError('broken today')")
    with pytest.raises(UsageError, match="broken today"):
        add(bad)
    assert not (tmp_path / "plugins" / "mine").exists()
    first = add(written(tmp_path))
    with pytest.raises(UsageError, match="broken today"):
        add(bad)
    assert environments.read("mine") == first
    second = add(written(tmp_path, METHOD.replace("* 1", "* 2")))
    assert second.manifest.digest != first.manifest.digest
    assert sorted(path.name for path in (tmp_path / "plugins" / "mine").iterdir()) == [
        str(second.manifest.folder).rpartition("/")[2], "manifest.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no plug-in"),
        (METHOD.replace('"mine"', '"identity"'), "is that of a registered method of veil-bench"),
        (METHOD.replace('"mine"', '"a\\x1b[2J"'), "a name must be of a-z"),
        (f"{METHOD}\n@dataclass(frozen=True)\nclass Other(Mine): pass\n", "two plug-ins called mine"),
        (METHOD.replace("side: int = 1", "role: str = 'hides nothing'"), "may not be called"),
        (METHOD.replace('source: ClassVar[str] = "a test"', ""), "must say its source"),
        ("import os; os._exit(0)", "ends the process"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_not_added(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        add(written(tmp_path, text))
    assert not (tmp_path / "plugins" / "mine").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--name", "../up", "x.py"], "no such plug-in file"),
        (["--name", "../up", "PLUGIN"], "a name must be of a-z"),
        ([], "name a package"),
        (["PLUGIN", "--python", "no-such-python"], "no such interpreter"),
        (["PLUGIN", "--python", "/bin/true"], "no Python that can be used"),
        (["--", "-r"], "expected a package"),
    ],
)
def test_what_is_no_request_says_what_to_give(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    given = [path if word == "PLUGIN" else word for word in words]
    assert main(["plugin", "add", "--isolation", "processes", *given]) == 2
    assert said in capsys.readouterr().err


def test_setup_code_without_a_sandbox_needs_so_many_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment_build, "why_not", lambda: "it is not there")
    monkeypatch.setattr("bench.sandbox.BWRAP", None)
    assert main(["plugin", "add", written(tmp_path)]) == 2
    assert "it is not there: install bubblewrap (`apt-get install bubblewrap`), or" in capsys.readouterr().err


def test_a_changed_environment_is_noticed(tmp_path: Path, forget: Callable[[], None]) -> None:
    made = add(written(tmp_path))
    before = plugin_digest(configure("methods", "mine", "smoke").plugin)
    os.utime(made.manifest.files[0], (0, 0))  # another time and the same bytes
    forget()
    assert plugin_digest(configure("methods", "mine", "smoke").plugin) == before
    made.manifest.files[0].write_text(METHOD.replace("* 1", "* 3"))
    forget()
    with pytest.raises(UsageError, match="is not as it was when it was added: run `bench plugin add` again"):
        configure("methods", "mine", "smoke")


@pytest.mark.parametrize(
    "hidden",
    ["mine/__pycache__/payload.bin", "mine/payload.pyc", "veil_bench-9.dist-info/payload", "mine-1.dist-info/RECORD",
     "mine/__pycache__/__init__.cpython-311.pyc"],
)  # fmt: skip
def test_nothing_that_a_package_brings_escapes_the_digest(
    hidden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A payload where nothing is counted would give two packages one digest: it counts, or it is gone."""
    monkeypatch.setattr(environment_build, "_described", lambda made, notify: made)
    found = []
    for text in ("1", "2"):

        def install(wanted: object, folder: Path, *more: object, text: str = text) -> None:
            (site,) = (folder / "environment").glob("lib/python*/site-packages")
            for name, content in {"mine/__init__.py": "", "mine-1.dist-info/METADATA": "", hidden: text}.items():
                (site / name).parent.mkdir(parents=True, exist_ok=True)
                (site / name).write_text(content)

        monkeypatch.setattr(environment_build, "_install", install)
        made = add("mine").manifest
        left = [path for site in made.sites for path in site.glob(hidden)]
        found.append((made.digest, [path.read_bytes()[:1] == text.encode() for path in left]))
    assert found[0] != found[1] or not any(found[0][1])


@pytest.mark.parametrize("alone", [False, True])
def test_the_same_packages_have_one_digest_on_every_machine(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    """Other folders, times, rights, bytecode and records of the installer, and links written at other places."""
    monkeypatch.setattr(environment_build, "_described", lambda made, notify: made)

    def digest_on(machine: str, umask: int, *, compiled: bool, line: str = "x = 1\n") -> str:
        monkeypatch.setenv("BENCH_PLUGINS", str(tmp_path / machine))

        def install(wanted: object, folder: Path, *more: object) -> None:
            (site,) = (folder / "environment").glob("lib/python*/site-packages")
            files = {
                "mine/__init__.py": line, "mine/data.bin": "1", "mine-1.dist-info/METADATA": "Name: mine\n",
                "mine-1.dist-info/RECORD": machine, "mine-1.dist-info/direct_url.json": machine,
                "mine-1.dist-info/INSTALLER": machine,
            }  # fmt: skip
            for name, content in files.items() if compiled else reversed(files.items()):
                (site / name).parent.mkdir(parents=True, exist_ok=True)
                (site / name).write_text(content)
                os.utime(site / name, (umask, umask))
            if compiled:
                subprocess.run([sys.executable, "-m", "compileall", "-q", str(site)], check=True)

        monkeypatch.setattr(environment_build, "_install", install)
        before = os.umask(umask)
        try:
            wanted = Wanted.of(["mine"], python=None, alone=alone, sandbox=False)
            made = environment_build.add(wanted)
            if not compiled:
                for path in (tmp_path / machine).rglob("__pycache__"):
                    shutil.rmtree(path)
            forget()
            made.check()
            return made.manifest.digest
        finally:
            os.umask(before)

    first = digest_on("one", 0o022, compiled=True)
    assert digest_on("another/below", 0o077, compiled=False) == first
    assert digest_on("changed", 0o022, compiled=True, line="x = 2\n") != first


def test_a_name_that_may_be_a_folder_here_or_a_package_of_an_index_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my-own", "plain"):
        (tmp_path / name).mkdir()
    (tmp_path / "my-own" / "pyproject.toml").touch()
    with pytest.raises(UsageError, match=r"write \./my-own for the folder, or 'my-own>=0' for the package"):
        Wanted.of(["my-own"], python=None, alone=False, sandbox=False)
    wanted = Wanted.of(["./my-own", "my-own>=0", "plain"], python=None, alone=False, sandbox=False)
    assert wanted.requirements == (str((tmp_path / "my-own").resolve()), "my-own>=0", "plain")


def test_definitions_of_this_project_that_a_package_uses_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    made = add(written(tmp_path, METHOD.replace("from bench_room", "from bench.contract.keyless")))
    first = environment_digest(made)
    monkeypatch.setattr("bench.plugins.code_digest._digest_of", lambda roots: f"changed {len(roots)}")
    environment_digest.cache_clear()
    assert environment_digest(made) != first


@pytest.mark.parametrize("change", ["{", '{"manifest": 2}', "later"])
def test_a_manifest_that_cannot_be_read_is_listed_and_breaks_nothing_else(
    change: str, tmp_path: Path, forget: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    add(written(tmp_path))
    path = tmp_path / "plugins" / "mine" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "more": 1}) if change == "later" else change)
    forget()
    assert main(["list", "methods"]) == 0
    shown = capsys.readouterr().out
    assert "identity" in shown
    assert "plug-ins of mine" in shown
    with pytest.raises(UsageError, match="unknown method 'mine'"):
        configure("methods", "mine", "smoke")


def test_a_method_beside_the_benchmark_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Package:
        name = "theirs"

    point = EntryPoint("mine", "theirs:Mine", "bench.methods")
    vars(point)["dist"] = Package()
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    registry.entries.cache_clear()
    with pytest.raises(UsageError, match="run `bench plugin add theirs`, and uninstall it here"):
        configure("methods", "mine", "smoke")


@pytest.mark.parametrize("what", ["lib64", "lib/python/site-packages", "fifo"])
def test_an_installation_shows_its_rooms_nothing_else_and_leaves_plain_files(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Setup code may write into the environment: a link in the place of a folder would show rooms another one."""

    def install(wanted: object, folder: Path, interpreter: Path, *more: object) -> None:
        (site,) = (folder / "environment").glob("lib/python*/site-packages")
        if what == "fifo":
            os.mkfifo(site / "pipe")
            return
        place = folder / "environment" / "lib64" if what == "lib64" else site
        place.rename(folder / "away")
        place.symlink_to(tmp_path)

    monkeypatch.setattr(environment_build, "_install", install)
    said = "must be of plain files" if what == "fifo" else "a link that leads out"
    with pytest.raises(UsageError, match=said):
        add("mine")
    assert not (tmp_path / "plugins" / "mine").exists()


def test_a_failure_spares_what_another_command_added_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = add(written(tmp_path))
    content = {path.name for path in (tmp_path / "plugins" / "mine").iterdir()}
    monkeypatch.setattr(environment_build, "_made", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        add(written(tmp_path))
    assert {path.name for path in (tmp_path / "plugins" / "mine").iterdir()} == content
    assert environments.read("mine") == made


def test_two_environments_do_not_share_a_name(tmp_path: Path) -> None:
    add(written(tmp_path))
    with pytest.raises(UsageError, match=r"a registered method of mine.py: .* `bench plugin remove mine` first"):
        add(written(tmp_path), name="other")
    assert not (tmp_path / "plugins" / "other").exists()


def test_the_contract_suite_says_for_which_plug_ins_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(written(tmp_path))
    assert main(["check", "mine"]) == 2
    assert "try it by `bench run --method mine" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["import bench\nprint 'of Python 2'", "import bench\n\0", "import bench\n" + "(" * 9999]
)
def test_files_that_are_no_python_of_today_count_by_their_bytes(text: str, tmp_path: Path) -> None:
    made = add(written(tmp_path))
    other = tmp_path / "other.py"
    other.write_text(text)
    files = [*made.manifest.files, other]
    beside = made.model_copy(update={"manifest": made.manifest.model_copy(update={"files": files})})
    assert len(environment_digest(beside)) == 16


@pytest.mark.parametrize("name", ["veil_bench", "Veil.Bench", "mine\\nmore", ""])
def test_a_package_by_another_name_than_its_own_is_refused(name: str, tmp_path: Path) -> None:
    told = {"group": "methods", "name": "mine", "target": "mine:Mine", "origin": name}
    with pytest.raises(UsageError, match=r"may not be called veil-bench|must be called by"):
        environment_build._checked(told, "mine")  # type: ignore[arg-type]


MARK = "import os, sys; os.access({log!r}, os.W_OK) and open({log!r}, 'a').write(' '.join(sys.orig_argv[:6]) + '\\n')\n"
ENTRY_POINTS = """
[bench.methods]
mine = mine_package.method:Mine
[torch.backends]
mine = mine_package.patch:patch
[pydantic]
mine = mine_package.patch:patch
[pytest11]
mine = mine_package.patch
[numba_extensions]
init = mine_package.patch:patch
[matplotlib.backend]
mine = mine_package.patch
"""
LOOK = """
import sys
import torch, pydantic, numba, matplotlib.pyplot
class Model(pydantic.BaseModel): x: int = 1
from bench.plugins.configured import configure
from bench.cli import main
assert configure("methods", "mine", "smoke").origin == "mine_package"
assert main(["info", "mine"]) == 0
assert not [name for name in sys.modules if name.startswith("mine")]
assert not [path for path in sys.path if "plugins" in path]
print("judged")
"""


def test_the_judge_runs_no_line_of_an_added_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of other groups, a .pth of the package, and customisations: rooms run them, and no other process."""
    log = tmp_path / "ran"
    log.touch()
    mark = MARK.format(log=str(log))
    files = {
        "mine_package/__init__.py": mark, "mine_package/method.py": METHOD,
        "mine_package/patch.py": f"{mark}patch = int\n", "mine.pth": mark, "sitecustomize.py": mark,
    }  # fmt: skip
    monkeypatch.setattr("bench.plugins.interview.why_not", lambda: "so that rooms can write")
    made = add(str(wheel(tmp_path, "mine_package", files, ENTRY_POINTS)))
    assert [each.name for each in made.manifest.plugins] == ["mine"]
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "MPLBACKEND": "agg"})  # fmt: skip
    assert done.stdout.rstrip().endswith("judged"), done.stderr
    ran = log.read_text().splitlines()
    assert ran  # in its rooms
    assert not [line for line in ran if "room_side.py" not in line and "/pip install" not in line]


@pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
def test_setup_code_sees_neither_home_nor_results_and_writes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build backend of the package's own, which looks around."""
    source, secret = tmp_path / "source", tmp_path / "home" / "secret"
    secret.parent.mkdir()
    secret.write_text("x")
    monkeypatch.setenv("HOME", str(secret.parent))
    built = wheel(tmp_path, "mine_package", {"mine_package/__init__.py": METHOD},
                  "[bench.methods]\nmine = mine_package:Mine\n").read_bytes()  # fmt: skip
    written(
        source, "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n", "pyproject.toml"
    )
    written(source, BACKEND.format(secret=str(secret), other=str(tmp_path / "other"), wheel=built.hex()), "backend.py")
    made = environment_build.add(Wanted.of([str(source)], python=None, alone=False, sandbox=True), "mine")
    assert made.manifest.built == "sandbox"
    assert not (tmp_path / "other").exists()
    assert sorted(path.name for path in source.iterdir()) == ["backend.py", "pyproject.toml"]


LEAVES = {
    "another Python": """
    real = os.path.realpath(python)
    os.remove(python)
    open(python, "w").write("#!/bin/sh\\ntouch {out}/made 2>/dev/null\\nexec " + real + ' "$@"\\n')
    os.chmod(python, 0o755)
""",
    "a link at our file": """
    os.remove(site + "/veil_bench_layer.pth")
    os.symlink("{out}/made", site + "/veil_bench_layer.pth")
""",
    "compiled files elsewhere": """
    os.mkdir(site + "/a")
    open(site + "/a/b.py", "w")
    os.symlink("{out}", site + "/a/__pycache__")
""",
    "a folder elsewhere": """
    os.symlink("{out}", os.path.join(sys.prefix, "..", "files"))
""",
    "a circle": """
    os.symlink("circle", site + "/circle")
""",
}


@pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
@pytest.mark.parametrize("leaves", LEAVES)
def test_what_setup_code_leaves_leads_nobody_outside_a_sandbox_to_run_or_write_anything(
    leaves: str, tmp_path: Path
) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    out.mkdir()
    written(
        source, "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n", "pyproject.toml"
    )
    built = wheel(tmp_path, "mine_package", {"mine_package/__init__.py": METHOD},
                  "[bench.methods]\nmine = mine_package:Mine\n").read_bytes()  # fmt: skip
    places = "import sys, sysconfig\npython, site = sys.executable, sysconfig.get_path('purelib')\n"
    backend = BACKEND.format(secret="/nowhere", other=str(tmp_path / "other"), wheel=built.hex())
    leave = LEAVES[leaves].format(out=out)
    written(source, places + backend.replace("    name =", f"{leave}    name =", 1), "backend.py")
    wanted = Wanted.of([str(source), str(written(tmp_path))], python=None, alone=False, sandbox=True)
    with pytest.raises(UsageError, match=r"an installation (put a link that leads out|replaced)"):
        environment_build.add(wanted, "mine")
    assert not [*out.iterdir()]


BACKEND = """
import os
def build_wheel(directory, config_settings=None, metadata_directory=None):
    assert not os.path.exists({secret!r})
    try:
        open({other!r}, "w")
    except OSError:
        pass
    name = "mine_package-1-py3-none-any.whl"
    open(os.path.join(directory, name), "wb").write(bytes.fromhex({wheel!r}))
    return name
"""
