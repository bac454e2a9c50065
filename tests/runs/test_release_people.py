import math
from dataclasses import replace

import pytest
import torch
from made.board_records import record

from bench.results.person_text import person_texts
from bench.results.records import ClaimRecord
from bench.runs.release_people import people_behind, person_claim
from bench.statistics.epsilon_bounds import gaussian_epsilon
from bench.types import Dataset, PrivacyClaim, Release


def rows(images: int, subjects: list[int] | None) -> Dataset:
    samples = torch.arange(images, dtype=torch.float32).reshape(-1, 1, 1, 1).expand(-1, 1, 2, 2) / 255
    return Dataset(
        "set", samples.clone(), torch.zeros(images, 1), None if subjects is None else torch.tensor(subjects), ("f",),
        exclusive=False, shareable=True,
    )  # fmt: skip


def clusters(data: Dataset, cluster: list[int]) -> Release:
    number = torch.tensor(cluster)
    means = torch.stack([data.samples[number == each].mean(dim=0) for each in range(max(cluster) + 1)])
    return Release(means[number], data.labels, torch.arange(len(data)).repeat(2, 1).T)


def claim(epsilon: float | None, delta: float = 0.0, unit: str = "image", units: int = 1) -> ClaimRecord:
    return ClaimRecord(
        unit=unit, epsilon=epsilon, derived=None if epsilon is None else epsilon, delta=delta, assumptions="a",
        basis="b", units=units,
    )  # fmt: skip


def test_a_cluster_of_one_person_s_films_is_no_cluster_of_k_people() -> None:
    data = rows(6, [0, 0, 0, 1, 2, 3])
    found = people_behind(clusters(data, [0, 0, 0, 1, 1, 1]), data, k=3, claim=None)
    assert found.about == {"fewest people": 1, "fewest images": 3}
    (cause,) = found.causes
    assert cause.detail == "1 of 2 forms; at the least 1 people, 3 images"
    apart = people_behind(clusters(data, [0, 1, 1, 0, 0, 1]), data, k=3, claim=None)
    assert apart.about == {"fewest people": 2, "fewest images": 3}


@pytest.mark.parametrize("subjects", [None, [0, 1, 2, 3, 4, 5]])
def test_copies_of_one_image_are_one_image_and_one_person(subjects: list[int] | None) -> None:
    data = rows(6, subjects)
    data.samples[1] = data.samples[2] = data.samples[0]
    found = people_behind(clusters(data, [0, 0, 0, 1, 1, 1]), data, k=3, claim=None)
    assert found.about == {"fewest people": 1, "fewest images": 1}
    assert ("people are not named" in found.lines[0]) == (subjects is None)
    assert len(found.causes) == 1


def test_k_people_and_images_behind_each_form_are_no_cause() -> None:
    data = rows(6, [0, 1, 2, 3, 4, 5])
    found = people_behind(clusters(data, [0, 0, 0, 1, 1, 1]), data, k=3, claim=None)
    assert found.about == {"fewest people": 3, "fewest images": 3}
    assert not found.causes


def test_a_bound_per_image_is_composed_over_a_person_s_images() -> None:
    data = rows(6, [0, 0, 0, 0, 1, 2])
    apart = Release(data.samples + 1, data.labels, torch.arange(6).repeat(2, 1).T)
    found = people_behind(apart, data, k=None, claim=claim(2.0, 1e-6))
    assert found.about == {"epsilon per person": 8.0, "delta per person": pytest.approx(4e-6), "images per person": 4}
    assert not found.causes
    (cause,) = people_behind(apart, data, k=None, claim=claim(3.0)).causes
    assert cause.detail == "12 for 4 images"
    drawn = people_behind(Release(data.samples, data.labels, None), data, k=None, claim=claim(2.0, 1e-6))
    assert drawn.about is not None
    assert drawn.about["delta per person"] == pytest.approx(4e-6 * math.exp(6))


def test_one_image_a_person_leaves_nothing_to_compose() -> None:
    data = rows(3, [0, 1, 2])
    found = people_behind(Release(data.samples, None, None), data, k=None, claim=claim(2.0))
    assert found.lines == ("epsilon per person, each with one image: 2; delta 0",)
    people = [person_claim(claim(2.0), data, images, apart=False) for images in (1, 2)]
    made = [record("k-same", "needle", claim=claim(2.0).model_copy(update={"person": each})) for each in people]
    assert [list(person_texts([each])) for each in made] == [
        ["Per person, each with one image: ε 2, δ 0"],
        ["Per person, with up to 2 images: ε 4, δ 0 (by group privacy)"],
    ]
    void = people[1].model_copy(update={"epsilon": 110.0, "delta": 1.0})
    one = record("k-same", "needle", claim=claim(10.0).model_copy(update={"person": void}))
    (text,) = person_texts([one])
    assert text.endswith("no guarantee, for with ε 110, δ 1 anything may be told (by group privacy)")


def test_a_bound_per_pixel_is_composed_over_all_pixels() -> None:
    data = rows(4, None)
    found = people_behind(Release(data.samples, None, None), data, k=None, claim=claim(0.5, unit="pixel", units=2))
    assert found.about is not None
    assert found.about["epsilon per person"] == 1.0
    assert not found.causes


def test_no_finite_bound_stays_none() -> None:
    data = rows(4, None)
    found = people_behind(Release(data.samples, None, None), data, k=None, claim=claim(None))
    assert found.lines[0].endswith("no finite epsilon")


def gaussian(epsilon: float) -> PrivacyClaim:
    return PrivacyClaim("image", epsilon, 1e-5, "a", "b", family="Gaussian")


def test_gaussian_noise_for_several_images_keeps_the_claim_s_delta() -> None:
    found = person_claim(gaussian(1.0), rows(2, None), 3, apart=False)
    assert found.how == "by group privacy of Gaussian noise"
    assert found.delta == 1e-5
    size = next(mu / 1000 for mu in range(1, 2000) if gaussian_epsilon(mu / 1000, 1e-5) >= 1)
    assert found.epsilon == pytest.approx(gaussian_epsilon(3 * size, 1e-5), rel=0.01)
    plain = person_claim(replace(gaussian(1.0), family="any"), rows(2, None), 3, apart=False)
    assert (plain.epsilon, plain.delta) == (3.0, pytest.approx(3e-5 * math.exp(2)))


@pytest.mark.parametrize(("epsilon", "images"), [(300.0, 2), (20.0, 50)])
def test_a_gaussian_size_beyond_the_solver_falls_back_to_group_privacy(epsilon: float, images: int) -> None:
    found = person_claim(gaussian(epsilon), rows(2, None), images, apart=False)
    assert (found.how, found.epsilon) == ("by group privacy", epsilon * images)
