"""Authors' own code: copied as committed, with the stated patches alone, and confined like any other plug-in."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch
from made.on_disk import images

from bench import shadowing
from bench.cli import main
from bench.isolation import OutsideError, RemoteMethod, tenant
from bench.owner.global_generators import drawn_from
from bench.plugins import author_repository, environment_build, environments, registry
from bench.plugins.author_repository import Declaration
from bench.plugins.code_digest import environment_digest, plugin_digest
from bench.plugins.configured import configure
from bench.plugins.environment_build import Wanted
from bench.plugins.spec import UsageError
from bench.plugins.third_party import stand_in
from bench.randomness import Secret
from bench.room_types import authors_module, repository
from bench.sandbox import why_not

needs_sandbox = pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
ADAPTER = '''"""An adapter."""
from dataclasses import dataclass
from bench_room import Keyless, authors_module

REPOSITORY = {{"licence": "MIT", "patches": {patches}, "commit": {commit!r}, "files": {files}}}

@dataclass(frozen=True)
class Theirs(Keyless):
    """Runs the authors' code."""
    name = "theirs"
    source = "a test"
    side: int = 1
    def __post_init__(self):
        authors_module(__file__, "hiding", arguments=["--strength", "2"])
    def transform(self, samples):
        return authors_module(__file__, "hiding").hide(samples)
