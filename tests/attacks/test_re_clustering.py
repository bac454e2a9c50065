from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from made.toy_methods import Keyless, Unlinked
from torch import Tensor

from attacks.re_clustering import LabelLinkage, ReClustering
from bench.eve.released_forms import summing_to
from bench.pairs.sweep import PairCounts, count
from bench.randomness import Secret
from bench.types import Attacker, Dataset, Key, NotApplicable, PairScores, Release, Scheme, View, paired
from methods.identity import Identity
from methods.k_same import KSame
from methods.noise import Noise
from metrics.guesswork import guesswork
from metrics.pair_roc import reid_auc

NAN = float("nan")


def table(n: int = 300, d: int = 40, seed: int = 0) -> Dataset:
    """Rows in a few loose groups, one in three of them positive, whichever group it is in."""
    source = torch.Generator().manual_seed(seed)
    groups = torch.randn(6, d, generator=source)[torch.randint(6, (n,), generator=source)]
    labels = (torch.rand(n, 1, generator=source) < 1 / 3).float()
    return Dataset("made", groups + torch.randn(n, d, generator=source), labels, None, ("positive",), False, True)


def scored(
    attack: ReClustering, scheme: Scheme, private: Dataset, *, labelled: bool = True
) -> tuple[PairScores, Tensor, Attacker]:
    """Scores of a shuffled release by an Eve whose candidates stand in another order, the links, and the attacker."""
    n = len(private)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(3))
    candidates = private.take(order) if labelled else replace(private.take(order), labels=None)
    attacker = attack.fit(View(private, scheme, candidates, private), 0)
    release = scheme.sample_key(Secret.of_seed(7)).release(private)
    assert release.links is not None
    place = torch.randperm(len(release), generator=torch.Generator().manual_seed(5))
    links = torch.stack((order.argsort()[release.links[:, 0]], place.argsort()[release.links[:, 1]]), dim=1)
    labels = release.labels[place] if labelled and release.labels is not None else None
    return attacker.score(Release(release.samples[place], labels, None)), links, attacker


def counted(attack: ReClustering, scheme: Scheme, private: Dataset, *, labelled: bool = True) -> PairCounts:
    scores, links, _ = scored(attack, scheme, private, labelled=labelled)
    return count(scores, links)


def top_1(counts: PairCounts) -> float:
    return float(counts.top_1.mean())


BOTH = pytest.mark.parametrize("attack", [ReClustering(), LabelLinkage()])


@BOTH
def test_identity_is_fully_reidentified(attack: ReClustering) -> None:
    counts = counted(attack, Identity().fit(table(), 0), table(), labelled=False)
    assert guesswork(counts) == 1
    assert top_1(counts) == 1


@BOTH
def test_noise_stays_at_chance(attack: ReClustering) -> None:
    # 300 rows, one right by chance: Poisson(1), above 9 less than once in a million. The AUC of n right pairs has a
    # deviation of 1 / sqrt(12 n), as the mean of n uniform ranks.
    scheme = Noise().fit(table(), 0)
    for labelled in (False, True):
        counts = counted(attack, scheme, table(), labelled=labelled)
        assert top_1(counts) <= 9 / 300
        assert abs(reid_auc(counts) - 0.5) < 5 / math.sqrt(12 * 300)


def test_rows_near_the_largest_number_of_float32_are_found_too() -> None:
    rows = 1e37 * torch.rand(20, 4, generator=torch.Generator().manual_seed(0))
    private = Dataset("large", rows, None, None, (), False, True)
    scheme = Identity().fit(private, 0)
    scores = ReClustering().fit(View(private, scheme, private, private), 0).score(Release(rows, None, None))
    assert torch.equal(scores.block(slice(None), slice(None)).argmax(dim=0), torch.arange(20))


