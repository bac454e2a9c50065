"""The room's side in one file: old Pythons read it, and it says the same as the judge's side."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from made.cells import choice, place
from made.environments import NOISY, OWN_TIME, numpy_alone

from bench import room_side, room_types
from bench.checkpoint import save_checkpoints
from bench.contract import method as contract
from bench.isolation import OutsideError, RefusedError, RemoteMethod, rpc_codec, tenant
from bench.plugins import environment_build, registry
from bench.plugins.configured import configure
from bench.plugins.environment_build import Wanted
from bench.plugins.environments import Environment
from bench.plugins.groups import SAID
from bench.plugins.spec import UsageError
from bench.plugins.third_party import stand_in
from bench.randomness import Secret
from bench.runs.tasks import EvaluateTask, Evaluation, evaluate_task
from bench.sandbox import Isolation, why_not
from bench.types import Dataset, LearningCurve, Mechanism, NotApplicable, PrivacyClaim, Release
from bench.wire import message
from bench.workbench.cell import Cell, Planned

pytestmark = pytest.mark.isolated
SOURCE = Path(room_side.__file__)
needs_sandbox = pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
LEVELS: list[object] = ["processes", pytest.param("sandbox", marks=needs_sandbox)]


@pytest.mark.parametrize("path", [SOURCE, Path(room_types.__file__)], ids=lambda path: path.stem)
def test_python_3_8_reads_it_and_it_imports_numpy_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    names = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name).partition(".")[0]  # type: ignore[union-attr]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    since = {"zoneinfo", "graphlib", "tomllib"}  # modules that Python 3.8 has not
    assert names - {"numpy", "bench"} <= set(__import__("sys").stdlib_module_names) - since
    newer = {"removeprefix", "removesuffix", "readlink", "file_digest", "is_relative_to", "pairwise", "bit_count"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in ("strict", "kw_only")]


def test_results_that_stay_in_a_room_are_of_kinds_that_the_judge_calls() -> None:
    assert set(room_side.KINDS.values()) - {"Dataset"} <= set(rpc_codec.ASKED)
    assert set(room_side.PLAIN) < set(rpc_codec.ASKED["Mechanism"])
    names = {*vars(contract.Key), *vars(Mechanism)}
    abstract = contract.Key.__abstractmethods__ | Mechanism.__abstractmethods__
    assert set(room_side.OWN) <= names - abstract


def test_both_sides_name_the_same_errors() -> None:
    assert room_side.ERRORS.keys() == rpc_codec.ERRORS.keys()


def values() -> list[object]:
    samples = torch.rand(4, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[1.0], [0.0], [torch.nan], [0.5]])
    links = torch.tensor([[0, 1], [2, 3]])
    return [
        None, True, 3, -0.5, float("inf"), "text \u00e9", [1, [2.5, "x"]], {"a": 1, "b": torch.arange(3)},
        Secret.of_seed(1), Dataset("made", samples, labels, torch.arange(4), ("one",), False, True),
        Release(samples, labels, links, torch.tensor([True, False])),
        PrivacyClaim("image", 1.0, 0.1, "none", "a test", units=3, family="Gaussian"),
        LearningCurve("ReID AUC", ((0, 0.5), (10, 0.75)), converged=True, reason="it rose no more"),
        *[torch.arange(5).to(kind) for kind in (torch.uint8, torch.int16, torch.float16, torch.float64, torch.bool)],
        torch.zeros(0, 3), torch.tensor(2.0),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(len(values())))
def test_a_value_comes_back_as_it_was_by_way_of_the_other_side(number: int, tmp_path: Path) -> None:
    """Judge to room to judge: each reads what the other wrote, values and tensors."""
    from bench.wire.tensor_file import pack_tensors, unpack_tensors

    value, tensors = values()[number], dict[str, torch.Tensor]()

    def keep(part: torch.Tensor) -> list[str]:
        tensors[f"t{len(tensors)}"] = part
        return ["1", f"t{len(tensors) - 1}"]

    packed = rpc_codec.pack(value, keep)  # type: ignore[arg-type]
    pack_tensors(tensors, tmp_path / "1.safetensors")
    theirs = room_side.unpack(
        json.loads(json.dumps(packed)),
        lambda at: room_side.read_tensors(str(tmp_path / "1.safetensors"))[at[1]],
        dict,
    )
    arrays: dict[str, object] = {}

    def held(part: object) -> str:
        arrays[f"t{len(arrays)}"] = part
        return f"t{len(arrays) - 1}"

    back = room_side.pack(theirs, held)
    room_side.write_tensors(str(tmp_path / "2.safetensors"), arrays)
    found = unpack_tensors(tmp_path / "2.safetensors", 1 << 20)
    again = rpc_codec.unpack(back, lambda at: found[str(at)], lambda state: None)  # type: ignore[arg-type,return-value]
    assert same(again, value)


def same(a: object, b: object) -> bool:
    if isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and a.dtype == b.dtype and torch.equal(a.nan_to_num(7), b.nan_to_num(7))
    if isinstance(b, Dataset | Release):
        return type(a) is type(b) and all(same(vars(a)[name], part) for name, part in vars(b).items())
    if isinstance(b, dict):
        return isinstance(a, dict) and a.keys() == b.keys() and all(same(a[name], part) for name, part in b.items())
    return a == b


def test_messages_are_the_same_bytes(tmp_path: Path) -> None:
    import os

    reading, writing = os.pipe()
    room_side.send(writing, {"a": [1, 2.5, "é"]})
    message.send(writing, {"b": None}, 1000)
    first = next(message.Reader(reading, 1000).messages())
    assert first == {"a": [1, 2.5, "é"]}
    os.set_blocking(reading, True)
    message.send(writing, {"c": 1}, 1000)
    os.close(writing)
    assert room_side.receive(reading) in ({"b": None}, {"c": 1})


def test_secrets_have_the_same_children() -> None:
    ours = Secret.of_seed(3, "a")
    theirs = room_types.Secret.of_seed(3, "a")
    assert ours.derive("key", 3).content == theirs.derive("key", 3).content
    assert torch.equal(ours.tensor(), torch.from_numpy(theirs.tensor()))


def test_streams_of_a_room_are_uniform_and_named() -> None:
    stream = room_types.Secret(bytes(32)).stream("a")
    drawn = stream.uniform(20_000)
    assert abs(drawn.mean() - 0.5) < 5 / np.sqrt(12 * 20_000)
    assert abs(stream.normal(20_000).std() - 1) < 5 / np.sqrt(2 * 20_000)
    counts = np.bincount(stream.integers(5, 20_000), minlength=5)
    assert (abs(counts - 4_000) < 5 * np.sqrt(3_200)).all()
    assert sorted(stream.permutation(50)) == list(range(50))
    again = room_types.Secret(bytes(32))
    assert (again.stream("a").uniform(9) == drawn[:9]).all()
    assert not (again.stream("b").uniform(9) == drawn[:9]).any()


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return numpy_alone(tmp_path_factory.mktemp("numpy-alone") / "python")


@pytest.fixture(scope="module")
def added(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """An environment whose interpreter has no torch and none of this project."""
    folder = tmp_path_factory.mktemp("added")
    (folder / "own_time.py").write_text(OWN_TIME, encoding="utf-8")
    (folder / "noisy.py").write_text(NOISY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_PLUGINS", str(folder / "plugins"))
        wanted = Wanted.of(
            [str(folder / "own_time.py"), str(folder / "noisy.py")], python=str(interpreter), alone=False, sandbox=False
        )
        yield environment_build.add(wanted)


@pytest.fixture
def environment(added: Environment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Environment]:
    monkeypatch.setenv("BENCH_PLUGINS", str(Path(str(added.manifest.folder)).parent.parent))
    registry.entries.cache_clear()
    stand_in.cache_clear()
    yield added
    monkeypatch.undo()
    registry.entries.cache_clear()
    stand_in.cache_clear()


def evaluated(folder: Path, method: str, attack: str, isolation: Isolation) -> Evaluation:
    where = Cell(configure("methods", method, "smoke"), choice("digits"), "cpu")
    planned = Planned("reidentification", configure("attacks", attack, "smoke"), ("guesswork", "reid-auc"))
    return evaluate_task(EvaluateTask(where, place(folder), planned, isolation))


@pytest.mark.parametrize("isolation", LEVELS)
def test_a_method_and_an_attack_with_numpy_alone_are_scored(
    environment: Environment, isolation: Isolation, tmp_path: Path
) -> None:
    found = evaluated(tmp_path, "additive", "centred", isolation)
    assert found.scores["reid-auc"].value == 1  # one picture for all images hides nothing from who compares them
    assert found.details["level"] > 0.3  # type: ignore[operator]  # of the release that she asked for


def test_ours_and_theirs_work_on_one_another(environment: Environment, tmp_path: Path) -> None:
    assert evaluated(tmp_path / "a", "additive", "nearest-neighbour", "processes").scores["reid-auc"].value == 1
    assert evaluated(tmp_path / "b", "identity", "centred", "processes").scores["reid-auc"].value == 1


def test_the_calls_of_a_method_come_as_its_author_wrote_them(environment: Environment, tmp_path: Path) -> None:
    chosen = configure("methods", "additive[strength=2,limit=none]", "smoke")
    assert str(chosen) == "additive[strength=2]" or str(chosen) == "additive[limit=none,strength=2.0]"
    assert dict(configure("methods", "additive", "paper").plugin.__dict__)["strength"] == 9
    rows = Dataset("made", torch.rand(5, 1, 4, 4), torch.ones(5, 1), None, ("one",), False, True)
    room = tenant(chosen, device="cpu", sandbox=False, folder=tmp_path / "rooms")
    with closing(RemoteMethod(chosen.plugin, room)) as method:
        scheme = method.fit(rows, 0)
        assert torch.allclose(scheme.state()["mean"], rows.samples.mean(dim=0))
        key = scheme.sample_key(Secret.of_seed(1))
        release = key.release(rows)
        assert torch.equal(release.samples, key.query(rows.samples))
        assert torch.equal(release.links, torch.arange(5)[:, None].repeat(1, 2))  # type: ignore[arg-type]
        assert (release.samples - rows.samples).amax() > 1
        assert torch.equal(scheme.load_key(key.state()).query(rows.samples), release.samples)
        assert scheme.claim() == PrivacyClaim("image", float("inf"), 0.0, "none", "a test")
        assert scheme.notes()["strength"] == 2
        assert list(scheme.own()) == ["query"]
        with pytest.raises(RefusedError, match="three rows are too few"):
            key.release(rows.take(torch.arange(3)))


def opened(written: str, folder: Path) -> RemoteMethod:
    chosen = configure("methods", written, "smoke")
    return RemoteMethod(chosen.plugin, tenant(chosen, device="cpu", sandbox=False, folder=folder))


def test_a_mechanism_of_scale_and_codes_has_the_density_of_laplace_noise(
    environment: Environment, tmp_path: Path
) -> None:
    """The judge computes what the plug-in leaves out."""
    samples = torch.rand(3, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    rows = Dataset("made", samples, torch.ones(3, 1), None, ("one",), False, True)
    with closing(opened("noisy[scale=0.25]", tmp_path / "rooms")) as method:
        scheme = method.fit(rows, 0)
        claim, mechanism = scheme.claim(), scheme.mechanism()
        assert claim is not None
        assert claim.epsilon == 16
        assert mechanism is not None
        assert mechanism.exact
        assert mechanism.rowwise
        assert mechanism.fence is None
        release = scheme.sample_key(Secret.of_seed(1)).release(rows)
        located, observed = mechanism.locate(rows), mechanism.observe(release)
        density = torch.distributions.Laplace(located[:, None], 0.25).log_prob(observed[None]).sum(dim=-1)
        torch.testing.assert_close(mechanism.log_density(located, observed), density)
        torch.testing.assert_close(mechanism.noise(located, observed), (observed - located) / 0.25)
        assert not mechanism.stopped(observed).any()
        assert mechanism.witnesses(rows) == []


def test_a_training_that_was_cut_off_goes_on_with_what_it_kept(environment: Environment, tmp_path: Path) -> None:
    rows = Dataset("made", torch.rand(3, 1, 2, 2), torch.ones(3, 1), None, ("one",), False, True)
    with save_checkpoints(tmp_path / "kept"):
        with (
            closing(opened("noisy[stops=true]", tmp_path / "a")) as method,
            pytest.raises(OutsideError, match="cut off"),
        ):
            method.fit(rows, 0)
        with closing(opened("noisy", tmp_path / "b")) as method:
            assert method.fit(rows, 0).state()["step"] == 4
    with closing(opened("noisy", tmp_path / "c")) as method:
        assert method.fit(rows, 0).state()["step"] == 2  # nothing is kept outside of a job


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("additive[strength=x]", r"additive\[strength\] must be float, got 'x'"),
        ("additive[other=1]", "has no parameter 'other'"),
    ],
)
def test_parameters_that_the_author_does_not_take_say_so(environment: Environment, written: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        configure("methods", written, "smoke")


def test_without_rooms_such_a_plug_in_cannot_run(environment: Environment) -> None:
    with pytest.raises(UsageError, match="which only rooms start: use --isolation"):
        configure("methods", "additive", "smoke", here=True)


def test_no_plug_in_holds_one_of_another_environment(environment: Environment) -> None:
    with pytest.raises(UsageError, match="centred is in an environment of its own"):
        configure("attacks", "surrogate[base=centred]", "smoke")


def test_the_file_runs_by_itself_where_nothing_else_is(interpreter: Path, tmp_path: Path) -> None:
    """No folder of this project on the path: it is one file, and the types beside it."""
    (tmp_path / "own_time.py").write_text(OWN_TIME.replace("bench_room", "bench.types"), encoding="utf-8")
    alone = tmp_path / "room_side.py"
    alone.write_bytes(SOURCE.read_bytes())
    (tmp_path / "room_types.py").write_bytes(Path(room_types.__file__).read_bytes())
    files = [str(tmp_path / "own_time.py")]
    task = {"mode": "list", "files": files, "presets": ["smoke"], "own": [], "answer": 1, "name": "x", "words": SAID}
    done = subprocess.run(
        [interpreter, "-I", "-B", alone, json.dumps(task)], capture_output=True, check=True, timeout=60
    )
    assert b'"name":"additive"' in done.stdout
    assert b'"name":"centred"' in done.stdout


def test_not_applicable_stays_what_it_is() -> None:
    assert room_side.told(room_types.NotApplicable("no")) == rpc_codec.told(NotApplicable("no"))
    assert room_side.told(KeyError("x"))[0] == "outside"
