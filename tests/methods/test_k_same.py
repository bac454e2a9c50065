from dataclasses import replace

import pytest
import torch
from made.datasets import unlabelled
from made.dense_scores import DenseScores, diagonal

from bench.pairs.sweep import count
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from methods.k_same import KSame
from metrics.guesswork import guesswork
from metrics.pair_roc import reid_auc


def data(n, shape=(6,), *, positives=0.4, seed=0):
    source = torch.Generator().manual_seed(seed)
    samples = torch.rand(n, *shape, generator=source)
    labels = (torch.rand(n, 1, generator=source) < positives).float()
    return Dataset("made", samples, labels, None, ("finding",), False, True)


def released(private, **choices):
    return KSame(**choices).fit(private, 0).sample_key(Secret.of_seed(1)).release(private)


def clusters(release):
    """Cluster numbers of the released rows, and clusters' sizes, by what is equal in the release."""
    return torch.unique(release.samples.flatten(1), dim=0, return_inverse=True, return_counts=True)[1:]


@pytest.mark.parametrize("shape", [(6,), (1, 8, 8), (3, 4, 5)])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_every_released_row_is_the_mean_of_at_least_k_and_fewer_than_2k_rows_of_its_class(shape, k):
    private = data(113, shape)
    release = released(private, k=k)
    assert release.samples.shape == private.samples.shape
    assert torch.equal(release.labels, private.labels)
    assert torch.equal(release.links, diagonal(113))
    number, sizes = clusters(release)
    assert sizes.amin() >= k
    assert sizes.amax() < 2 * k
    for each in range(len(sizes)):
        rows = number == each
        mean = private.samples[rows].double().mean(dim=0).float()
        assert torch.equal(release.samples[rows], mean.expand_as(release.samples[rows]))
        assert len(private.labels[rows].unique()) == 1


@pytest.mark.parametrize("n", [110, 113])
def test_paper_drops_the_last_rows_and_makes_clusters_of_exactly_k_across_classes(n):
    private = data(n)
    release = released(private, k=5, variant="paper")
    assert len(release) == 110
    assert torch.equal(release.labels, private.labels[:110])
    assert torch.equal(release.links, diagonal(110))
    number, sizes = clusters(release)
    assert sizes.tolist() == [5] * 22
    mixed = [len(private.labels[:110][number == each].unique()) for each in range(22)]
    assert max(mixed) == 2
    assert torch.equal(released(private.take(torch.arange(110)), k=5, variant="paper").samples, release.samples)


def test_means_are_taken_along_the_clusters_of_hand_made_rows():
    samples = torch.tensor([[0.0], [20.0], [1.0], [30.0], [3.0], [4.0]])
    private = unlabelled(samples)
    assert released(private, k=2).samples.flatten().tolist() == [0.5, 25.0, 0.5, 25.0, 3.5, 3.5]


def test_classes_are_rows_with_equal_labels_and_a_withheld_label_is_one_of_them():
    private = data(90)
    labels = torch.cat((private.labels, private.labels.roll(1)), dim=1)
    labels[:20, 1] = torch.nan
    private = Dataset("made", private.samples, labels, None, ("a", "b"), False, True)
    release = released(private, k=3)
    number, sizes = clusters(release)
    for each in range(len(sizes)):
        assert len(torch.unique(labels[number == each].nan_to_num(-1), dim=0)) == 1
    assert torch.equal(release.labels.nan_to_num(-1), labels.nan_to_num(-1))


def imbalanced():
    """2,064 rows of seven classes as uneven as OCTDL's, the least of 13 rows."""
    sizes = [752, 400, 350, 250, 199, 100, 13]
    labels = torch.eye(7).repeat_interleave(torch.tensor(sizes), dim=0)
    source = torch.Generator().manual_seed(0)
    order = torch.randperm(2064, generator=source)
    names = tuple("abcdefg")
    return Dataset("made", torch.randn(2064, 8, generator=source), labels[order], None, names, True, True)


def test_a_class_of_13_among_2064_is_refused_at_15_by_name_and_kept_whole_at_10():
    private = imbalanced()
    with pytest.raises(NotApplicable, match=r"k = 15 .* 1 of the 7 classes have fewer: g has 13; choose a smaller k"):
        released(private, k=15)
    release = released(private, k=10)
    assert torch.equal(release.labels.sum(dim=0), private.labels.sum(dim=0))
    least = private.labels[:, 6] == 1
    mean = private.samples[least].double().mean(dim=0).float()
    assert torch.equal(release.samples[least], mean.expand(13, 8))


def test_a_small_class_of_findings_is_named_by_its_values():
    labels = torch.zeros(12, 2)
    labels[3] = torch.tensor([1.0, torch.nan])
    private = Dataset("made", torch.rand(12, 3), labels, None, ("edema", "fracture"), False, True)
    with pytest.raises(NotApplicable, match="edema = 1, fracture unknown has 1; choose a smaller k, variant=paper"):
        released(private, k=2)