@pytest.mark.parametrize("k", [2, 5, 10])
@pytest.mark.parametrize("n", [300, 307])
def test_rows_of_published_clusters_are_found_among_k(n: int, k: int) -> None:
    counts = counted(ReClustering(), KSame(k=k, variant="paper").fit(table(), 0), table(n))
    kept = n - n % k
    assert guesswork(counts) == pytest.approx((kept * k + 1) / (kept + 1), rel=1e-12)
    assert top_1(counts) == pytest.approx(1 / k)


@pytest.mark.parametrize("k", [2, 5, 10])
def test_rows_of_clusters_within_classes_are_found_among_k(k: int) -> None:
    private = table()
    counts = counted(ReClustering(), KSame(k=k).fit(private, 0), private)
    of_class = [int((private.labels == value).sum()) for value in (0, 1)]
    whole = sum(size - (size % k and k + size % k) for size in of_class)  # rows in clusters of no more than k
    assert guesswork(counts) == pytest.approx((whole * k + 1) / (whole + 1), rel=1e-12)
    clusters = sum(size // k for size in of_class)
    assert top_1(counts) == pytest.approx(clusters / len(private))


def test_guesswork_lies_in_the_interval_of_guessing_among_k() -> None:
    # Random orders of the n k tied pairs, n of them right: the first hit has the mean (n k + 1) / (n + 1).
    private, k = table(), 5
    counts = counted(ReClustering(), KSame(k=k, variant="paper").fit(private, 0), private)
    source = torch.Generator().manual_seed(0)
    first = [
        int((torch.randperm(k * len(private), generator=source) < len(private)).nonzero()[0]) + 1 for _ in range(2000)
    ]
    drawn = torch.tensor(first, dtype=torch.float64)
    assert abs(guesswork(counts) - float(drawn.mean())) < 5 * float(drawn.std()) / math.sqrt(len(drawn))


@pytest.mark.parametrize("k", [5, 10])
def test_labels_tell_rows_of_mixed_clusters_apart(k: int) -> None:
    private = table()
    scheme = KSame(k=k, variant="paper").fit(private, 0)
    without, given = counted(ReClustering(), scheme, private), counted(LabelLinkage(), scheme, private)
    assert guesswork(given) == 1  # some cluster has a lone positive or a lone negative
    assert guesswork(without) > 1
    # A row is found among those of its cluster with its label: as many groups as there are, over n.
    release = scheme.sample_key(Secret.of_seed(0)).release(private)
    assert release.labels is not None
    groups = torch.unique(torch.cat((release.samples, release.labels), dim=1), dim=0)
    assert top_1(given) == pytest.approx(len(groups) / len(private))
    assert top_1(given) > top_1(without)


@pytest.mark.parametrize("k", [2, 5])
def test_labels_tell_nothing_more_of_clusters_within_classes(k: int) -> None:
    private = table()
    scheme = KSame(k=k).fit(private, 0)
    without, given = counted(ReClustering(), scheme, private), counted(LabelLinkage(), scheme, private)
    assert guesswork(given) == guesswork(without)
    assert top_1(given) == pytest.approx(top_1(without))


def test_a_withheld_label_agrees_with_withheld_ones_only() -> None:
    samples = torch.zeros(4, 3)
    labels = torch.tensor([[1.0, NAN], [1.0, 0.0], [NAN, NAN], [1.0, NAN]])
    private = Dataset("made", samples, labels, None, ("a", "b"), False, True)
    attacker = LabelLinkage().fit(View(private, Identity().fit(private, 0), private, private), 0)
    scores = attacker.score(Release(samples, labels, None)).block(slice(None), slice(None))
    agree = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=torch.bool)
    assert scores[agree].min() > scores[~agree].max()
    assert attacker.notes()["labels"] == "must agree"


class Rounding(Keyless):
    """k-Same with a rounding error of its own at every draw."""

    def __init__(self) -> None:
        self.key, self.drawn = KSame(k=5, variant="paper").fit(table(), 0).sample_key(Secret.of_seed(0)), 0

    def sample_key(self, secret: Secret) -> Key:
        self.drawn += 1
        return self

    def release(self, private: Dataset) -> Release:
        made = self.key.release(private)
        source = torch.Generator().manual_seed(self.drawn)
        error = 1 + 2**-22 * torch.randn(made.samples.shape, generator=source)
        return replace(made, samples=made.samples * error)


