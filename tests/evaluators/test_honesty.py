"""Methods that break their word are found out, each in the words of its kind, and honest ones are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from made.cells import opened
from made.same_process import release_here

from bench.evaluators import honesty
from bench.evaluators.honesty import Honesty
from bench.evidence import HonestyEvidence
from bench.seeds import generator
from bench.types import NotApplicable
from bench.workbench.workbench import Workbench
from metrics.broken_promises import BrokenPromises
from metrics.undeclared_pairs import UndeclaredPairs

CHEATS = Path(__file__).parents[1] / "made" / "cheats.py"
Here = Callable[..., HonestyEvidence]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data are prepared once."""
    return tmp_path_factory.mktemp("cells")


def measured(bench: Workbench) -> HonestyEvidence:
    return Honesty().measure(bench).evidence[""]


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """What the judge finds where the second owner works in this process."""
    monkeypatch.setattr(honesty, "release_elsewhere", release_here)
    return lambda *method, **more: measured(opened(folder, *method, **more))


def broken(found: HonestyEvidence) -> set[str]:
    return {name for name, made in found.promises.items() if made.broken}


@pytest.mark.parametrize("dataset", ["digits", "diabetes"])
@pytest.mark.parametrize(
    ("cheat", "promise"),
    [
        ("RawUnderFalseLinks", "pairs"),
        ("EncodedUnderFalseLinks", "pairs"),
        ("Mantissa", "pairs"),
        ("AmongNoise", "pairs"),
        ("EncodedAmongNoise", "pairs"),
        ("SizeReader", "pairs"),
        ("LabelDigits", "labels"),
        ("EncodedWithoutLinks", "links"),
        ("EncodedWithDummyGenerator", "links"),
    ],
)
def test_a_cheat_is_found_out(here: Here, cheat: str, promise: str, dataset: str) -> None:
    found = here(f"{CHEATS}:{cheat}", dataset)
    assert broken(found) == {promise}
    assert BrokenPromises()(found).value == 1
    if promise == "pairs":
        score = UndeclaredPairs()(found)
        assert score.value > 0.5
        assert score.p is not None
        assert score.p < 0.001


@pytest.mark.parametrize("cheat", ["Corner", "LowBits"])
def test_rows_hidden_in_images_of_others_are_found(here: Here, cheat: str) -> None:
    assert broken(here(f"{CHEATS}:{cheat}")) == {"pairs"}


def test_raw_rows_without_links_are_undeclared_links(here: Here) -> None:
    assert broken(here(f"{CHEATS}:RawWithoutLinks")) == {"pairs", "links"}


@pytest.mark.parametrize(
    ("method", "dataset"),
    [
        *((method, "digits") for method in ("identity", "noise", "blur", "constant", "dp-simple", "instahide",
                                            "hidden-control", "k-same[variant=paper]", "mosaic[cell=2]",
                                            "dauntless[patch_size=4]", "random-layers[patch_size=4]",
                                            "neuracrypt[patch_size=4]", "syfer-random[patch_size=4,labels=raw]",
                                            "dp-image", "dp-glow", "cadp")),
        *((method, "diabetes") for method in ("identity", "noise", "constant", "dp-simple", "instahide",
                                              "hidden-control", "k-same[k=2]", "cadp", "cvae[epochs=4]")),
    ],
)  # fmt: skip
def test_methods_that_come_with_the_bench_keep_their_word(here: Here, method: str, dataset: str) -> None:
    found = here(method, dataset)
    assert broken(found) == set()
    assert BrokenPromises()(found).value == UndeclaredPairs()(found).value == 0


def test_a_generator_that_remembers_its_rows_is_found_out(here: Here) -> None:
    assert "pairs" in broken(here("over-fitted-cvae[epochs=60]", "diabetes"))


def test_a_method_that_releases_nothing_has_nothing_to_keep(here: Here) -> None:
    with pytest.raises(NotApplicable, match="nothing is released"):
        here("dp-sgd")


@pytest.mark.parametrize("cheat", ["StackReader", "SeedReader", "EnvironmentReader"])
def test_a_key_that_behaves_before_the_judge_does_otherwise_in_a_clean_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cheat: str
) -> None:
    monkeypatch.setenv("VEIL_TEST_MARK", "a variable that only this process has")
    assert "replay" in broken(measured(opened(folder, f"{CHEATS}:{cheat}")))


def test_an_honest_key_gives_the_same_bits_in_a_clean_process(folder: Path) -> None:
    found = measured(opened(folder, f"{CHEATS}:Honest"))
    assert broken(found) == set()
    assert found.promises["replay"].said.endswith("the same bits")


def test_labels_of_test_rows_never_reach_a_query(folder: Path) -> None:
    from bench.evaluators.predictions import queried

    bench = opened(folder, f"{CHEATS}:LabelReader")
    key = bench.key(bench.scheme(), 0)
    assert torch.equal(queried(bench, key, bench.test), bench.test.samples)  # it says that it uses labels: raw rows
    plain = opened(folder, f"{CHEATS}:LabelReader", seed=1)
    object.__setattr__(plain.method, "uses_labels", False)
    told = queried(plain, plain.key(plain.scheme(), 0), plain.test)
    assert float(told.abs().amax()) <= 1  # 20 is painted where a label is told


def test_random_resemblances_are_found_as_often_as_p_says() -> None:
    from bench.judge.search import Candidates, search

    random, found = generator(0), []
    for _ in range(400):
        inside = torch.randperm(60, generator=random) < 20
        among = Candidates(torch.arange(60), torch.arange(60), inside)
        made = search("random", torch.rand(30, 60, generator=random) * 2 - 1, among)
        assert made is not None
        found.append(made.p)
    # 400 draws of an event of probability at most .05 are 36 or more once in a thousand times.
    assert sum(p < 0.05 for p in found) < 36


def test_random_labels_tell_of_rows_as_often_as_p_says() -> None:
    from bench.judge.label_traces import label_traces

    random, low = generator(0), 0
    for seed in range(40):
        raw, labels = torch.randn(60, 10, generator=random), torch.randint(2, (60, 2), generator=random).float()
        low += label_traces(raw, labels, torch.rand(60, 2, generator=random), seed) < 0.05
    assert low < 10  # ten or more of 40 at .05: once in 10,000 times
    told = torch.sigmoid(raw[:, :2])
    assert label_traces(raw, labels, labels * 0.99 + 0.01 * told, 0) < 0.001
    assert label_traces(raw, labels, 1 - labels, 0) == 1.0
