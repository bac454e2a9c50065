"""Container images as environments: the root of their rooms, where all counts; none of their links is followed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from made.cells import choice, place
from made.environments import OWN_TIME, image, numpy_alone

from bench import image_root, sandbox
from bench.cli import main
from bench.plugins import environment_build, environments, registry
from bench.plugins.configured import configure
from bench.plugins.environment_build import Wanted
from bench.plugins.environments import Environment
from bench.plugins.spec import UsageError
from bench.plugins.third_party import stand_in
from bench.runs.tasks import EvaluateTask, evaluate_task
from bench.sandbox import why_not
from bench.workbench.cell import Cell, Planned

needs_sandbox = pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
PYTHON = "/usr/local/bin/python3"


def forget() -> None:
    environments.forget()
    registry.entries.cache_clear()
    stand_in.cache_clear()


@pytest.fixture(autouse=True)
def environments_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("BENCH_PLUGINS", str(tmp_path / "plugins"))
    forget()
    yield
    monkeypatch.undo()
    forget()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return image(tmp_path_factory.mktemp("image") / "root")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An image without a Python."""
    root = tmp_path / "root"
    for name in ("usr/bin", "home", "dev", "tmp", "opt/data/sklearn/datasets/data"):
        (root / name).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "usr/bin/tool").write_text("x")
    return root


def add(root: Path, folder: Path, text: str = OWN_TIME) -> Environment:
    folder.mkdir(exist_ok=True)
    (folder / "own_time.py").write_text(text, encoding="utf-8")
    wanted = Wanted.of([str(folder / "own_time.py")], python=PYTHON, alone=False, sandbox=True, root=str(root))
    return environment_build.add(wanted, "imaged")


LOOK = """
import os, sys
assert os.listdir("/home") == [] and not os.path.exists("/tmp/left")
assert sys.prefix == "/usr/local", sys.prefix
assert not os.path.exists(HOME) and not os.path.exists("/etc/passwd"), "it sees the machine"
for place in ("/usr/x", "/home/x", "/x", "/etc/x"):
    try:
        open(place, "w")
    except OSError:
        continue
    raise AssertionError("it writes " + place)
assert os.readlink("/usr/out") == HOME
mounts = [line.split() for line in open("/proc/self/mounts")]
options = [set(words[3].split(",")) for words in mounts if words[1] == "/usr"]
assert {"nosuid", "nodev", "ro"} <= set.intersection(*options)
"""