def test_rounding_errors_do_not_decide_between_clusters() -> None:
    counts = counted(ReClustering(), Rounding(), table())
    assert guesswork(counts) == pytest.approx((300 * 5 + 1) / (300 + 1), rel=1e-12)
    assert top_1(counts) == pytest.approx(1 / 5)


class Encoding(Keyless):
    """Releases rows as they are and labels the other way round."""

    def release(self, private: Dataset) -> Release:
        return paired(private.samples, None if private.labels is None else 1 - private.labels)


def test_encoded_labels_are_not_used() -> None:
    scores, links, attacker = scored(LabelLinkage(), Encoding(), table(50))
    assert guesswork(count(scores, links)) == 1
    assert attacker.notes()["labels"] == "encoded or withheld: not used"


def test_notes_say_whether_own_releases_agree() -> None:
    private = table(50)
    said = [
        scored(ReClustering(), method.fit(private, 0), private)[2].notes()["own releases agree"]
        for method in (KSame(k=2), Noise())
    ]
    assert said == ["yes", "no: fresh noise or keys"]


def test_rows_that_were_dropped_come_last_and_the_others_are_all_found_again() -> None:
    private, k = table(307), 10
    scores, links, attacker = scored(ReClustering(), KSame(k=k, variant="paper").fit(private, 0), private)
    dropped = ~torch.isin(torch.arange(307), links[:, 0])
    whole = scores.block(slice(None), slice(None))
    assert attacker.notes()["missing rows"] == int(dropped.sum()) == 7
    assert attacker.notes()["rows whose form is there"] == 300
    assert whole[dropped].max() < whole[~dropped].min()


def test_what_is_missing_from_a_sum_is_found() -> None:
    rows = table(500).samples.double()
    missing = torch.tensor([3, 77, 210, 211, 499])
    assert torch.equal(summing_to(rows, torch.arange(len(rows)), rows[missing].sum(dim=0), 5), missing)
    wide = torch.nn.functional.pad(rows, (0, 600))
    assert torch.equal(summing_to(wide, torch.arange(len(wide)), wide[missing].sum(dim=0), 5), missing)


def test_any_block_has_the_bits_of_the_whole_and_the_same_seed_the_same_scores() -> None:
    private = table(60)
    one, same = (scored(LabelLinkage(), KSame(k=7, variant="paper").fit(private, 0), private)[0] for _ in range(2))
    whole = one.block(slice(None), slice(None))
    assert torch.equal(one.block(slice(3, 17), slice(5, 40)), whole[3:17, 5:40])
    assert torch.equal(whole, same.block(slice(None), slice(None)))


def test_images_are_matched_as_vectors_are() -> None:
    flat = table(60, d=36)
    private = replace(flat, samples=flat.samples.reshape(60, 1, 6, 6))
    counts = counted(ReClustering(), KSame(k=7, variant="paper").fit(private, 0), private)
    assert top_1(counts) == pytest.approx(1 / 7)


class Narrowing(Keyless):
    """A key of its own width at every draw."""

    def __init__(self) -> None:
        self.width = 5

    def sample_key(self, secret: Secret) -> Key:
        self.width -= 1
        return self

    def release(self, private: Dataset) -> Release:
        return paired(private.samples[:, : self.width].clone(), None)


def test_releases_without_links_or_of_another_width_are_not_applicable() -> None:
    private = table(20)
    with pytest.raises(NotApplicable, match="does not release one row per raw row"):
        ReClustering().fit(View(private, Unlinked(), private, private), 0)
    with pytest.raises(NotApplicable, match="Eve's own release have 4 numbers, those of this release 2"):
        scored(ReClustering(), Narrowing(), private)


def test_rounds_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        ReClustering(rounds=0)
