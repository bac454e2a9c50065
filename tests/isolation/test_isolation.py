"""Methods and attacks in processes of their own: the same figures, and nothing to be seen from inside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from made.cells import cell, choice, place

from bench.contract.seal import ContractError
from bench.isolation import DiedError, OutsideError, RefusedError, RemoteAttack, RemoteMethod, remote_method, tenant
from bench.isolation.room import Room
from bench.isolation.tenant import Tenant
from bench.plugins.configured import Configured, configure
from bench.plugins.spec import UsageError
from bench.plugins.third_party import StandIn
from bench.randomness import Secret
from bench.results.results import Results
from bench.runs.tasks import EvaluateTask, Evaluation, evaluate_task
from bench.sandbox import confined, why_not
from bench.types import Dataset, Method, NotApplicable
from bench.wire.message import send
from bench.workbench import workbench
from bench.workbench.cell import Cell, Planned
from bench.workbench.workbench import Workbench

SPY = Path(__file__).with_name("spy.py")
pytestmark = pytest.mark.isolated
needs_sandbox = pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
quickly = pytest.mark.usefixtures("quick_rooms")
LEVELS = ["processes", pytest.param("sandbox", marks=needs_sandbox)]


def evaluated(folder: Path, method: str, attack: str, isolation: str) -> Evaluation:
    chosen = choice("digits")
    where = Cell(configure("methods", method, "smoke"), chosen, "cpu")
    planned = Planned("reidentification", configure("attacks", attack, "smoke"), ("guesswork", "reid-auc"))
    return evaluate_task(EvaluateTask(where, place(folder), planned, isolation))  # type: ignore[arg-type]


@quickly
@pytest.mark.parametrize("isolation", LEVELS)
def test_figures_are_the_same_wherever_a_plugin_works(tmp_path: Path, isolation: str) -> None:
    apart = evaluated(tmp_path / "apart", "dp-simple[scale=3]", "nearest-neighbour", isolation)
    here = evaluated(tmp_path / "here", "dp-simple[scale=3]", "nearest-neighbour", "none")
    assert apart.scores == here.scores
    assert not list(Results(tmp_path / "apart" / "results").rooms.iterdir())


MUTING = """
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar
import torch
from bench.pairs.score_matrices import CosineScores
from bench.randomness import Secret
from bench.types import *
from methods.dp_simple import *

@dataclass(frozen=True)
class Muting(DPSimple):
    name: ClassVar[str] = "muting"
    def load(self, state):
        if "attacks" in sys.argv and Path(__file__).with_name("muted").exists():  # code that runs beside Eve blinds her
            CosineScores.block = lambda self, rows, cols: torch.zeros(self.shape)[rows, cols]
            CosineScores.factors = lambda self: None
        return super().load(state)
"""


@quickly
@pytest.mark.parametrize("attack", ["absolute-correlation", "likelihood"])
def test_a_method_from_outside_never_works_in_eves_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    """What she asks of its scheme (a release, its mechanism) comes as it would if she held the scheme."""
    path, muted = tmp_path / "muting.py", tmp_path / "muted"
    path.write_text(MUTING, encoding="utf-8")
    muted.touch()
    monkeypatch.setattr(workbench, "is_outside", lambda *_: False)  # rows as they are, which a scheme beside her gets
    apart = evaluated(tmp_path / "apart", f"{path}:Muting[scale=3]", attack, "processes")
    assert not list(Results(tmp_path / "apart" / "results").rooms.iterdir())
    muted.unlink()
    monkeypatch.setattr(remote_method, "is_outside", lambda *_: False)
    beside = evaluated(tmp_path / "beside", f"{path}:Muting[scale=3]", attack, "processes")
    details = {**apart.details}
    assert details.pop("calls of the method")
    assert (apart.scores, details) == (beside.scores, beside.details)


GUESSING = """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import torch
from bench.randomness import Secret
from bench.types import *
from methods.dp_simple import *

asked = 0