@needs_sandbox
@pytest.mark.isolated
def test_a_method_in_an_image_is_scored_and_sees_the_image_alone(whole: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (whole / "usr/out").symlink_to(home)
    (whole / "usr/setuid").write_text("#!/bin/sh\n")
    (whole / "usr/setuid").chmod(0o6755)
    (whole / "usr/line\nbreak \u202e").write_text("x")
    (whole / "tmp/left").write_text("not shown")
    made = add(whole, tmp_path / "given", LOOK.replace("HOME", repr(str(home))) + OWN_TIME)
    assert made.manifest.python.startswith("cpython")
    where = Cell(configure("methods", "additive", "smoke"), choice("digits"), "cpu")
    planned = Planned("reidentification", configure("attacks", "centred", "smoke"), ("reid-auc",))
    found = evaluate_task(EvaluateTask(where, place(tmp_path / "run"), planned, "sandbox"))
    assert found.scores["reid-auc"].value == 1
    with pytest.raises(UsageError, match="the root of a sandbox: use --isolation sandbox"):
        evaluate_task(EvaluateTask(where, place(tmp_path / "other"), planned, "processes"))
    (whole / "tmp/left").write_text("changed")
    forget()
    made.check()
    (whole / "usr/setuid").write_text("#!/bin/sh\n# changed\n")
    forget()
    with pytest.raises(UsageError, match="not as it was when it was added"):
        made.check()


def test_an_image_is_shown_entry_by_entry_and_no_link_is_followed(small: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (small / "srv").symlink_to(tmp_path / "out")
    beside = tmp_path / "file.py"
    (small / tmp_path.relative_to("/").parts[0] / "kept").mkdir(parents=True)
    words = list(image_root.bound(small, [beside, Path("/home/me/file.py")]))
    assert str(tmp_path / "out") in words  # the target of the link, for the room
    assert words[words.index(str(tmp_path / "out")) - 1] == "--symlink"
    assert str(small / "dev") not in words
    assert str(small / "home") not in words  # its entries are shown one by one, so that `me` can stand among them
    assert words[words.index("/home") - 1] == "--dir"
    (small / "home").rmdir()
    (small / "home").symlink_to("usr")
    with pytest.raises(image_root.ImageError, match="a link or a file, at /home, where"):
        list(image_root.bound(small, [Path("/home/me/file.py")]))


@pytest.mark.parametrize("kind", ["pipe", "socket", "sparse"])
def test_an_image_with_a_pipe_a_socket_or_an_endless_file_is_refused(
    kind: str, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rooms could meet in the first two, and reading the third would not end."""
    bad = small / "usr" / "bad"
    if kind == "pipe":
        os.mkfifo(bad)
    elif kind == "socket":
        import socket

        monkeypatch.chdir(bad.parent)  # paths of sockets are short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("bad")
    else:
        with bad.open("wb") as file:
            file.truncate(environments.MOST_BYTES + 1)
    with pytest.raises(UsageError, match=r"plain files of at most 64 GiB in all, and usr/bad is none"):
        environments.digest([], "x", None, small)


@pytest.mark.parametrize("change", ["content", "name", "link", "file to link"])
def test_whatever_a_room_sees_of_an_image_counts(change: str, small: Path) -> None:
    before = environments.digest([], "x", None, small)
    (small / "tmp" / "left").write_text("x")
    (small / "dev" / "left").write_text("x")
    os.utime(small / "usr/bin/tool", (0, 0))
    assert environments.digest([], "x", None, small) == before
    tool = small / "usr/bin/tool"
    if change == "content":
        tool.write_text("y")
    elif change == "name":
        tool.rename(small / "usr/tool")
    elif change == "link":
        (small / "bin").unlink()
        (small / "bin").symlink_to("usr/sbin")
    else:
        tool.unlink()
        tool.symlink_to("x")
    assert environments.digest([], "x", None, small) != before


def test_a_copy_of_an_image_has_the_same_digest(small: Path, tmp_path: Path) -> None:
    copied = tmp_path / "other" / "place"
    shutil.copytree(small, copied, symlinks=True, copy_function=shutil.copyfile)  # other times
    for path in [*copied.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o700)
    assert environments.digest([], "x", None, copied) == environments.digest([], "x", None, small)


def test_folders_of_data_in_an_image_are_found_by_their_paths_within_it(small: Path) -> None:
    assert list(image_root.folders(small, sandbox.DATA)) == [Path("/opt/data/sklearn/datasets/data")]


def test_what_is_no_image_says_what_to_give(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment_build, "why_not", lambda: None)
    archive, layers, home = tmp_path / "image.tar", tmp_path / "layers", small / "home" / "me"
    archive.write_bytes(b"x")
    layers.mkdir()
    (layers / "manifest.json").write_text("[]")
    plugin = tmp_path / "own_time.py"
    plugin.write_text(OWN_TIME)
    cases = [
        ([str(plugin), "--root", str(archive)], "is an archive of an image: unpack it: `docker export"),
        ([str(plugin), "--root", str(layers)], "holds an image in layers: unpack it"),
        ([str(plugin), "--root", str(tmp_path / "none")], "no such folder of an image"),
        ([str(plugin), "--root", "/"], "which no room may see"),
        (["numpy", "--root", str(small)], "an image has its own packages: install numpy in it"),
        ([str(plugin), "--root", str(small), "--python", "../python"], "must be a full path within the image"),
        ([str(plugin), "--root", str(small), "--python", "/../bin/python"], "must be a full path within the image"),
        ([str(plugin), "--root", str(small), "--isolation", "processes"], "leave out --isolation processes"),
    ]
    for words, said in cases:
        assert main(["plugin", "add", *words]) == 2
        assert said in capsys.readouterr().err
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert main(["plugin", "add", str(plugin), "--root", str(small)]) == 2
    assert "which no room may see" in capsys.readouterr().err
    assert not (tmp_path / "plugins").exists() or not list((tmp_path / "plugins").iterdir())


@needs_sandbox
def test_an_image_without_a_python_says_so(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="/usr/local/bin/python3 is no Python that can be used"):
        add(small, tmp_path / "given")


@needs_sandbox
def test_the_python_that_a_user_names_is_asked_in_a_sandbox(tmp_path: Path) -> None:
    """It may be any program: one that looks around and writes, and lies about the folder that it is installed in."""
    marked, secret = tmp_path / "marked", tmp_path / "home" / "secret"
    secret.parent.mkdir()
    secret.write_text("x")
    python = tmp_path / "own" / "bin" / "python"
    python.parent.mkdir(parents=True)
    answer = f'["{tmp_path / "home"}", "cpython 3.11.7", ["{secret}"]]'
    python.write_text(f"#!/bin/sh\ntest ! -e {secret} && ! (: > {marked}) 2>/dev/null && echo '{answer}'\n")
    python.chmod(0o755)
    assert subprocess.run([python], capture_output=True, check=False).returncode != 0  # without a sandbox it sees
    marked.unlink(missing_ok=True)
    plugin = tmp_path / "own_time.py"
    plugin.write_text(OWN_TIME)
    with pytest.raises(UsageError, match="which is not around it: name the interpreter's own file"):
        environment_build.add(Wanted.of([str(plugin)], python=str(python), alone=True, sandbox=True))
    assert not marked.exists()
    shutil.rmtree(tmp_path / "own")


@needs_sandbox
def test_a_python_behind_a_link_is_asked_and_used_in_a_sandbox(tmp_path: Path) -> None:
    """As of an environment: its folder is shown, and that of the installation which its pyvenv.cfg names."""
    python = numpy_alone(tmp_path / "alone")
    assert python.is_symlink()
    plugin = tmp_path / "own_time.py"
    plugin.write_text(OWN_TIME)
    made = environment_build.add(Wanted.of([str(plugin)], python=str(python), alone=True, sandbox=True))
    assert made.manifest.interpreter == python
    assert {each.name for each in made.manifest.plugins} == {"additive", "centred"}
