"""Methods that break their word are found out, each in the words of its kind, and honest ones are not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made import cheats
from made.cells import cell, opened, place

from bench.evaluators import honesty
from bench.evaluators.honesty import Honesty
from bench.evaluators.predictions import queried
from bench.evidence import HonestyEvidence
from bench.leak_search.permutation_tests import label_traces
from bench.leak_search.search import Candidates, search
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, NotApplicable
from bench.workbench.workbench import Workbench
from metrics.honesty import BrokenPromises, UndeclaredPairs

CHEATS = Path(cheats.__file__)
Here = Callable[..., HonestyEvidence]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data are prepared once."""
    return tmp_path_factory.mktemp("cells")


def measured(bench: Workbench) -> HonestyEvidence:
    """With draws that are the same in every run of the tests."""
    return Honesty().measure(replace(bench, run_secret=Secret.of_seed(0, "tests"))).evidence[""]


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """What the judge finds of a method, or of a cheat by its class, where the second owner works in this process."""
    monkeypatch.setattr(honesty, "second_owner", lambda bench: nullcontext(bench.method))

    def measure(method: str, dataset: str = "digits") -> HonestyEvidence:
        if not hasattr(cheats, method):
            return measured(opened(folder, method, dataset))
        made = getattr(cheats, method)()
        return measured(replace(opened(folder, "identity", dataset), method=made, finding="made"))  # nothing is stored

    return measure


def test_the_word_of_a_method_is_looked_into_where_no_finding_is_left(folder: Path) -> None:
    made = opened(folder, "identity", "digits")

    def bare(rows: Dataset) -> Dataset:
        assert rows.labels is not None
        return replace(rows, labels=rows.labels[:, :0], findings=(), exclusive=False)

    rows = {name: bare(getattr(made, name)) for name in ("public", "private", "control", "test")}
    without = replace(made, finding="none", **rows)  # nothing is stored
    assert not broken(measured(without))


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
    found = here(cheat, dataset)
    assert broken(found) == {promise}
    assert BrokenPromises()(found).value == 1
    if promise == "pairs":
        score = UndeclaredPairs()(found)
        assert score.value > 0.1
        assert score.p is not None
        assert score.p < 0.001


@pytest.mark.parametrize("cheat", ["Corner", "LowBits"])
def test_rows_hidden_in_images_of_others_are_found(here: Here, cheat: str) -> None:
    assert broken(here(cheat)) == {"pairs"}


def test_raw_rows_without_links_are_undeclared_links(here: Here) -> None:
    assert broken(here("RawWithoutLinks")) == {"pairs", "links"}


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


def apart(folder: Path, cheat: str) -> Workbench:
    """A cell whose method works in a process of its own."""
    return Workbench.open(cell(f"{CHEATS}:{cheat}"), place(folder), "processes")


@pytest.mark.usefixtures("quick_rooms")
def test_a_key_that_knows_its_seed_does_otherwise_where_only_its_state_is_known(folder: Path) -> None:
    with closing(apart(folder, "SeedReader")) as bench:
        assert broken(measured(bench)) == {"replay"}


@pytest.mark.usefixtures("quick_rooms")
@pytest.mark.parametrize(("cheat", "promises"), [("TwoFaced[tells=labels]", {"faces"}), ("Honest", set())])
def test_a_method_that_shows_eve_another_face_is_found(folder: Path, cheat: str, promises: set[str]) -> None:
    with closing(apart(folder, cheat)) as bench:
        found = measured(bench)
    assert broken(found) == promises
    assert "faces" in found.promises


@pytest.mark.usefixtures("quick_rooms")
@pytest.mark.parametrize("cheat", ["StackReader", "EnvironmentReader"])
def test_a_key_that_behaves_before_the_judge_does_otherwise_in_a_clean_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cheat: str
) -> None:
    monkeypatch.setenv("VEIL_TEST_MARK", "a variable that only this process has")
    bench = replace(opened(folder, f"{CHEATS}:{cheat}"), method=getattr(cheats, cheat)(), finding="made")
    assert "replay" in broken(measured(bench))


def test_an_honest_key_gives_the_same_bits_in_another_process(folder: Path) -> None:
    with closing(apart(folder, "Honest")) as bench:
        found = measured(bench)
    assert broken(found) == set()
    assert found.promises["replay"].said.endswith("the same bits")


@pytest.mark.parametrize("declared", [True, False])
def test_labels_of_test_rows_never_reach_a_query(folder: Path, declared: bool) -> None:
    kind = cheats.LabelReader if declared else cheats.QuietLabelReader
    bench = replace(opened(folder), method=kind())
    told = queried(bench, bench.key(bench.scheme(), 0), bench.test)
    if declared:
        assert torch.equal(told, bench.test.samples)
    assert float(told.abs().amax()) <= 1  # 20 is painted where a label is told


def test_random_resemblances_are_found_as_often_as_p_says() -> None:
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
    random, low = generator(0), 0
    for seed in range(40):
        raw, labels = torch.randn(60, 10, generator=random), torch.randint(2, (60, 2), generator=random).float()
        low += label_traces(raw, labels, torch.rand(60, 2, generator=random), seed) < 0.05
    assert low < 10  # ten or more of 40 at .05: once in 10,000 times
    told = torch.sigmoid(raw[:, :2])
    assert label_traces(raw, labels, labels * 0.99 + 0.01 * told, 0) < 0.001
    assert label_traces(raw, labels, 1 - labels, 0) == 1.0