@pytest.mark.parametrize("k", [2, 5])
def test_attackers_who_know_the_clusters_need_about_k_guesses_though_the_auc_is_near_one(k):
    release = released(data(100), k=k, variant="paper")
    same = (release.samples[:, None] == release.samples[None]).all(dim=2).double()
    alike = count(DenseScores(same), diagonal(100))
    assert guesswork(alike) == pytest.approx((100 * k + 1) / 101)
    assert reid_auc(alike) == pytest.approx(1 - (k - 1) / (2 * 99))
    inside = same[0].bool()
    one_first = same + (inside[:, None] & inside[None])
    assert guesswork(count(DenseScores(one_first), diagonal(100))) == pytest.approx((k * k + 1) / (k + 1))


@pytest.mark.parametrize("variant", ["within-class", "paper"])
def test_permuting_rows_permutes_the_release(variant):
    private = data(120)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(3))
    first, second = (released(part, k=4, variant=variant) for part in (private, private.take(order)))
    assert torch.equal(second.samples, first.samples[order])


def test_constant_columns_are_released_as_they_are():
    private = data(60)
    private.samples[:, 2] = 0.3
    assert torch.equal(released(private, k=4).samples[:, 2], private.samples[:, 2])


@pytest.mark.parametrize("variant", ["within-class", "paper"])
def test_schemes_and_keys_survive_their_states_and_hold_no_secret(variant):
    private, method = data(40), KSame(k=3, variant=variant)
    scheme = method.fit(private, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    assert scheme.state() == key.state() == {}
    again = method.load({}).load_key({})
    assert torch.equal(again.release(private).samples, key.release(private).samples)
    assert torch.equal(key.query(private.samples), private.samples)


def test_fewer_rows_than_k_and_rows_that_are_not_finite_are_refused():
    with pytest.raises(NotApplicable, match="at least k = 5 rows, got 4: choose a smaller k"):
        released(data(4), k=5)
    private = data(20)
    private.samples[7, 1] = torch.nan
    for variant in ("within-class", "paper"):
        with pytest.raises(ValueError, match="row 7 is not finite"):
            released(private, k=2, variant=variant)


def unequal(sizes: tuple[int, ...]) -> Dataset:
    """Rows of exclusive classes of those sizes."""
    labels = torch.eye(len(sizes))[[c for c, size in enumerate(sizes) for _ in range(size)]]
    samples = torch.rand(len(labels), 4, generator=torch.Generator().manual_seed(3))
    return Dataset("made", samples, labels, None, tuple("abcdefg"[: len(sizes)]), True, True)


def test_rows_of_classes_smaller_than_k_stay_at_home_where_they_are_suppressed():
    private = unequal((20, 9, 13))
    release = released(private, k=10, small_classes="suppress")
    assert release.labels.sum(dim=0).tolist() == [20, 0, 13]
    assert release.links[:, 0].tolist() == [*range(20), *range(29, 42)]
    assert torch.equal(release.labels, private.labels[release.links[:, 0]])
    alone = released(private.take(release.links[:, 0]), k=10)
    assert torch.equal(release.samples, alone.samples)


@pytest.mark.parametrize(("sizes", "labelled"), [((20, 9, 13), [20, 0, 0]), ((20, 6, 7, 12), [20, 0, 0, 12])])
def test_merged_classes_have_k_rows_together_and_no_labels(sizes: tuple[int, ...], labelled: list[int]):
    release = released(unequal(sizes), k=10, small_classes="merge")
    assert release.labels.nan_to_num().sum(dim=0).tolist() == labelled
    assert torch.equal(release.links, diagonal(sum(sizes)))
    assert clusters(release)[1].amin() >= 10
    unknown = release.labels.isnan().any(dim=1)
    assert clusters(type(release)(release.samples[unknown], None, None))[1].amin() >= 10


@pytest.mark.parametrize("sizes", [(300, 9), (9, 9), (20, 4, 3)])
def test_a_merge_that_would_withhold_every_label_is_not_made(sizes):
    with pytest.raises(NotApplicable, match=r"has \d, no label would be left; choose a smaller k, or, where"):
        released(unequal(sizes), k=10, small_classes="merge")


def test_the_record_says_what_becomes_of_small_classes():
    def told(**choices):
        return dict(KSame(k=10, **choices).fit(None, 0).notes())

    assert told() == {}
    assert told(small_classes="suppress") == {
        "classes of fewer than 10 rows": "not released, so that figures are of the other classes alone"
    }
    assert "released without labels" in told(small_classes="merge")["classes of fewer than 10 rows"]
    assert told(variant="paper") == {"left-over rows": "of n rows the last n % 10 are not released"}


def test_what_becomes_of_small_classes_changes_nothing_where_there_are_none():
    private = unequal((20, 13))
    plain = released(private, k=10)
    for choice in ("suppress", "merge"):
        assert torch.equal(released(private, k=10, small_classes=choice).samples, plain.samples)


def test_where_every_class_is_small_there_is_nothing_to_release():
    with pytest.raises(NotApplicable, match="no class has them"):
        released(unequal((9, 9)), k=10, small_classes="suppress")


def with_people(n=60, films=3, *, seed=0):
    """Rows of people with several films that lie near one another, of whom some have both labels."""
    source = torch.Generator().manual_seed(seed)
    people = torch.arange(n) // films
    samples = torch.rand(len(people.unique()), 4, generator=source)[people] + torch.rand(n, 4, generator=source) / 50
    labels = (torch.rand(n, 1, generator=source) < 0.5).float()
    return Dataset("made", samples, labels, people, ("finding",), False, True)


@pytest.mark.parametrize("k", [2, 4])
def test_clusters_of_people_have_k_people_where_those_of_rows_may_have_one(k):
    private = with_people()
    release = released(private, k=k, unit="person")
    assert torch.equal(release.labels, private.labels)
    assert torch.equal(release.links, diagonal(60))
    number, _ = clusters(release)
    for each in number.unique():
        rows = number == each
        assert len(private.subjects[rows].unique()) >= k
        assert len(private.labels[rows].unique()) == 1
        people = private.subjects[rows].unique()
        means = [private.samples[rows & (private.subjects == one)].double().mean(dim=0) for one in people]
        assert torch.allclose(release.samples[rows][0].double(), torch.stack(means).mean(dim=0), atol=1e-6)
    by_rows, _ = clusters(released(private, k=k))
    assert min(len(private.subjects[by_rows == each].unique()) for each in by_rows.unique()) < k


def test_copies_under_two_names_are_one_person_and_one_image():
    private = data(40)
    twice = private.take(torch.arange(40).repeat(3))
    named = replace(twice, subjects=torch.arange(120))
    for unit, rows in (("person", named), ("image", twice)):
        number, _ = clusters(released(rows, k=3, unit=unit))
        assert all(len((number == each).nonzero()[:, 0].remainder(40).unique()) >= 3 for each in number.unique())
    by_rows, _ = clusters(released(twice, k=3))
    assert any(len((by_rows == each).nonzero()[:, 0].remainder(40).unique()) == 1 for each in by_rows.unique())


def test_people_with_one_image_each_are_clustered_as_rows_are():
    private = replace(data(50), subjects=torch.arange(50).flip(0))
    assert torch.equal(
        released(private, k=4, unit="image").samples.sort(dim=0).values,
        released(private, k=4).samples.sort(dim=0).values,
    )


def test_classes_of_too_few_people_are_refused_suppressed_or_merged_by_people():
    private = with_people(24)
    rare = torch.zeros(24, 1)
    rare[:6] = 1  # two people with three films each
    private = replace(private, labels=rare)
    with pytest.raises(NotApplicable, match="at least k = 3 people of one class"):
        released(private, k=3, unit="person")
    assert released(private, k=3, unit="person", small_classes="suppress").links[:, 0].tolist() == list(range(6, 24))
    labels = torch.cat((rare, torch.zeros(24, 1)), dim=1)
    labels[6:9, 1] = 1  # one person more, of a third class
    merged = released(replace(private, labels=labels, findings=("a", "b")), k=3, unit="person", small_classes="merge")
    assert merged.labels[:9].isnan().all()
    assert clusters(merged)[0][:9].unique().numel() == 1


def test_different_images_of_unknown_people_are_of_different_people():
    """So an attacker who knows no one can simulate the release; data of an owner are refused beforehand."""
    assert KSame(unit="person").needs_subjects
    assert not KSame(unit="image").needs_subjects
    unknown = data(20)
    named = replace(unknown, subjects=torch.arange(20))
    assert torch.equal(released(unknown, k=3, unit="person").samples, released(named, k=3, unit="person").samples)


def test_the_paper_counts_rows():
    with pytest.raises(ValueError, match="variant=paper counts rows"):
        KSame(variant="paper", unit="person")
    assert KSame(unit="person").claims.startswith("k-anonymity of people")
    assert KSame(unit="person").uses_subjects
    assert KSame.claims.startswith("k-anonymity (within-class)")
    assert not KSame(unit="image").uses_subjects


def test_people_who_share_an_image_of_a_suppressed_class_stay_one():
    """Eight names are seven people, for two of them hold one image, even where that image is left out."""
    private = with_people(24)
    samples, labels = private.samples.clone(), torch.zeros(24, 1)
    labels[[0, 3]] = 1
    samples[3] = samples[0]
    shared = replace(private, samples=samples, labels=labels)
    release = released(shared, k=4, unit="person", small_classes="suppress")
    assert len(release) == 22
    assert len(clusters(release)[1]) == 1  # two clusters of four would need eight people