'''
CODE = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--strength", type=int)
args = parser.parse_args()
print("an unwanted line")
def hide(x):
    {line}
    return x * args.strength
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """An own place for environments; `place()` has them looked at again."""

    def clear() -> None:
        environments.forget()
        for cached in (environment_digest, registry.entries, stand_in):
            cached.cache_clear()

    monkeypatch.setenv("BENCH_PLUGINS", str(tmp_path / "plugins"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    clear()
    yield clear
    monkeypatch.undo()
    clear()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def checkout(folder: Path, line: str = "pass", **more: str) -> Path:
    """A repository with one commit."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name, text in {"hiding.py": CODE.format(line=line), "LICENSE": "MIT", **more}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def adapter(folder: Path, commit: str = "", patches: object = (), files: object = ()) -> str:
    path = folder / "theirs.py"
    path.write_text(ADAPTER.format(patches=list(patches), commit=commit, files=list(files)))  # type: ignore[call-overload]
    return str(path)


def add(file: str, repo: Path, commit: str | None = None) -> environments.Environment:
    wanted = Wanted.of([file], python=None, alone=False, sandbox=False, repo=str(repo), commit=commit)
    return environment_build.add(wanted)


def test_a_repository_is_recorded_by_address_commit_and_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: Callable[[], None]
) -> None:
    code = checkout(tmp_path / "code")
    git(code, "remote", "add", "origin", "https://me:secret@example.org/Author/Their_Code.git")
    head = git(code, "rev-parse", "HEAD")
    words = ["plugin", "add", adapter(tmp_path), "--repo", str(code), "--isolation", "processes"]
    assert main(words) == 0
    made = environments.read("theirs").manifest
    assert made.repository is not None
    assert (made.repository.commit, made.repository.files) == (head, 2)
    assert configure("methods", "theirs", "smoke").origin == f"Author-Their_Code.git-{head[:12]}"
    assert f"https://example.org/Author/Their_Code.git, commit {head}, licence MIT" in capsys.readouterr().out
    assert "secret" not in made.model_dump_json()
    for command in (["plugin", "list"], ["info", "theirs"]):
        assert main(command) == 0
        assert head in capsys.readouterr().out
    before = plugin_digest(configure("methods", "theirs", "smoke").plugin)
    (code / "hiding.py").write_text(CODE.format(line="x = x + 1"))
    git(code, "commit", "--quiet", "-a", "-m", "second")
    assert main(words) == 0
    place()
    assert plugin_digest(configure("methods", "theirs", "smoke").plugin) != before


def test_files_that_differ_from_their_commit_are_named(tmp_path: Path) -> None:
    code = checkout(tmp_path / "code", **{"gone.py": "x"})
    (code / "hiding.py").write_text("x = 1")
    (code / "gone.py").unlink()
    (code / "beside.py").write_text("not committed, and not copied")
    with pytest.raises(UsageError, match=r"gone.py, hiding.py differ from commit .*commit the changes, undo them"):
        add(adapter(tmp_path), code)
    git(code, "checkout", "--quiet", ".")
    made = add(adapter(tmp_path), code).manifest
    assert made.repository is not None
    assert not (made.repository.folder / "beside.py").exists()


def test_another_commit_than_the_adapters_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    code = checkout(tmp_path / "code")
    first = git(code, "rev-parse", "HEAD")
    (code / "more.py").write_text("")
    git(code, "add", ".")
    git(code, "commit", "--quiet", "-m", "second")
    with pytest.raises(UsageError, match=rf"was written for {first[:12]}: run `git -C .* checkout {first}`, or take"):
        add(adapter(tmp_path, commit=first), code)
    made = add(adapter(tmp_path, commit=first), code, "HEAD").manifest.repository
    assert made is not None
    assert f"not {first[:12]}, for which the adapter was written" in next(made.told())
    made = add(adapter(tmp_path, commit=first), code, first).manifest.repository
    assert made is not None
    assert made.commit == first
    assert not (made.folder / "more.py").exists()
    for word in ("no-such-branch", "--help"):
        with pytest.raises(UsageError, match="has no commit"):
            add(adapter(tmp_path), code, word)


PATCH = {"file": "hiding.py", "line": 7, "before": "    x.cuda()", "after": "    pass", "why": "no CUDA here"}


def test_patched_lines_are_applied_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = checkout(tmp_path / "code", "x.cuda()")
    made = add(adapter(tmp_path, patches=[PATCH]), code).manifest.repository
    assert made is not None
    assert "x.cuda()" not in (made.folder / "hiding.py").read_text()
    assert (code / "hiding.py").read_text() == CODE.format(line="x.cuda()")
    assert main(["info", "theirs"]) == 0
    shown = capsys.readouterr().out
    assert "hiding.py, line 7 (no CUDA here):" in shown
    assert "- x.cuda()" in shown


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"before": "    x.cpu()"}, "it was written for another commit"),
        ({"line": 99}, "it was written for another commit"),
        ({"file": "other.py"}, "which was not copied"),
        ({"file": "../files/theirs.py"}, "which was not copied"),
        ({"why": ""}, "at least 1 character"),
        ({"because": "x"}, "Extra inputs"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(change: dict[str, object], said: str, tmp_path: Path) -> None:
    code = checkout(tmp_path / "code", "x.cuda()")
    with pytest.raises(UsageError, match=said):
        add(adapter(tmp_path, patches=[{**PATCH, **change}]), code)


def test_a_patch_changes_no_file_outside_the_copy(tmp_path: Path) -> None:
    code, own = checkout(tmp_path / "code"), tmp_path / "profile"
    own.write_text("# mine\n")
    hostile = {**PATCH, "file": str(own), "line": 1, "before": "# mine", "after": "theirs"}
    with pytest.raises(UsageError, match="which was not copied"):
        add(adapter(tmp_path, patches=[hostile]), code)
    assert own.read_text() == "# mine\n"


@pytest.mark.parametrize(
    "package",
    ["--target=/tmp", "/etc", "./folder", "einops @ file:///etc", "git+https://example.org/a", "a\nb", "-e x"],
)
def test_an_adapter_names_packages_and_no_options_or_folders(package: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.py"
    path.write_text(f"REPOSITORY = {{'packages': [{package!r}]}}")
    with pytest.raises(UsageError, match=r"packages\.0: String should match"):
        author_repository.declared(path)
    for known in ("einops", "einops==0.8.2", "pytorch-lightning >=2,<3", "a.b[c,d]~=1.0.*"):
        path.write_text(f"REPOSITORY = {{'packages': [{known!r}]}}")
        assert author_repository.declared(path) is not None


def test_a_replaced_commit_is_read_as_it_was_committed(tmp_path: Path) -> None:
    code = checkout(tmp_path / "code")
    (code / "hiding.py").write_text("other = 1")
    git(code, "commit", "--quiet", "-a", "-m", "second")
    second = git(code, "rev-parse", "HEAD")
    git(code, "checkout", "--quiet", "HEAD~1")
    git(code, "replace", "HEAD", second)
    made = author_repository.copied(code, Declaration(), None, tmp_path / "copy")
    assert (made.folder / "hiding.py").read_text() == CODE.format(line="pass")


def test_a_declaration_is_read_and_never_run(tmp_path: Path) -> None:
    path = tmp_path / "theirs.py"
    path.write_text("REPOSITORY = dict(url=open('/etc/passwd').read())")
    with pytest.raises(UsageError, match="must be a literal"):
        author_repository.declared(path)
    path.write_text("print 'of Python 2'")
    assert author_repository.declared(path) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "runs its authors' code: get it"),
        (["--commit", "HEAD"], "--commit names a commit of the checkout"),
        (["--repo", "EMPTY"], "no git repository"),
        (["--repo", "NOWHERE"], "no git repository"),
    ],
)
def test_an_adapter_without_its_repository_says_what_to_give(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "EMPTY").mkdir()
    given = [str(tmp_path / word) if word.isupper() and word != "HEAD" else word for word in words]
    assert main(["plugin", "add", adapter(tmp_path), *given, "--isolation", "processes"]) == 2
    assert said in capsys.readouterr().err


def test_a_repository_needs_an_adapter(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="goes with one file of Python"):
        Wanted.of(["numpy"], python=None, alone=False, sandbox=False, repo=str(checkout(tmp_path / "code")))


@pytest.mark.parametrize("kind", ["link", "submodule"])
def test_links_and_submodules_are_refused_unless_the_adapter_needs_none(kind: str, tmp_path: Path) -> None:
    code = checkout(tmp_path / "code")
    if kind == "link":
        (code / "link").symlink_to("/etc/passwd")
        git(code, "add", ".")
    else:
        git(code, "update-index", "--add", "--cacheinfo", f"160000,{git(code, 'rev-parse', 'HEAD')},link")
    git(code, "commit", "--quiet", "-m", "second")
    with pytest.raises(UsageError, match=f"link is a {kind}"):
        add(adapter(tmp_path), code)
    assert add(adapter(tmp_path, files=["hiding.py"]), code).manifest.repository is not None


def test_a_pointer_of_git_lfs_needs_the_file_that_it_names(tmp_path: Path) -> None:
    content = b"weights"
    oid = "b9a5d9d8d7b3ad3ac0bdda4b3d3a8bd0c7a9e8f1d3f1c2b7e5a2a9cb4f5f6a70"
    code = checkout(
        tmp_path / "code", **{"w.bin": f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 7\n"}
    )
    with pytest.raises(UsageError, match=r"w\.bin is a pointer of Git LFS"):
        add(adapter(tmp_path), code)
    (code / "w.bin").write_bytes(content)
    with pytest.raises(UsageError, match=r"w\.bin is a pointer of Git LFS"):  # other bytes than those it names
        add(adapter(tmp_path), code)
    true = hashlib.sha256(content).hexdigest()
    (code / "w.bin").write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{true}\nsize 7\n")
    git(code, "commit", "--quiet", "-a", "-m", "second")
    (code / "w.bin").write_bytes(content)
    made = add(adapter(tmp_path), code).manifest.repository
    assert made is not None
    assert (made.folder / "w.bin").read_bytes() == content


def test_a_repositorys_own_settings_run_nothing_and_what_no_digest_counts_is_left_out(tmp_path: Path) -> None:
    code = checkout(
        tmp_path / "code", **{".gitattributes": "* filter=mine", "__pycache__/hiding.cpython-311.pyc": "x", "a.pyc": ""}
    )
    ran = tmp_path / "ran"
    for setting in ("filter.mine.smudge", "filter.mine.clean", "core.fsmonitor", "core.sshCommand", "core.pager"):
        git(code, "config", setting, f"touch {ran}; cat")
    ran.unlink(missing_ok=True)
    made = add(adapter(tmp_path), code).manifest.repository
    assert not ran.exists()
    assert made is not None
    assert not [*made.folder.rglob("*.pyc")]


def test_a_clone_without_some_of_its_files_is_named_and_fetches_nothing(tmp_path: Path) -> None:
    code = checkout(tmp_path / "code")
    blob = git(code, "rev-parse", "HEAD:LICENSE")
    (code / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git(code, "config", "remote.origin.url", f"ext::touch {tmp_path / 'ran'}")
    git(code, "config", "remote.origin.promisor", "true")
    with pytest.raises(UsageError, match=r"LICENSE is not in .*, which is a partial clone"):
        add(adapter(tmp_path), code)
    assert not (tmp_path / "ran").exists()


def test_a_git_directory_serves_as_a_checkout(tmp_path: Path) -> None:
    code = checkout(tmp_path / "code")
    git(tmp_path, "clone", "--quiet", "--bare", str(code), "bare")
    assert add(adapter(tmp_path), tmp_path / "bare").manifest.repository is not None


def laid_out(tmp_path: Path, line: str = "pass") -> str:
    """An adapter's file with its repository beside it, as rooms see them."""
    (tmp_path / "made" / "files").mkdir(parents=True)
    author_repository.copied(checkout(tmp_path / "code", line), Declaration(), None, tmp_path / "made" / "repository")
    return str(tmp_path / "made" / "files" / "theirs.py")


def test_a_script_is_imported_with_the_command_line_that_the_adapter_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = laid_out(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(ValueError, match=r"hiding cannot be imported \(SystemExit: 2\)"):
        authors_module(file, "hiding", arguments=["--no-such-option"])
    assert authors_module(file, "hiding", arguments=["--strength", "3"]).hide(2) == 6
    del sys.modules["hiding"]
    with pytest.raises(ValueError, match=r"the name json leads to .*, not to the authors' code"):
        authors_module(file, "json")
    with pytest.raises(ValueError, match="no_such_module cannot be imported"):
        authors_module(file, "no_such_module")
    shutil.rmtree(tmp_path / "made" / "repository")
    with pytest.raises(ValueError, match=r"theirs.py runs its authors' code: `bench plugin add theirs.py --repo"):
        repository(file)


@pytest.mark.isolated
@pytest.mark.parametrize("sandbox", [False, pytest.param(True, marks=needs_sandbox)])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print('out'); import sys; sys.stderr.write('err')", ""),
        ("import os; child = os.fork(); child == 0 and os._exit(0); os.waitpid(child, 0)", ""),
        ("import os; os.fork() == 0 and os.abort()", ""),
        ("open('log.txt', 'w').write('x')", ""),
        ("open(__file__ + '.log', 'w').write('x')", "Read-only file system"),
        ("import torch; torch.zeros(1).to('cuda')", "CUDA|NVIDIA"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_whatever_the_authors_code_does_is_harmless_or_one_error(
    line: str, said: str, sandbox: bool, tmp_path: Path
) -> None:
    """It prints, forks, writes beside itself or into its checkout, needs CUDA, or ends the process."""
    made = add(adapter(tmp_path), checkout(tmp_path / "code", line))
    chosen = configure("methods", "theirs", "smoke")
    rows, writes = images(24, on_disk=False), said == "Read-only file system"
    room = tenant(chosen, device="cpu", sandbox=sandbox, folder=tmp_path / "rooms")
    with closing(RemoteMethod(chosen.plugin, room)) as method:
        key = method.fit(rows, 0).sample_key(Secret.of_seed(1))
        if said and (sandbox or not writes):
            with pytest.raises(OutsideError, match=said):
                key.release(rows)
        else:
            assert torch.equal(key.release(rows).samples, rows.samples * 2)
    environments.forget()
    if writes and not sandbox:  # with the user's rights it can, and the next use says so
        with pytest.raises(UsageError, match="is not as it was when it was added"):
            made.check()
    else:
        made.check()


def test_global_generators_draw_all_bits_of_a_secret_and_are_restored() -> None:
    def drawn(secret: Secret) -> torch.Tensor:
        with drawn_from(secret):
            return torch.rand(700)

    before = torch.get_rng_state()
    one, other = Secret.of_seed(1), Secret.of_seed(2)
    assert torch.equal(drawn(one), drawn(one))
    assert not torch.equal(drawn(one), drawn(other))
    assert torch.equal(torch.get_rng_state(), before)
    with drawn_from(one):
        seed = torch.initial_seed()
        first = torch.rand(700)
    assert not torch.equal(torch.rand(700, generator=torch.Generator().manual_seed(seed)), first)
    assert abs(float(first.mean()) - 0.5) < 6 * (1 / 12 / 700) ** 0.5  # six deviations


@pytest.mark.parametrize("path", sorted((Path(shadowing.HOME) / environment_build.ADAPTERS).glob("official_*.py")))
def test_every_adapter_of_this_project_states_address_commit_licence_and_reasons(path: Path) -> None:
    said = author_repository.declared(path)
    assert said is not None
    assert said.url.startswith("https://")
    assert said.commit
    assert said.licence
    name = path.stem.replace("_", "-")
    assert f'name: ClassVar[str] = "{name}"' in path.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match=rf"get it by `git clone {said.url}`, and name the checkout by --repo"):
        Wanted.of([name], python=None, alone=False, sandbox=False)
