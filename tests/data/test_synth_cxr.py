"""Synthetic chest X-rays: what a film is made of, and what must not change it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.contract.preset import PRESETS
from bench.data.sets.synth_cxr import CLINIC, WARD, SynthCXR, SynthMIMIC, SynthNIH
from bench.data.splits import SHARES
from bench.data.synthetic.anatomy import FINDINGS, Person, Study, count_studies, draw_person, draw_study
from bench.data.synthetic.attenuation import chest, place, sample
from bench.data.synthetic.film import attenuation, draw


@pytest.fixture(scope="module")
def ward():
    return SynthMIMIC(images=300).scan((), 32)


@pytest.fixture(scope="module")
def studies():
    """The first study of 400 persons of each hospital."""
    return [[draw_study(h, draw_person(h, 0, n), 0, n, 0) for n in range(400)] for h in (CLINIC, WARD)]


def clear(person: Person, study: Study, **changes: float) -> Study:
    """The study upright and without findings, but for `changes`."""
    healthy = replace(
        study, edema=0.0, consolidation=0.0, atelectasis=0.0, ratio=0.45, leads=(), angle=0.0, shift_x=0.0, yaw=0.0
    )
    return replace(healthy, **changes)


def example(number: int = 0) -> tuple[Person, Study]:
    person = draw_person(WARD, 0, number)
    return person, draw_study(WARD, person, 0, number, 0)


def area(image: np.ndarray, factor: int) -> np.ndarray:
    side = len(image) // factor
    return image.reshape(side, factor, side, factor).astype(float).mean(axis=(1, 3))


def test_a_scan_is_what_the_harness_expects():
    scan = SynthCXR(images=7).scan((), None)
    assert scan.samples.shape == (7, 1, 64, 64)
    assert scan.samples.dtype == np.uint8
    assert scan.labels.shape == (7, 4)
    assert scan.labels.dtype == np.float32
    assert scan.findings == FINDINGS == ("Edema", "Consolidation", "Cardiomegaly", "Atelectasis")
    assert len(scan.subjects) == 7
    assert not scan.exclusive


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    first, again, other = (SynthNIH(images=12, seed=seed).scan((), 48) for seed in (3, 3, 4))
    assert np.array_equal(first.samples, again.samples)
    assert np.array_equal(first.labels, again.labels, equal_nan=True)
    assert not (first.samples == other.samples).all(axis=(1, 2, 3)).any()


def test_a_film_does_not_depend_on_how_many_are_drawn():
    few, many = SynthNIH(images=5).scan((), 40), SynthNIH(images=23).scan((), 40)
    assert np.array_equal(few.samples, many.samples[:5])
    assert np.array_equal(few.labels, many.labels[:5], equal_nan=True)
    assert list(few.subjects) == list(many.subjects[:5])


def test_a_film_can_be_drawn_by_itself():
    scan = SynthMIMIC(images=30, seed=2).scan((), 32)
    row = scan.subjects.index("synth-mimic-000004")
    person = draw_person(WARD, 2, 4)
    assert np.array_equal(scan.samples[row, 0], draw(person, draw_study(WARD, person, 2, 4, 0), 32))


@pytest.mark.parametrize("large", [128, 256])
def test_a_small_film_is_the_large_one_seen_from_further_away(large):
    for number in range(6):
        person, study = example(number)
        small, seen = draw(person, study, 64).astype(float), area(draw(person, study, large), large // 64)
        assert np.abs(small - seen).mean() < 4.0
        assert np.corrcoef(small.ravel(), seen.ravel())[0, 1] > 0.99


def test_a_size_below_32_is_refused_with_the_size():
    with pytest.raises(ValueError, match="at least 32 pixels, got 31"):
        SynthNIH(images=1).scan((), 31)
    assert SynthNIH(images=1).scan((), 33).samples.shape == (1, 1, 33, 33)


@pytest.mark.parametrize(("field", "value"), [("images", 0), ("seed", -1)])
def test_senseless_parameters_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be at least .*, got {value}"):
        SynthNIH(**{field: value})


def test_the_two_hospitals_share_no_person(ward):
    clinic = SynthNIH(images=100).scan((), 32)
    assert not set(clinic.subjects) & set(ward.subjects)
    for number in range(20):
        assert not np.array_equal(draw_person(CLINIC, 0, number).texture, draw_person(WARD, 0, number).texture)
    assert SynthNIH.origin != SynthMIMIC.origin
    assert (SynthCXR.public, SynthMIMIC.public, SynthNIH.public) == ("synth-nih", "synth-nih", "synth-mimic")


def test_the_pair_is_the_private_hospital():
    pair, private = SynthCXR(images=6).scan((), 32), SynthMIMIC(images=6).scan((), 32)
    assert np.array_equal(pair.samples, private.samples)
    assert SynthCXR.origin == SynthMIMIC.origin


def test_the_hospitals_expose_their_films_differently(ward):
    clinic = SynthNIH(images=150).scan((), 32)
    spread = [scan.samples[:, 0, 8:24, 4:28].mean(axis=(1, 2)) for scan in (clinic, ward)]
    pooled = np.sqrt((spread[0].var() + spread[1].var()) / 2)
    assert abs(spread[0].mean() - spread[1].mean()) > 0.25 * pooled


def test_persons_have_one_to_six_studies():
    counts = [count_studies(WARD, 0, number) for number in range(300)]
    assert set(counts) == {1, 2, 3, 4, 5, 6}


def test_findings_are_as_frequent_as_promised(studies):
    labels = np.array([[study.labels for study in hospital] for hospital in studies])
    prevalence = np.nanmean(labels, axis=1)
    assert ((prevalence > 0.20) & (prevalence < 0.38)).all(), prevalence
    unknown = np.isnan(labels).mean(axis=1)
    assert ((unknown > 0.03) & (unknown < 0.10)).all(), unknown


def test_edema_comes_with_large_hearts(ward):
    known = ~np.isnan(ward.labels[:, [0, 2]]).any(axis=1)
    assert np.corrcoef(ward.labels[known, 0], ward.labels[known, 2])[0, 1] > 0.15


def test_cardiomegaly_is_a_heart_wider_than_half_the_thorax(studies):
    for study in studies[1]:
        label = study.labels[2]
        assert np.isnan(label) or label == (study.ratio > 0.5)


@pytest.mark.parametrize("ratio", [0.40, 0.50, 0.60])
def test_the_drawn_heart_has_the_ratio_it_says(ratio):
    for number in range(5):
        person, study = example(number)
        study = clear(person, study, ratio=ratio)
        plane = place(512, shift_x=0.0, shift_y=0.0, angle=0.0, zoom=1.0)
        space = chest(plane, replace(person, asymmetry=0.0), study)
        columns = (space.heart[150:400] > 0.5).any(axis=0)
        assert columns.mean() * 2 / (2 * person.width) == pytest.approx(ratio, abs=0.01)


def test_each_finding_makes_its_part_of_the_lungs_denser():
    for number in range(8):
        person, study = example(number)
        plain, space = attenuation(person, clear(person, study), 64)
        lungs = space.air * (1 - space.heart) > 0.8
        for finding in ("edema", "consolidation"):
            sick, _ = attenuation(person, clear(person, study, **{finding: 0.8}), 64)
            assert (sick - plain)[lungs].mean() > 0.005
            assert (sick - plain)[lungs].min() > -0.06
            assert np.abs(sick - plain)[space.air == 0].max() < 1e-6


def test_edema_is_on_both_sides_and_consolidation_is_focal():
    for number in range(8):
        person, study = example(number)
        study = clear(person, replace(study, second=None))
        plain, space = attenuation(person, study, 64)
        shares = []
        for finding in ("edema", "consolidation"):
            change = attenuation(person, replace(study, **{finding: 0.8}), 64)[0] - plain
            right, left = (change[(space.side == side)].sum() for side in (-1, 1))
            shares.append(min(right, left) / max(right, left))
        assert shares[0] > 0.4
        assert shares[1] < 0.2


def test_atelectasis_raises_the_diaphragm_and_draws_the_heart_to_its_side():
    plane = place(64, shift_x=0.0, shift_y=0.0, angle=0.0, zoom=1.0)
    for number in range(8):
        person, study = example(number)
        before, after = (chest(plane, person, clear(person, study, atelectasis=value)) for value in (0.0, 0.8))
        sick = before.side == study.side
        assert (after.dome < before.dome)[sick].all()
        assert np.array_equal(after.dome[~sick], before.dome[~sick])
        assert (after.shift - before.shift) * study.side > 0.02


def test_a_person_is_recognised_in_pixels_but_not_trivially(ward):
    flat = ward.samples.reshape(len(ward.samples), -1).astype(np.float64)
    flat -= flat.mean(axis=0)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    subjects = np.array(ward.subjects)
    upper = np.triu_indices(len(flat), 1)
    scores, same = (flat @ flat.T)[upper], (subjects[:, None] == subjects[None, :])[upper]
    ranks = np.empty(len(scores))
    ranks[scores.argsort()] = np.arange(1, len(scores) + 1)
    positives = int(same.sum())
    auc = (ranks[same].sum() - positives * (positives + 1) / 2) / (positives * (len(same) - positives))
    assert 0.70 < auc < 0.92


@pytest.mark.parametrize("device", ["pacemaker", "port", "wires"])
def test_devices_are_brighter_than_the_chest_they_lie_in(device):
    person, study = example()
    study = clear(person, study)
    bare, metal = (attenuation(replace(person, device=kind), study, 128)[0] for kind in ("none", device))
    assert (metal - bare).min() > -1e-6
    assert 0.0005 < ((metal - bare) > 0.1).mean() < 0.05


def test_the_collimator_blackens_the_rim():
    person, study = example()
    film = draw(person, replace(study, collimator=(0.9, 0.9, 0.9, 0.9)), 64)
    assert film[:3].max() == film[-3:].max() == film[:, :3].max() == film[:, -3:].max() == 0
    assert film[3:-3, 3:-3].max() > 200


@pytest.mark.parametrize("name", SynthCXR.presets)
def test_presets_draw_enough_for_their_rows_and_not_much_more(name):
    preset, drawn = PRESETS[name], SynthCXR.presets[name]["images"]
    needed = max(preset.private / SHARES["private"], preset.public)
    assert needed <= drawn <= 1.25 * needed


def test_a_grid_of_values_spans_the_film_by_column_and_row() -> None:
    grid = np.arange(20, dtype=np.float32).reshape(4, 5)[:, :4].copy()  # rows 0 5 10 15, columns 0 1 2 3
    nodes = np.linspace(-1.3, 1.3, 4, dtype=np.float32)
    x, y = np.meshgrid(nodes, nodes)
    np.testing.assert_allclose(sample(grid, x, y), grid, atol=0.02)
    halfway = sample(grid, np.float32([0.0]), np.float32([nodes[1]]))
    np.testing.assert_allclose(halfway, [6.5], atol=0.02)
