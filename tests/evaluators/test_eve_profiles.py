"""Profiles of Eve: which images she holds, who is a correct pair, and what verdicts then say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
import torch
from made.board_records import dataset as dataset_record
from made.cells import choice, opened
from torch import Tensor

from attacks.anchors import Anchors
from attacks.dcr import DCR
from attacks.invariants import Invariants
from attacks.leverage import Leverage
from attacks.nearest_neighbour import NearestNeighbour
from attacks.relational import Relational
from bench.contract.eve_profile import PROFILES, OtherStudy
from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.data.candidates import seen_by
from bench.data.splits import Splits
from bench.evaluators import granted_pairs
from bench.evaluators.membership import Membership
from bench.evaluators.reidentification import Reidentification
from bench.plugins.spec import UsageError
from bench.runs.judge import judge
from bench.seeds import generator
from bench.types import Attack, Attacker, Attributes, Dataset, Key, NotApplicable, PairScores, Release, View
from bench.workbench.choice import collection
from bench.workbench.workbench import Workbench
from leaderboard.reach import reach, shipped
from metrics.pair_roc import PatientReidAUC, ReidAUC
from metrics.ranks import Top1

OTHERS = ["other-study", "superset", "subset"]
"""Profiles that cut the private rows."""
KNOWING = ["known-pairs[k=1]", "known-pairs[k=5]", "known-pairs[k=20]", "oracle[queries=20]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


def rows_of(samples: Tensor) -> list[bytes]:
    return [row.numpy().tobytes() for row in samples]


def films(folder: Path, eve: str, method: str = "identity") -> Workbench:
    return opened(folder, method, "synth-cxr", eve=eve)


@pytest.mark.parametrize("eve", OTHERS)
def test_a_correct_pair_is_what_the_profile_says(folder: Path, eve: str) -> None:
    whole, bench = films(folder, "same-image"), films(folder, eve)
    held, private = bench.held.rows, bench.private
    assert held.subjects is not None
    assert private.subjects is not None
    first, second = bench.held.pairs.T
    assert torch.equal(held.subjects[first], private.subjects[second])
    names, released = rows_of(held.samples), rows_of(private.samples)
    assert {*names, *released} <= {*rows_of(whole.private.samples)}
    same = [names[a] == released[b] for a, b in bench.held.pairs.tolist()]
    assert all(same) if PROFILES[eve].same_image else not any(same)
    assert len(torch.unique(second)) == len(second)


@pytest.mark.parametrize("eve", OTHERS)
def test_every_released_image_of_a_held_one_or_person_is_in_a_pair(folder: Path, eve: str) -> None:
    bench = films(folder, eve)
    held, private = bench.held.rows, bench.private
    if PROFILES[eve].same_image:
        expected = {*rows_of(held.samples)} & {*rows_of(private.samples)}
    else:
        expected = {*rows_of(private.samples)}
        assert held.subjects is not None
        assert len(torch.unique(held.subjects)) == len(held)
    assert {rows_of(private.samples)[row] for row in bench.held.pairs[:, 1].tolist()} == expected


def test_a_superset_holds_all_released_images_and_a_subset_half_of_the_people(folder: Path) -> None:
    more, fewer = films(folder, "superset"), films(folder, "subset")
    assert {*rows_of(more.private.samples)} < {*rows_of(more.held.rows.samples)}
    assert {*rows_of(fewer.held.rows.samples)} < {*rows_of(fewer.private.samples)}
    people = [len(torch.unique(part.subjects)) for part in (more.private, more.held.rows) if part.subjects is not None]
    assert people[0] == people[1] // 2


def test_labels_attributes_and_counts_follow_the_rows(folder: Path) -> None:
    bench = films(folder, "other-study")
    assert bench.natural is None or len(bench.natural) == len(bench.private)
    assert bench.record.rows["private"] == len(bench.private)
    assert bench.record.rows["candidates"] == len(bench.held.rows)
    assert bench.record.name == "synth-cxr under other-study"
    assert any("have a correct pair" in note for note in bench.record.notes)


def test_people_are_the_same_for_every_method_and_another_seed_draws_others(folder: Path) -> None:
    one, other = films(folder, "other-study"), films(folder, "other-study", "noise")
    assert torch.equal(one.held.rows.samples, other.held.rows.samples)
    again = opened(folder, "identity", "synth-cxr", eve="other-study", seed=1)
    assert {*rows_of(again.held.rows.samples)} != {*rows_of(one.held.rows.samples)}


@pytest.mark.parametrize("eve", OTHERS)
def test_a_method_is_fitted_once_for_all_profiles(folder: Path, eve: str) -> None:
    stored = []
    for bench in (films(folder, "same-image", "k-same"), films(folder, eve, "k-same")):
        bench.fitted()
        stored.append(
            sorted(
                each.name for each in (folder / "results" / "artefacts" / "schemes").iterdir() if "." not in each.name
            )
        )
    assert len(stored[0]) == 1
    assert stored[0] == stored[1]


@pytest.mark.parametrize("eve", OTHERS)
def test_raw_images_are_found_and_noise_is_not(folder: Path, eve: str) -> None:
    for method in ("identity", "noise"):
        found = Reidentification(NearestNeighbour()).measure(films(folder, eve, method))
        metric = ReidAUC() if PROFILES[eve].same_image else PatientReidAUC()
        area = judge(cast(Any, metric), found.evidence)
        assert found.threat_model["profile"].startswith(eve)
        assert area.p is not None
        assert (area.p < 0.005) == (method == "identity")
        if method == "identity" and PROFILES[eve].same_image:
            assert area.value > 0.99


def test_data_without_people_of_several_images_say_so(folder: Path) -> None:
    with pytest.raises(DataError, match="other-study needs at least 10 people with several images, and digits does"):
        opened(folder, eve="other-study")


def test_an_unknown_profile_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown profile 'other-film'; Known: known-pairs, oracle, other-study"):
        choice(eve="other-film")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("known-pairs[k=0]", "k must be at least 1, got 0"),
        ("known-pairs[k=1,5,20]", "cannot read parameter '5'"),
        ("known-pairs[k=few]", r"known-pairs\[k\] must be int, got 'few'"),
        ("known-pairs[pairs=3]", "known-pairs has no parameter 'pairs'"),
        ("oracle[queries=0]", "queries must be at least 1, got 0"),
        ("other-study[same=age]", r"other-study\[same\] must be 'view' or 'finding' or 'view\+finding' or none"),
        ("same-image[k=3]", "same-image has no parameter 'k'"),
        ("public-only:3", "public-only takes no argument"),
    ],
)
def test_a_wrong_parameter_of_a_profile_is_a_usage_error(written: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choice(eve=written)


def test_two_spellings_of_a_profile_are_one_choice_and_one_address() -> None:
    assert choice(eve="known-pairs") == choice(eve="known-pairs[k=5]") == choice(eve="known-pairs:5")
    assert choice(eve="other-study[same=none]").eve == "other-study"
    data = dataset_record("digits")
    assert collection(choice().shown(), data) == collection({"dataset": "digits", "preset": "smoke"}, data)
    assert collection(choice(eve="oracle").shown(), data) != collection(choice().shown(), data)


def test_more_pairs_than_a_release_has_people_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match=r"known-pairs\[k=400\] needs at least 410 people, of whom 10 are scored"):
        opened(folder, eve="known-pairs[k=400]")


def test_known_people_are_of_the_release_secret_and_scored_in_no_figure(folder: Path) -> None:
    bench, other = (films(folder, "known-pairs[k=5]", method) for method in ("identity", "noise"))
    held, known = bench.held, bench.held.known
    assert known is not None
    assert other.held.known is not None
    assert not torch.equal(known, other.held.known)  # drawn by the secret of a row
    people = bench.private.subjects
    assert people is not None
    assert held.rows.subjects is not None
    assert len(torch.unique(people[known])) == len(known) == 5
    assert not torch.isin(people[known], held.rows.subjects).any()
    assert torch.equal(held.rows.samples, bench.private.samples[held.pairs[:, 1]])
    assert bench.record.rows["candidates"] == len(held.rows) == len(other.held.rows) < bench.record.rows["private"]
    assert len(bench.private) == len(films(folder, "same-image").private)  # they are released


@pytest.mark.parametrize("eve", KNOWING)
def test_eve_names_raw_images_by_pairs_that_she_knows_and_noise_never(folder: Path, eve: str) -> None:
    for method in ("identity", "noise", "hidden-control"):
        found = Reidentification(Anchors(keys=2)).measure(films(folder, eve, method))
        area, first = judge(cast(Any, PatientReidAUC()), found.evidence), judge(cast(Any, Top1()), found.evidence)
        assert found.threat_model["profile"].startswith(eve)
        assert area.p is not None
        assert (area.p < 0.001) == (method == "identity")
        assert (first.value > 0.95) == (method == "identity")


def test_anchors_read_no_release_without_pairs(folder: Path) -> None:
    with pytest.raises(NotApplicable, match="the profile same-image grants none"):
        Reidentification(Anchors(keys=2)).measure(films(folder, "same-image"))


@dataclass(frozen=True)
class Watching(NearestNeighbour):
    """Notes the views and pairs that it is given, and may ask for images of its own."""

    name: ClassVar[str] = "watching"
    seen: ClassVar[list[tuple[View, Release, Dataset | None, Release | None]]] = []
    asks: ClassVar[Callable[[View], Tensor | None]] = lambda view: None

    def fit(self, view: View, seed: int) -> Attacker:
        plain, asked = super().fit(view, seed), type(self).asks(view)

        class Watcher(Attacker):
            def score(self, sealed: Release) -> PairScores:
                Watching.seen.append((view, sealed, None, None))
                return plain.score(sealed)

            def score_knowing(self, sealed: Release, raw: Dataset, released: Release) -> PairScores:
                Watching.seen.append((view, sealed, raw, released))
                return plain.score(sealed)

            def queries(self, budget: int) -> Tensor | None:
                return asked

        return Watcher()


@pytest.fixture
def watching() -> Watching:
    Watching.seen.clear()
    Watching.asks = lambda view: None
    return Watching()


@pytest.mark.parametrize("method", ["identity", "dauntless"])
def test_known_pairs_are_of_each_key_and_the_rest_of_the_release_is_without_them(
    folder: Path, watching: Watching, method: str
) -> None:
    bench = films(folder, "known-pairs[k=5]", method)
    Reidentification(watching).measure(bench)
    assert len(Watching.seen) == 1 + bench.preset.keys  # a key of Eve's own first
    for view, sealed, raw, released in Watching.seen[1:]:
        assert raw is not None
        assert released is not None
        assert view.known is not None
        assert torch.equal(raw.samples, view.known.samples)
        assert raw.subjects is None
        assert raw.labels is None
        assert not {*rows_of(released.samples)} & {*rows_of(sealed.samples)}
        assert len(sealed) == len(view.candidates)
    for number, (_, _, raw, released) in enumerate(Watching.seen[1:]):
        assert raw is not None
        assert released is not None
        key = bench.key(bench.scheme(), number)
        assert torch.equal(key.release(replace(raw, labels=None)).samples, released.samples)


def test_an_oracle_answers_under_each_key_within_its_budget(folder: Path, watching: Watching) -> None:
    bench = films(folder, "oracle[queries=7]", "dauntless")
    Reidentification(watching).measure(bench)
    for number, (view, _, raw, released) in enumerate(Watching.seen[1:]):
        assert raw is not None
        assert released is not None
        assert torch.equal(raw.samples, view.control.samples[:7])
        assert torch.allclose(bench.key(bench.scheme(), number).query(raw.samples), released.samples)


def test_a_key_cannot_tell_the_queries_of_an_oracle_by_their_number(
    folder: Path, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, plain = [], granted_pairs.queried

    def noted(bench: Workbench, key: Key, data: Dataset) -> Tensor:
        asked.append(len(data))
        return plain(bench, key, data)

    monkeypatch.setattr(granted_pairs, "queried", noted)
    bench = films(folder, "oracle[queries=70]", "dauntless")
    Watching.asks = lambda view: view.candidates.samples[:70]
    Reidentification(watching).measure(bench)
    assert len(bench.test) < 70
    assert asked == [len(bench.test)] * 2 * (1 + bench.preset.keys)
    for number, (_, _, raw, released) in enumerate(Watching.seen[1:]):
        assert raw is not None
        assert released is not None
        assert torch.allclose(bench.key(bench.scheme(), number).query(raw.samples), released.samples)


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        (lambda view: view.control.samples[:8], "may ask for 1 to 7 float32 images"),
        (lambda view: view.control.samples[:0], "may ask for 1 to 7 float32 images"),
        (lambda view: view.control.samples[:7].double(), "may ask for 1 to 7 float32 images"),
        (lambda view: view.control.samples[:7].flatten(1), "may ask for 1 to 7 float32 images"),
        (lambda view: view.control.samples[:7] / 0, "must be finite"),
    ],
)
def test_an_attacker_cannot_ask_for_more_or_other_than_images(
    folder: Path, watching: Watching, asks: Callable[[View], Tensor], message: str
) -> None:
    Watching.asks = asks
    with pytest.raises(ContractError, match=message):
        Reidentification(watching).measure(films(folder, "oracle[queries=7]", "dauntless"))


def test_a_method_without_queries_has_no_oracle(folder: Path) -> None:
    with pytest.raises(NotApplicable, match=r"an oracle answers by Key\.query, and k-same has none of its own"):
        Reidentification(Anchors(keys=2)).measure(opened(folder, "k-same", eve="oracle"))


@pytest.mark.parametrize(
    "attack", [NearestNeighbour(), Relational(keys=2, held_out=1), Leverage(keys=2), Invariants(keys=2)]
)
def test_two_releases_of_raw_images_are_linked_and_of_noise_are_not(folder: Path, attack: Attack) -> None:
    for method in ("identity", "noise"):
        bench = opened(folder, method, eve="two-releases")
        found = Reidentification(attack).measure(bench)
        area = judge(cast(Any, ReidAUC()), found.evidence)
        assert found.threat_model["candidates"] == f"{len(bench.private)} rows of another release"
        assert area.p is not None
        assert (area.p < 0.001) == (method == "identity")


def test_two_releases_are_under_two_keys_and_no_raw_image_is_shown(folder: Path, watching: Watching) -> None:
    bench = films(folder, "two-releases", "dauntless")
    with pytest.raises(NotApplicable, match="under two-releases Eve has none"):
        Reidentification(watching_without_relinks()).measure(bench)
    with pytest.raises(NotApplicable, match="under two-releases she holds none"):
        Membership(DCR()).measure(bench)
    Reidentification(watching).measure(bench)
    assert len(Watching.seen) == bench.preset.keys
    earlier = [view.candidates.samples for view, _, _, _ in Watching.seen]
    assert not torch.equal(*earlier)
    for view, sealed, _, _ in Watching.seen:
        assert view.relinks
        assert view.candidates.samples.shape == sealed.samples.shape
        assert view.candidates.subjects is None
        assert not {*rows_of(view.candidates.samples)} & {*rows_of(sealed.samples)}


@pytest.mark.parametrize(
    "attack", [NearestNeighbour(), Relational(keys=2, held_out=1), Leverage(keys=2), Invariants(keys=2)]
)
def test_releases_of_two_methods_are_linked_unless_one_hides_all(folder: Path, attack: Attack) -> None:
    for other in ("blur", "noise"):
        bench = opened(folder, "identity", eve=f"two-releases[method={other}]")
        found = Reidentification(attack).measure(bench)
        area = judge(cast(Any, ReidAUC()), found.evidence)
        assert f"under a key of {bench.cell.earlier.method}" in found.threat_model["profile"]
        assert area.p is not None
        assert (area.p < 0.001) == (other != "noise")


def test_the_earlier_release_is_that_of_the_other_method_and_its_scheme_is_known(
    folder: Path, watching: Watching
) -> None:
    bench = films(folder, "two-releases[method=dp-simple[scale=1]]", "dauntless")
    with bench.earlier_bench() as other:
        assert str(other.cell.method) == "dp-simple[scale=1.0]"
        rows = [other.earlier(other.scheme(), number).samples for number in range(bench.preset.keys)]
    Reidentification(watching).measure(bench)
    for (view, sealed, _, _), released in zip(Watching.seen, rows, strict=True):
        assert {*rows_of(view.candidates.samples)} == {*rows_of(released)}
        assert view.earlier is view.other is not None
        assert type(view.earlier) is not type(view.scheme)
        assert not {*rows_of(view.candidates.samples)} & {*rows_of(sealed.samples)}


def test_the_other_method_is_one_of_this_project_without_files(folder: Path) -> None:
    with pytest.raises(UsageError, match="unknown method 'nonsense'"):
        films(folder, "two-releases[method=nonsense]")
    with pytest.raises(UsageError, match="takes a method of this project without files, got syfer"):
        films(folder, f"two-releases[method=syfer[weights={folder},weights_sha256=000000000000]]")
    with pytest.raises(NotApplicable, match="nothing is released: dp-sgd"):
        Reidentification(NearestNeighbour()).measure(films(folder, "two-releases[method=dp-sgd]"))


def watching_without_relinks() -> Attack:
    class Blind(Watching):
        name: ClassVar[str] = "blind"
        relinks: ClassVar[bool] = False

    return Blind()


def test_a_profile_without_images_names_people_in_no_release(folder: Path) -> None:
    bench = films(folder, "public-only")
    assert len(bench.held.rows) == len(bench.held.pairs) == 0
    assert "candidates" not in bench.record.rows
    with pytest.raises(NotApplicable, match="under public-only she holds none"):
        Reidentification(NearestNeighbour()).measure(bench)
    with pytest.raises(NotApplicable, match="membership asks of images that Eve holds"):
        Membership(DCR()).measure(bench)


@pytest.mark.parametrize("same", ["view", "finding", "view+finding"])
def test_a_harder_cut_has_one_view_and_one_finding(same: str) -> None:
    splits = several_views()
    cut, notes = seen_by(OtherStudy(cast(Any, same)), splits, 0)
    candidates = cut.candidates
    assert candidates is not None
    assert candidates.attributes is not None
    for rows, told in ((cut.private, cut.attributes["private"]), (candidates.rows, candidates.attributes)):
        assert rows.labels is not None
        assert (len(torch.unique(told.codes)) == 1) == ("view" in same)
        assert (len(torch.unique(rows.labels)) == 1) == ("finding" in same)
    assert candidates.rows.subjects is not None
    people = candidates.rows.subjects
    assert len(torch.unique(people)) == len(people) >= 10
    assert notes[1].startswith("all images are alike (")
    assert notes[2].startswith(f"{60 - len(people)} people with fewer than two such private images are left out")


def test_a_harder_cut_needs_views_and_findings(folder: Path) -> None:
    splits = several_views()
    with pytest.raises(DataError, match="compares views, and made names none"):
        seen_by(OtherStudy("view"), replace(splits, attributes={}), 0)
    bare = replace(splits.private, labels=None, findings=())
    with pytest.raises(DataError, match="compares findings, and made has none"):
        seen_by(OtherStudy("finding"), replace(splits, private=bare), 0)
    unknown = Attributes(("view",), (("AP", "PA"),), torch.full((len(bare), 1), -1))
    with pytest.raises(DataError, match="has 0 of them among its private rows"):
        seen_by(OtherStudy("view"), replace(splits, attributes={"private": unknown}), 0)


def several_views() -> Splits:
    """60 people with six images each, of two views and one finding."""
    rows, random = 360, generator(0)
    codes = torch.randint(2, (rows, 1), generator=random)
    labels = torch.randint(2, (rows, 1), generator=random).float()
    images = torch.rand(rows, 1, 4, 4, generator=random)
    private = Dataset("made", images, labels, torch.arange(rows) // 6, ("yes",), False, True)
    told = Attributes(("view",), (("AP", "PA"),), codes)
    places = {"private": torch.arange(rows).numpy()}
    return Splits(private, private, private, private, places, 0, attributes={"private": told})


def test_the_reach_under_a_profile_counts_no_step_of_another() -> None:
    first = shipped()[0]
    known = [first, first.model_copy(update={"eve": "oracle[queries=9]"})]
    for eve in ("same-image", "oracle[queries=9]", "two-releases"):
        rungs = reach(first.attack, first.preset, first.dataset, known, eve)
        measured = [rung.step.eve for rung in rungs if rung.step is not None]
        assert measured == ([] if eve == "two-releases" else [eve])


@pytest.mark.parametrize("eve", ["same-image", "other-study", *(each for each in KNOWING if "oracle" not in each)])
def test_a_method_that_counts_people_is_attacked_under_every_profile(folder: Path, eve: str) -> None:
    """Eve's own release, by which the sign of scores is checked, is of people, too."""
    bench = films(folder, eve, "k-same[k=2,unit=person,small_classes=suppress]")
    found = Reidentification(NearestNeighbour()).measure(bench)
    assert judge(cast(Any, PatientReidAUC()), found.evidence).value > 0.5