@dataclass(frozen=True)
class Guessing(DPSimple):
    name: ClassVar[str] = "guessing"
    def load(self, state):
        found = super().load(state)
        kind = type(found)
        return type(kind.__name__, (kind,), {"sample_key": sample_key})(**vars(found))

def sample_key(self, secret):
    global asked
    asked += 1
    found = super(type(self), self).sample_key(secret)
    if asked < 3:  # of the owner so many are never asked
        return found
    kind = type(found)
    return type(kind.__name__, (kind,), {"release": release})(**vars(found))

def release(self, private):
    if Path(__file__).with_name("refuses").exists():
        raise NotApplicable("not for you")
    return paired(torch.zeros_like(private.samples), private.labels)

@dataclass(frozen=True)
class Asking(Attack):
    name: ClassVar[str] = "asking"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "the scheme"
    def fit(self, view, seed):
        rows = view.candidates.take(torch.arange(8))
        for number in range(4):
            view.scheme.sample_key(Secret.of_seed(seed, number)).release(rows)
        raise NotApplicable("it was not found")
"""


@quickly
@pytest.mark.parametrize("refuses", [True, False])
def test_a_method_that_guesses_from_how_much_is_asked_that_it_is_eve_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    """It showed her noise, or made her attack not applicable, and its own release raw rows."""
    path = tmp_path / "guessing.py"
    path.write_text(GUESSING, encoding="utf-8")
    if refuses:
        (tmp_path / "refuses").touch()
    monkeypatch.setattr("bench.isolation.method_proxy.RENEWALS", 0)
    monkeypatch.setattr(
        "bench.isolation.method_proxy.SystemRandom", lambda: SimpleNamespace(randrange=lambda number: 0)
    )
    said = r"what it does for an owner: .* gave her " + ("a refusal .not for you" if refuses else "a release of")
    with pytest.raises(ContractError, match=said):
        evaluated(tmp_path / "apart", f"{path}:Guessing[scale=3]", f"{path}:Asking", "processes")
    assert not list(Results(tmp_path / "apart" / "results").rooms.iterdir())


@quickly
def test_a_process_makes_no_more_releases_for_eve_than_for_an_owner(tmp_path: Path) -> None:
    """So the third release of one process never comes: an owner's makes two."""
    path = tmp_path / "guessing.py"
    path.write_text(GUESSING, encoding="utf-8")
    (tmp_path / "refuses").touch()
    with pytest.raises(NotApplicable, match="it was not found"):
        evaluated(tmp_path / "apart", f"{path}:Guessing[scale=3]", f"{path}:Asking", "processes")


CHOOSY = """
from dataclasses import dataclass, replace
from typing import ClassVar
import torch
from bench.randomness import Secret
from bench.rows.row_sets import joined
from bench.types import *
from methods.dp_simple import *

@dataclass(frozen=True)
class Choosy(DPSimple):
    name: ClassVar[str] = "choosy"
    def load(self, state):
        found = super().load(state)
        kind = type(found)
        made = {"sample_key": sample_key, "mechanism": mechanism}
        return type(kind.__name__, (kind,), made)(**vars(found))

def sample_key(self, secret):
    found = super(type(self), self).sample_key(secret)
    kind = type(found)
    return type(kind.__name__, (kind,), {"release": release})(**vars(found))

def release(self, private):
    if len(private) not in (160, 169):
        raise NotApplicable("too many rows of one kind")
    made = paired(private.samples, private.labels)
    return made if len(private) == 160 else replace(made, links=None)

def mechanism(self):
    raise NotApplicable("it has none for you")

@dataclass(frozen=True)
class Unfit(Attack):
    asks: str
    name: ClassVar[str] = "unfit"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "nothing"
    def fit(self, view, seed):
        rows = int(self.asks) if self.asks.isdigit() else 160
        asked = joined(replace(view.candidates, labels=view.control.labels[:1].expand(160, -1)), view.control)
        view.scheme.sample_key(Secret.of_seed(seed)).release(asked.take(torch.arange(rows)))
        if self.asks == "mechanism":
            view.scheme.mechanism()
        raise NotApplicable("it reads tables")
"""


