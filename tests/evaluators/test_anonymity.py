from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import opened

from bench.evaluators.anonymity import Anonymity, _by_people, _forms, _later
from bench.evidence import AnonymityEvidence
from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from bench.workbench.workbench import Workbench
from methods.k_same import KSame, KSameKey, Variant
from metrics.anonymity_set import AnonymitySet


def workbench(method: str, folder: Path) -> Workbench:
    return opened(folder, method)


def two_pairs(bench: Workbench, *, control: int = 8) -> Workbench:
    """Forty private rows: far-off pairs of neighbours, each in a corner of its own; control rows elsewhere."""
    corners = torch.eye(20).repeat_interleave(2, dim=0) * 100
    rows = (corners + torch.arange(40)[:, None] / 1000).float()
    parts = {}
    for name, samples in (("private", rows), ("control", -rows[:control] * 2)):
        labels, people = torch.zeros(len(samples), 1), torch.arange(len(samples))
        parts[name] = Dataset(name, samples, labels, people, ("f",), False, True)
    return replace(bench, public=parts["control"], test=parts["control"], **parts)


def found(bench: Workbench) -> tuple[AnonymityEvidence, dict[str, object]]:
    measured = Anonymity().measure(bench)
    evidence = measured.evidence[""]
    assert isinstance(evidence, AnonymityEvidence)
    return evidence, dict(measured.details)


def test_a_row_whose_only_neighbour_leaves_is_alone_after_the_second_release(tmp_path: Path) -> None:
    bench = two_pairs(workbench("k-same[k=2]", tmp_path))
    evidence, details = found(bench)
    stay = torch.isin(torch.arange(40), _by_people(bench.private, 0.8, bench.secret("anonymity", "stay"))[0])
    assert int(stay.sum()) == details["rows in both"] == 32
    assert evidence.single.tolist() == [2] * 32
    neighbour = stay.reshape(20, 2).flip(1).flatten()[stay]  # whether the other row of the pair is still there
    assert 0 < int(neighbour.sum()) < 32
    assert (evidence.intersected[~neighbour] == 1).all()
    assert details["rows alone after two releases"] == int((evidence.intersected == 1).sum())


@pytest.mark.parametrize("variant", ["within-class", "paper"])
def test_sets_are_those_that_pairs_of_rows_tell(variant: Variant, tmp_path: Path) -> None:
    bench = workbench(f"k-same[k=7,variant={variant}]", tmp_path)
    later, number = _later(bench)
    forms: list[dict[int, tuple[float, ...]]] = []
    for data, names in ((bench.private, range(len(bench.private))), (later, number.tolist())):
        release = KSameKey(KSame(7, variant)).release(data)
        forms.append({name: tuple(row.tolist()) for name, row in zip(names, release.samples, strict=False)})
    both = [row for row in range(len(bench.private)) if row in forms[0] and row in forms[1]]
    single = [sum(form == forms[0][row] for form in forms[0].values()) for row in both]
    shared = [sum(all(of[row] == of[other] for of in forms) for other in both) for row in both]
    evidence, _ = found(bench)
    assert evidence.single.tolist() == single
    assert evidence.intersected.tolist() == shared
    assert len(later) == len(bench.private)


@pytest.mark.parametrize("method", ["k-same[k=3]", "k-same[k=3,variant=paper]"])
def test_a_second_release_takes_from_sets_and_never_all(method: str, tmp_path: Path) -> None:
    evidence, details = found(workbench(method, tmp_path))
    assert (evidence.intersected <= evidence.single).all()
    assert int(evidence.single.min()) == 3
    assert int(evidence.intersected.min()) >= 1
    assert evidence.intersected.double().mean() < evidence.single.double().mean()
    assert details["rows alone after one release"] == 0
    assert details["fewest different images behind a form"] == 3
    assert evidence.subjects is None or len(evidence.subjects) == len(evidence.single)


def test_dropped_rows_are_not_counted(tmp_path: Path) -> None:
    bench = workbench("k-same[k=7,variant=paper]", tmp_path)
    n = len(bench.private)
    assert n % 7
    _, details = found(bench)
    assert details["rows in the first release"] == n - n % 7


@pytest.mark.parametrize("method", ["identity", "noise"])
def test_methods_with_a_form_for_every_row_have_no_sets(method: str, tmp_path: Path) -> None:
    bench = two_pairs(workbench(method, tmp_path))
    twice = bench.private.take(torch.arange(20).repeat(2))  # equal before, so that equal forms hide nothing
    for private in (bench.private, twice):
        with pytest.raises(NotApplicable, match="no two rows share a released form"):
            found(replace(bench, private=private, finding="not stored"))


def test_a_form_of_one_person_s_rows_counts_one_person(tmp_path: Path) -> None:
    bench = two_pairs(workbench("k-same[k=2]", tmp_path))
    one_each = replace(bench, private=replace(bench.private, subjects=torch.arange(40) // 2))
    assert found(one_each)[1]["fewest people behind a form"] == 1
    assert found(bench)[1]["fewest people behind a form"] == 2


def test_people_stay_or_leave_whole() -> None:
    people = torch.tensor([4, 4, 4, 9, 9, 1, 2, 2, 3, 3])
    data = Dataset("made", torch.rand(10, 2), None, people, (), False, True)
    stay, left = _by_people(data, 0.6, Secret.of_seed(0))
    assert sorted([*stay.tolist(), *left.tolist()]) == list(range(10))
    assert not set(people[stay].tolist()) & set(people[left].tolist())
    assert len(people[stay].unique()) == 3


def test_the_figure_is_the_harmonic_mean_after_two_releases() -> None:
    evidence = AnonymityEvidence(torch.tensor([2, 2, 4, 4, 4, 4]), torch.tensor([1, 1, 4, 4, 4, 4]), None, 0)
    score = AnonymitySet()(evidence)
    assert score.value == 6 / (2 + 4 / 4)
    assert score.parts["one release"].value == 6 / (2 / 2 + 4 / 4)
    assert score.parts["two releases"].parts["mean"].value == 3
    assert score.parts["two releases"].parts["minimum"].value == 1
    assert score.low is not None
    assert score.high is not None
    assert 1 <= score.low < score.value < score.high <= 6
    assert "33.3 % of the rows are alone" in score.note


def test_rows_of_one_person_are_drawn_together() -> None:
    sizes, people = torch.tensor([1, 1, 5, 5]).repeat_interleave(25), torch.arange(4).repeat_interleave(25)
    spreads = []
    for subjects in (None, people):
        score = AnonymitySet()(AnonymityEvidence(sizes, sizes, subjects, 0))
        assert score.low is not None
        assert score.high is not None
        spreads.append(score.high - score.low)
    assert spreads[1] > 2 * spreads[0]


def test_rows_that_do_not_fit_at_once_are_counted_by_their_digests(tmp_path: Path) -> None:
    bench = two_pairs(workbench("identity", tmp_path))
    private = bench.private.samples
    on_disk = Rows.of(private.numpy(), Budget(4 * private.nbytes // 2))
    with pytest.raises(NotApplicable, match="no two rows share a released form"):
        found(replace(bench, private=replace(bench.private, samples=on_disk)))
    assert _forms(on_disk).unique().numel() == len(private)
    assert torch.equal(_forms(Rows.of(private.repeat(2, 1).numpy(), on_disk.budget)), torch.arange(40).repeat(2))