@quickly
@pytest.mark.parametrize(
    ("attack", "refused", "said"),
    [
        ("Unfit[asks=168]", True, "too many rows of one kind"),
        ("Unfit[asks=8]", False, "it reads tables"),  # completed to as many rows as the owner has
        ("Unfit[asks=169]", True, "it reads tables"),  # by its word, since its release shows no one
        ("Unfit[asks=mechanism]", True, "it has none for you"),
        ("Unfit[asks=160]", False, "it reads tables"),
        ("contrastive-labels", True, "too many rows of one kind"),  # rows that are released for this attack alone
    ],
)
def test_an_attack_that_a_method_refuses_something_is_told_apart(
    tmp_path: Path, attack: str, refused: bool, said: str
) -> None:
    path = tmp_path / "choosy.py"
    path.write_text(CHOOSY, encoding="utf-8")
    named = f"{path}:{attack}" if attack.startswith("Unfit") else attack
    with pytest.raises(NotApplicable, match=said) as reason:
        evaluated(tmp_path / "apart", f"{path}:Choosy", named, "processes")
    assert isinstance(reason.value, RefusedError) == refused


COUNTING = """
import weakref
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.pairs.score_matrices import CosineScores
from bench.types import Attack, Attacker

@dataclass(frozen=True)
class Counting(Attack):
    name: ClassVar[str] = "counting"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "nothing"
    def fit(self, view, seed): return Counted(len(view.candidates))

class Counted(Attacker):
    def __init__(self, rows):
        self.rows, self.held, self.most = rows, [], 0
    def score(self, sealed):
        found = CosineScores(torch.rand(self.rows, 2), torch.rand(len(sealed), 2))
        self.held.append(weakref.ref(found))
        self.most = max(self.most, sum(each() is not None for each in self.held))
        return found
    def notes(self): return {"most scores at once": self.most, "scores": len(self.held)}
"""


@quickly
def test_what_an_attacker_holds_of_a_release_goes_before_the_next_comes(tmp_path: Path) -> None:
    path = tmp_path / "counting.py"
    path.write_text(COUNTING, encoding="utf-8")
    found = evaluated(tmp_path, "identity", f"{path}:Counting", "processes")
    assert (found.details["most scores at once"], found.details["scores"]) == (1, 3)  # one on her own key


@quickly  # who describes them; the sandboxes are true ones
@needs_sandbox
def test_spies_in_a_sandbox_see_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "3f1c-canary"
    (tmp_path / canary).write_text("a secret")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / canary).write_text("neither")
    monkeypatch.setenv("BENCH_SECRET", "x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OMP_SPIED_PORT", str(server.getsockname()[1]))
        found = evaluated(tmp_path, f"{SPY}:SpyMethod[canary={canary}]", f"{SPY}:Spy[canary={canary}]", "sandbox")
    assert "by words of mapped files" in str(found.details["living sandboxes"])
    others = {"pairs counted by", "sandboxes", "living sandboxes"}
    told = {name: value for name, value in found.details.items() if name not in others}
    assert told == {"calls of the method": "none", "learning": []}
    assert found.scores["reid-auc"].value == 1  # links were right, so the release went through unharmed


def test_a_spy_in_a_bare_process_sees_files_and_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from isolation import spy  # the same looks, to show that they do see

    monkeypatch.setattr(spy, "HOMES", (str(tmp_path).lstrip("/"),))  # not all of a machine, which takes long
    monkeypatch.setattr(spy, "PLACES", (tmp_path,))
    (tmp_path / "seen-canary").touch()
    spied = spy.found("seen-canary")
    assert spied["canary"] == str(tmp_path / "seen-canary")
    assert spied["others"]
    assert spied["written"] == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["seen-canary"]


WRITES = "for place in {}; do touch $place/x 2> /dev/null && rm $place/x && echo $place; done; cat {}"


@needs_sandbox
@pytest.mark.parametrize("scratch", ["/tmp", "/dev/shm"])
@pytest.mark.parametrize("depth", ["", "a", "a/b/c"])
def test_what_is_shown_below_a_scratch_folder_has_no_writable_parents(scratch: str, depth: str) -> None:
    with tempfile.TemporaryDirectory(dir=scratch) as top:
        shown = Path(top, depth, "shown")
        shown.mkdir(parents=True)
        (shown / "file").write_text("read")
        (shown.parent / "hidden").touch()
        places = [str(place) for place in (shown, *shown.parents) if place != Path("/")]
        script = WRITES.format(" ".join(places), f"{shown}/file; ls {shown.parent}")
        files = (shown, Path(top, depth, "shown/file"))
        done = subprocess.run(confined(["sh", "-c", script], folder=None, files=files, device="cpu"),
                              capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert done.stdout == f"{scratch}\nreadshown\n"


def make(folder: Path, body: str) -> str:
    """A method whose `release` (or anything else) is given by its author."""
    path = folder / "made_method.py"
    path.write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "), encoding="utf-8")
    return f"{path}:Key_"


HEAD = """
import os, signal, sys, time, threading, subprocess
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.randomness import Secret
from bench.types import *

@dataclass(frozen=True)
class Made(Method):
    name: ClassVar[str] = "made"
    source: ClassVar[str] = "a test"
    def fit(self, public, seed): return Scheme_()
    def load(self, state): return Scheme_()

@dataclass(frozen=True)
class Scheme_(Scheme):
    def sample_key(self, secret): return Key_("none")
    def load_key(self, state): return Key_(*state)
    def state(self): return {"a": torch.zeros(2)}

@dataclass(frozen=True)
class Key_(Key):
    mode: str
    def state(self): return {}
"""

MODES = """
def release(self, private):
    return getattr(self, self.mode)(private)
def exits(self, private):
    os._exit(7)
def crashes(self, private):
    os.kill(os.getpid(), signal.SIGSEGV)
def raises(self, private):
    raise type("Odd\\x1b[31mError", (Exception,), {})("text \\ud800 " + "x" * 100_000)
def leaves(self, private):
    raise SystemExit(3)
def unprintable(self, private):
    raise type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})()
def numbers(self, private):
    return Release(private.samples.numpy(), None, None)
def doubles(self, private):
    return paired(private.samples.double(), None)
def nans(self, private):
    return paired(private.samples * float("nan"), None)
def beyond(self, private):
    return Release(private.samples, None, torch.tensor([[0, len(private)]]))
def labelled(self, private):
    return Release(private.samples, [1, 2], None)
def senseless(self, private):
    raise NotApplicable("because")
def garbage(self, private):
    for number in (*range(3, 20), 201):
        try:
            os.write(number, b"\\xff" * 5000)
        except OSError:
            pass
    time.sleep(3600)
def twice(self, private):
    from bench.wire.message import send
    for number in (*range(3, 20), 201):
        try:
            send(number, {"number": 99, "ok": 1}, 1000)
        except OSError:
            pass
    time.sleep(3600)
def linked(self, private):
    for folder in sys.argv:
        if os.path.isdir(os.path.join(folder, "out")):
            for number in range(50):
                os.symlink("/etc/passwd", os.path.join(folder, "out", f"{number}.safetensors"))
    return paired(private.samples, None)
def forks(self, private):
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(3600)
            os._exit(0)
    return paired(private.samples, None)
"""


@pytest.fixture(scope="module")
def rows() -> Dataset:
    samples = torch.rand(20, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    return Dataset("made", samples, None, None, (), exclusive=False, shareable=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("made")
    make(folder, MODES)
    return f"{folder / 'made_method.py'}:Made"


ENDS: dict[str, tuple[type[Exception], str]] = {
    "exits": (DiedError, "exit code 7"),
    "crashes": (DiedError, "SIGSEGV"),
    "raises": (OutsideError, "text"),
    "leaves": (OutsideError, "SystemExit"),
    "unprintable": (OutsideError, "cannot be had"),
    "numbers": (ContractError, "ndarray"),
    "doubles": (ContractError, "float64"),
    "nans": (ContractError, "finite"),
    "beyond": (ContractError, "links must lie"),
    "labelled": (ContractError, "got list"),
    "senseless": (NotApplicable, "because"),
    "garbage": (DiedError, "sent an invalid answer"),
    "twice": (DiedError, "an answer came to no question"),
    "linked": (DiedError, "and no other"),
}


@pytest.fixture(scope="module")
def method(written: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteMethod]:
    """The made method; its process is opened anew after it has died."""
    made = remote(configure("methods", written, "smoke"), tmp_path_factory.mktemp("made-rooms"))
    with closing(made):
        yield made


@quickly
@pytest.mark.parametrize("mode", list(ENDS))
def test_whatever_a_method_does_ends_in_one_error(mode: str, method: RemoteMethod, rows: Dataset) -> None:
    kind, text = ENDS[mode]
    key = method.load({}).load_key({mode: torch.zeros(1)})
    with pytest.raises(kind) as caught:
        key.release(rows)
    assert text in str(caught.value)
    assert len(str(caught.value)) < 2_500
    str(caught.value).encode()  # no half characters


@needs_sandbox
def test_nothing_that_a_plugin_starts_outlives_its_room(written: str, rows: Dataset, tmp_path: Path) -> None:
    method = remote(configure("methods", written, "smoke"), tmp_path, sandbox=True)
    method.load({}).load_key({"forks": torch.zeros(1)}).release(rows)
    inside = psutil.Process(method.room().process).children(recursive=True)
    assert inside
    method.close()
    _, alive = psutil.wait_procs(inside, timeout=60)
    assert not alive


STAYING = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from methods.noise import Noise

reading, writing = os.pipe()
if os.fork() == 0:
    Path(__file__).with_name("started").write_text(str(os.getpid()))
    os.close(reading)
    os.close(writing)
    time.sleep(3600)
    os._exit(0)
os.close(writing)
os.read(reading, 1)
{end}
@dataclass(frozen=True)
class Staying(Noise):
    name = "staying"
"""


@quickly
@pytest.mark.parametrize("end", ["", "os._exit(3)"])
def test_nothing_that_a_plugin_starts_outlives_its_description(end: str, tmp_path: Path) -> None:
    (tmp_path / "staying.py").write_text(STAYING.replace("{end}", end), encoding="utf-8")
    with pytest.raises(UsageError, match="ends the process") if end else nullcontext():
        configure("methods", f"{tmp_path / 'staying.py'}:Staying", "smoke")
    pid = int((tmp_path / "started").read_text(encoding="utf-8"))
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_process_of_an_attack_starts_before_it_is_asked(tmp_path: Path) -> None:
    chosen = configure("attacks", "chance", "smoke")
    with closing(RemoteAttack(chosen.plugin, tenant(chosen, device="cpu", sandbox=False, folder=tmp_path))) as attack:
        assert psutil.Process(attack.room.process).is_running()
    assert not attack.room.open


def remote(chosen: Configured[Method], folder: Path, *, sandbox: bool = False) -> RemoteMethod:
    return RemoteMethod(chosen.plugin, tenant(chosen, device="cpu", sandbox=sandbox, folder=folder / "rooms"))


@quickly
def test_plugins_from_outside_are_never_imported_by_the_judge(tmp_path: Path) -> None:
    path = tmp_path / "patching.py"
    patch = "import bench.runs.judge\nbench.runs.judge.PATCHED = True\n"
    path.write_text(SPY.read_text(encoding="utf-8") + patch, encoding="utf-8")
    chosen = configure("attacks", f"{path}:Spy[canary=other]", "smoke")
    import bench.runs.judge

    assert isinstance(chosen.plugin, StandIn)
    assert not hasattr(bench.runs.judge, "PATCHED")
    assert str(chosen) == f"{path}:Spy[canary=other]"
    assert (chosen.plugin.name, chosen.plugin.scores) == ("spy", "pairs")
    with pytest.raises(RuntimeError, match="must not run in the judge's process"):
        chosen.plugin.fit(None, 0)  # type: ignore[arg-type]


BARE = """
from dataclasses import dataclass
from bench.types import Attack
{decorator}
class Spy(Attack):
    {said}
    def fit(self, view, seed): pass
"""


@quickly
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os; os._exit(0)", "ends the process"),
        ("raise RuntimeError('no')", "cannot be imported at line 1: RuntimeError: no"),
        ("x = 1", "has no class 'Spy'"),
        (BARE.format(decorator="", said="name = source = knowledge = 'x'"), "Spy must be a frozen dataclass"),
        (BARE.format(decorator="@dataclass(frozen=True)", said="knowledge = 'x'"), "must say its name and its source:"),
    ],
)
def test_what_cannot_be_imported_says_so(source: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(source, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        configure("attacks", f"{path}:Spy", "smoke")


@quickly
def test_cells_travel_with_their_stand_ins(tmp_path: Path) -> None:
    chosen = configure("methods", f"{SPY}:SpyMethod", "smoke")
    rebuild, arguments = chosen.__reduce__()  # what pickle travels by
    again = Cell(rebuild(*arguments), choice("digits"), "cpu")
    assert again.method == chosen
    assert again.folder == Cell(chosen, cell().choice, "cpu").folder


@pytest.mark.parametrize(("begins", "said"), [(False, "did not start"), (True, "ends the process")])
def test_a_process_that_never_began_is_no_fault_of_the_module(
    begins: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(command: list[str], *, pass_fds: tuple[int, ...], **more: object) -> subprocess.Popen[bytes]:
        if begins:
            send(pass_fds[0], {"began": True}, 100)
        return subprocess.Popen(["false"])

    monkeypatch.setattr("bench.plugins.interview.subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": gone}))
    (tmp_path / "mine.py").touch()
    with pytest.raises(UsageError, match=said):
        configure("attacks", f"{tmp_path / 'mine.py'}:Spy", "smoke")


LIES = """
import sys
if any("bench.plugins.self_description" in word for word in sys.orig_argv):
    import os
    from bench.wire.message import send
    told = {{
        "spec": {spec!r}, "class": "Spy", "confidential": {confidential}, "defaults": {{}},
        "parameters": {parameters},
        "said": {{"name": {name!r}, "source": "x", "requires": "x", "scores": "pairs", "knowledge": "x",
                  "uses_labels": False, "needs_public": True, "learns": False}},
    }}
    send(int(sys.argv[-1]), {{"ok": told}}, 1 << 20)
    os._exit(0)
"""


@quickly
@pytest.mark.parametrize(
    ("spec", "parameters", "name", "said"),
    [
        ("x", '[["x", {"plugin": ["metrics", "PAYLOAD:X"]}]]', "lie", "may contain only"),
        ("x", '[["x", {"plugin": ["attacks", "PAYLOAD:X"]}]]', "lie", "was not named"),
        ("x", '[["role", "hides nothing"]]', "lie", "may not be called"),
        ("x", '[["written", 1]]', "lie", "may not be called"),
        ("x", "[]", "nearest-neighbour", "registered attack"),
        ("x", "[]", "a\x1b[2J", "a name must be"),
        ("x", '{"a": 1}', "lie", "cannot be used"),
    ],
)
def test_a_description_that_lies_is_refused(spec: str, parameters: str, name: str, said: str, tmp_path: Path) -> None:
    payload = tmp_path / "payload.py"
    payload.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    path = tmp_path / "lies.py"
    path.write_text(
        LIES.format(spec=spec, parameters=parameters.replace("PAYLOAD", str(payload)), name=name, confidential=[]),
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match=said):
        configure("attacks", f"{path}:Spy", "smoke")
    assert not (tmp_path / "ran").exists()


@quickly
def test_a_description_cannot_choose_what_a_sandbox_shows(tmp_path: Path) -> None:
    path = tmp_path / "lies.py"
    spec = f"{path}:Spy[root={tmp_path},canary=/etc]"
    path.write_text(
        LIES.format(spec=spec, parameters=[["canary", "/etc"], ["root", "/"]], name="lie", confidential=[]),
        encoding="utf-8",
    )
    chosen = configure("attacks", f"{path}:Spy[canary=mine]", "smoke")
    assert str(chosen) == f"{path}:Spy[canary=mine]"
    assert tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "rooms").files == (path,)


@needs_sandbox
def test_a_library_that_asks_for_the_users_name_gets_one_in_a_sandbox() -> None:
    ask = [sys.executable, "-c", "import getpass; print(getpass.getuser())"]
    line = confined(ask, folder=None, files=(), device="cpu")
    assert subprocess.run(line, capture_output=True, text=True, check=True, timeout=300).stdout == "sandbox\n"


@pytest.mark.parametrize("absolute", [True, False])
def test_a_sandbox_shows_installed_packages_of_the_path_and_nothing_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"  # somebody's home, after `pip install --target .`
    for folder in (home / "torch-3.0.dist-info", home / "torch", home / "results", work / "mine"):
        folder.mkdir(parents=True)
    listed = ("torch/__init__.py", "torch-3.0.dist-info/RECORD", "../../bin/torchrun", "/etc/passwd", "gone.py", "./x")
    (home / "torch-3.0.dist-info" / "RECORD").write_text("".join(f"{name},,\n" for name in listed))
    monkeypatch.chdir(tmp_path)
    entries = [str(home), str(work)] if absolute else ["home", "work"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", *entries]))
    monkeypatch.setattr("bench.sandbox.BWRAP", "/usr/bin/bwrap")
    line = confined(["true"], folder=None, files=(), device="cpu")
    shown = {
        line[n + 1] for n, word in enumerate(line) if word == "--ro-bind" and line[n + 1].startswith(str(tmp_path))
    }
    assert shown == {str(home / "torch"), str(home / "torch-3.0.dist-info")}
    assert line[line.index("PYTHONPATH") + 1] == os.pathsep.join([str(home), str(work)])


@quickly
def test_nobody_is_shown_the_folder_of_the_results(tmp_path: Path) -> None:
    chosen = configure("attacks", f"{SPY}:Spy[canary={tmp_path}]", "smoke")
    with pytest.raises(UsageError, match="in which the results lie"):
        tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "results" / "rooms")


def test_results_within_an_environment_of_python_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))  # `python -m venv .` in the folder of a project
    chosen = configure("attacks", "chance", "smoke")
    with pytest.raises(UsageError, match="which holds Python and is shown to every plug-in: move them"):
        tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "results" / "rooms")
    assert tenant(chosen, device="cpu", sandbox=False, folder=tmp_path / "results" / "rooms").files == ()


REMEMBERS = """
def release(self, private):
    SEEN.append(private.samples.clone())
    return paired(private.samples, private.labels)
def query(self, samples):
    SEEN.append(samples.clone())
    return samples + len(SEEN)
def decode(self, scores):
    return scores + len(SEEN)
"""


@quickly
def test_who_has_seen_rows_encodes_no_query_and_decodes_nothing(tmp_path: Path, rows: Dataset) -> None:
    make(tmp_path, "SEEN = []" + REMEMBERS.replace("SEEN", "Key_.SEEN"))
    made = remote(configure("methods", f"{tmp_path / 'made_method.py'}:Made", "smoke"), tmp_path)
    with closing(made):
        key = made.load({}).sample_key(Secret(bytes(32)))
        key.release(rows)
        assert torch.equal(key.query(rows.samples), rows.samples + 1)
        assert torch.equal(key.decode(torch.zeros(2, 2)), torch.zeros(2, 2))


OTHERS = """
def release(self, private):
    return paired(private.samples, private.labels)

class Other(Key_):
    def decode(self, scores):
        return -scores

Scheme_.sample_key = lambda self, secret: (Key_ if secret.content == bytes(32) else Other)("none")
"""


@quickly
def test_keys_that_do_different_things_by_themselves_are_refused(tmp_path: Path, rows: Dataset) -> None:
    within, after = OTHERS.split("\nclass ")
    path = Path(make(tmp_path, within).rpartition(":")[0])
    path.write_text(f"{path.read_text()}\nclass {after}")
    with closing(remote(configure("methods", f"{path}:Made", "smoke"), tmp_path)) as made:
        first, second = (made.load({}).sample_key(Secret(bytes([number] * 32))) for number in (0, 1))
        first.release(rows)
        with pytest.raises(ContractError, match="all keys must do the same by themselves"):
            second.release(rows)


@quickly
def test_what_a_key_leaves_as_it_is_takes_no_process_once_the_method_was_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[Room] = []

    def room(tenant: Tenant) -> Room:
        rooms.append(Room(tenant))
        return rooms[-1]

    monkeypatch.setattr(remote_method, "Room", room)
    where, here = cell("dauntless[patch_size=4]"), place(tmp_path)
    with closing(Workbench.open(where, here, "processes")) as bench:  # as a job that fits
        scheme = bench.scheme()
        assert scheme.notes() is not None
        assert scheme.claim() is None
        assert len(rooms) == 1
        bench.key(scheme, 0).release(bench.private)
        assert [each.open for each in rooms] == [False, True]  # what has fitted is gone by then
    rooms.clear()
    with closing(Workbench.open(where, here, "processes")) as bench:  # as one that evaluates
        key = bench.key(bench.scheme(), 0)
        scores = torch.rand(3, 2)
        assert key.decode(scores) is scores
        assert key.classifier(bench.private) is None
        assert rooms == []
        assert not torch.equal(key.query(bench.test.samples).flatten(1), bench.test.samples.flatten(1))
        assert len(rooms) == 1


@quickly
def test_a_classifier_of_the_owners_process_is_asked_for_where_the_key_has_one(tmp_path: Path) -> None:
    with closing(Workbench.open(cell("dp-sgd[epsilon=10]"), place(tmp_path), "processes")) as bench:
        classify = bench.key(bench.scheme(), 0).classifier(bench.private)
        assert classify is not None
        assert len(classify(bench.test.samples)) == len(bench.test)


@quickly
def test_steps_of_a_private_training_are_seen_wherever_the_method_works(tmp_path: Path) -> None:
    where, seen = cell("dp-sgd[epsilon=10]"), dict[str, list[torch.Tensor]]()
    for level in ("processes", "none"):
        with closing(Workbench.open(where, place(tmp_path), level)) as bench:  # type: ignore[arg-type]
            data, found = bench.control, seen.setdefault(level, [])
            key = bench.scheme().sample_key(Secret.of_seed(0))
            key.private_steps(data, data, lambda step, found=found: found.append(step.total))  # type: ignore[misc]
            given = torch.ones(3, len(found[0]))
            key.canary_steps(data, given, lambda step, found=found: found.append(step.total))  # type: ignore[misc]
    assert len(seen["none"]) > 2
    assert all(torch.equal(*both) for both in zip(*seen.values(), strict=True))


def test_steps_of_another_authors_training_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Workbench.open(cell("dp-sgd[epsilon=10]"), place(tmp_path), "processes")) as bench:
        key = bench.scheme().sample_key(Secret.of_seed(0))
        monkeypatch.setattr(remote_method, "is_outside", lambda *_: True)
        with pytest.raises(NotApplicable, match="methods of this project alone"):
            key.private_steps(bench.control, bench.control, lambda step: None)
