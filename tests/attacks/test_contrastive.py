import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from made.attack_games import play
from made.datasets import spots as images
from made.datasets import unlabelled
from made.toy_methods import Keyless, Unlinked, toy_seed

from attacks import contrastive
from attacks.contrastive import Contrastive, ContrastiveLabels, balanced_draw
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, Key, NotApplicable, Release, Scheme, View, paired
from methods.dauntless import Dauntless
from methods.dp_simple import DPSimple
from methods.identity import Identity
from methods.k_same import KSame
from methods.noise import Noise
from methods.random_layers import RandomLayers

SMALL = Contrastive(steps=150, batch=64, width=32, depth=1)


def test_dauntless_is_reidentified_under_unseen_keys():
    # One of 64 right by chance: Poisson(1), above 9 less than once in a million.
    assert play(SMALL, Dauntless(patch_size=8), images()).top_1 > 9 / 64


def test_identity_is_fully_reidentified_long_before_the_last_step_and_the_run_is_solved(caplog):
    with caplog.at_level("INFO", "bench.progress"):
        game = play(SMALL, Identity(), images())
    assert game.top_1 == 1
    assert "step 150/150" not in caplog.text
    notes = game.attacker.notes()
    assert notes["ended by"] == "solved"
    assert notes["steps"] < 150
    assert notes["held-out loss"] < SMALL.enough
    assert notes["training precision"] == "float32"


def test_noise_stays_at_chance():
    # 300 rows, one right by chance: Poisson(1), above 9 less than once in a million.
    assert play(Contrastive(steps=30, batch=64, width=32, depth=1), Noise(), images(300)).top_1 <= 9 / 300


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_a_release_does_not_matter(factor):
    private = images()
    far = unlabelled(private.samples * factor)
    assert play(SMALL, Identity(), far).top_1 == 1


def test_vectors_are_read_as_single_tokens():
    table = unlabelled(torch.rand(64, 12, generator=torch.Generator().manual_seed(0)))
    assert play(SMALL, DPSimple(scale=0.05), table).top_1 > 0.9


@pytest.mark.parametrize("encoder", ["vit", "resnet18"])
def test_other_encoders_read_images(encoder):
    attack = Contrastive(encoder, 60, batch=32, width=16, depth=1, relations=False, learning_rate=5e-3)
    # One of 32 right by chance: Poisson(1), above 9 less than once in a million.
    assert play(attack, Identity(), images(32, side=8)).top_1 > 9 / 32


@pytest.mark.parametrize("encoder", ["sau", "vit", "resnet18"])
def test_a_release_may_have_another_shape_than_the_images(encoder):
    private = images(32)
    attack = Contrastive(encoder=encoder, steps=1, batch=16, width=16, depth=1)
    attacker = attack.fit(View(private, Shrinking(), private, private), 0)
    assert attacker.score(Shrinking().release(private)).shape == (32, 32)


def test_relations_reach_five_random_layers_where_towers_without_them_do_not():
    coarse = torch.randn(64, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    smooth = 0.5 + 0.2 * torch.nn.functional.interpolate(coarse, size=(16, 16), mode="bicubic")
    private = unlabelled(smooth)
    attack = Contrastive(steps=40, batch=64, width=32, depth=1, learning_rate=5e-3)
    found = {
        relations: play(replace(attack, relations=relations), RandomLayers(depth=5, patch_size=8), private).top_1
        for relations in (True, False)
    }
    # One of 64 right by chance: Poisson(1), above 9 less than once in a million.
    assert found[True] > 9 / 64 >= found[False]


def fitted(attack, method, private):
    return attack.fit(View(private, method.fit(private, 0), private, private), 0)


def test_a_run_at_chance_takes_its_least_steps_and_says_that_it_ended_at_a_plateau():
    attack = Contrastive(steps=900, batch=16, width=16, depth=1, least=200, relations=False)
    attacker = fitted(attack, Noise(), images(32, 8))
    (curve,) = attacker.learning()
    notes = attacker.notes()
    assert notes["ended by"] == "plateau"
    assert 200 <= notes["steps"] < 900
    assert notes["held-out loss at chance"] == pytest.approx(math.log(16))
    assert 0.9 * math.log(16) < notes["held-out loss"] <= math.log(16) + 1e-6
    assert curve.converged
    assert curve.points[-1] == (notes["steps"], notes["held-out loss"])


def test_a_run_whose_budget_ends_first_has_not_converged():
    (curve,) = fitted(replace(SMALL, steps=40), Noise(), images(32, 8)).learning()
    assert not curve.converged
    assert curve.reason == "the budget of 40 steps ended first"


def test_a_set_larger_than_the_limit_is_scored_in_parts(monkeypatch):
    monkeypatch.setattr(contrastive, "SET_ROWS", 40)
    # One of 64 right by chance: Poisson(1), above 9 less than once in a million.
    assert play(SMALL, Identity(), images()).top_1 > 9 / 64


def test_parts_of_a_set_have_nearly_equal_sizes(monkeypatch):
    monkeypatch.setattr(contrastive, "SET_ROWS", 10)
    sizes = []

    def tower(rows):
        sizes.append(len(rows))
        return rows

    rows = torch.arange(21.0).unsqueeze(1)
    assert torch.equal(contrastive.embed(tower, rows, None, 0), rows)
    assert sizes == [7, 7, 7]


def test_the_same_seed_gives_the_same_scores_and_another_seed_others():
    private = images(16)
    scheme = Dauntless(patch_size=8).fit(private, 0)
    view = View(private, scheme, private, private)
    sealed = Release(scheme.sample_key(Secret.of_seed(7)).release(private).samples, None, None)
    attack = Contrastive(steps=5, batch=8, width=16, depth=1)
    one, same, other = (attack.fit(view, seed).score(sealed) for seed in (1, 1, 2))
    assert torch.equal(one.a, same.a)
    assert torch.equal(one.b, same.b)
    assert not torch.equal(one.b, other.b)


def test_the_order_of_released_rows_tells_nothing():
    private = images(16)
    scheme = Identity().fit(private, 0)
    attacker = Contrastive(steps=5, batch=8, width=16, depth=1).fit(View(private, scheme, private, private), 0)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(5))
    whole = attacker.score(Release(private.samples, None, None)).b
    assert torch.allclose(attacker.score(Release(private.samples[order], None, None)).b, whole[order], atol=1e-5)


class Pairing(Keyless):
    """Releases the mean of each two neighbours once."""

    def release(self, private):
        rows = torch.arange(len(private))
        return Release(private.samples.unflatten(0, (-1, 2)).mean(dim=1), None, torch.stack((rows, rows // 2), dim=1))


class Shrinking(Pairing):
    """Releases the upper half of every image."""

    def release(self, private):
        return paired(private.samples[:, :, :8], None)


def test_several_raw_rows_may_share_a_released_row():
    private = images(32)
    attacker = Contrastive(steps=100, batch=16, width=32, depth=1).fit(View(private, Pairing(), private, private), 0)
    release = Pairing().release(private)
    scores = attacker.score(Release(release.samples, None, None))
    assert scores.shape == (32, 16)
    right = (scores.block(slice(None), slice(None)).argmax(dim=1) == torch.arange(32) // 2).sum()
    assert int(right) > 12  # two of 32 by chance: Poisson(2), above 12 less than once in a million


def test_releases_without_links_are_not_applicable():
    private = images(8)
    with pytest.raises(NotApplicable, match="learns from links"):
        SMALL.fit(View(private, Unlinked(), private, private), 0)


@pytest.mark.parametrize("encoder", ["vit", "resnet18"])
def test_an_encoder_of_images_on_a_table_is_not_applicable(encoder):
    table = unlabelled(torch.rand(8, 12))
    with pytest.raises(NotApplicable, match="use encoder=sau"):
        Contrastive(encoder=encoder).fit(View(table, Identity().fit(table, 0), table, table), 0)


def test_training_leaves_the_global_random_numbers_alone():
    private = images(8)
    before = torch.random.get_rng_state()
    Contrastive(steps=2, batch=4, width=16, depth=1).fit(View(private, Identity().fit(private, 0), private, private), 0)
    assert torch.equal(before, torch.random.get_rng_state())


def test_labels_that_a_method_needs_are_not_read():
    """Nor must they be known: the attack sees them, for a scheme that releases by class asks for them."""
    private = images()
    labels = torch.tensor([0.0, 1.0, float("nan"), 1.0]).repeat(len(private) // 4).unsqueeze(1)
    labelled = replace(private, labels=labels, findings=("sign",))
    scheme = KSame(k=2, variant="paper").fit(labelled, 0)
    attacker = replace(SMALL, steps=2).fit(View(labelled, scheme, labelled, labelled), 0)
    assert not attacker.labelled
    release = scheme.sample_key(Secret.of_seed(0)).release(labelled)
    assert attacker.score(replace(release, links=None)).shape == (len(private), len(release.samples))


class Blank(Scheme, Key):
    """Releases noise for every row, and its label: as it is, or with the classes changed over by every odd key."""

    def __init__(self, swaps=False, seed=0):
        self.swaps, self.seed = swaps, seed

    def sample_key(self, secret):
        return Blank(self.swaps, toy_seed(secret))

    def load_key(self, state):
        return self

    def state(self):
        return {}

    def release(self, private):
        kinds, counts = torch.unique(private.labels, dim=0, return_counts=True)
        if len(kinds) < 2 or len(set(counts.tolist())) > 1:
            raise ValueError(f"labels must be balanced, got counts {counts.tolist()}")
        samples = torch.randn(private.samples.shape, generator=generator(self.seed))
        return paired(samples, private.labels.flip(1) if self.swaps and self.seed % 2 else private.labels)


class Unlabelled(Blank):
    """Releases rows without labels."""

    def sample_key(self, secret):
        return self

    def release(self, private):
        return paired(private.samples, None)


def private(n=64, one_hot=True):
    classes = torch.arange(n) % 2
    labels = torch.nn.functional.one_hot(classes).float() if one_hot else classes.float().unsqueeze(1)
    samples = torch.rand(n, 12, generator=torch.Generator().manual_seed(0))
    return Dataset("made", samples, labels, None, ("no", "yes")[-labels.shape[1] :], one_hot, True)


@cache
def blank_fit(swaps=False):
    """LABELLED_SMALL, trained on noise whose labels the key swaps or leaves."""
    return fit(LABELLED_SMALL, Blank(swaps), private())


def fit(attack, scheme, rows):
    return attack.fit(View(rows, scheme, rows, rows), 0)


def auc(attacker, key, rows):
    """Share of (linked, unlinked) pairs of scores in which the linked one is higher, under a key, after a shuffle."""
    release = key.release(rows)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(5))
    scores = attacker.score(Release(release.samples[order], release.labels[order], None))
    table = scores.block(slice(None), slice(None))
    linked = torch.zeros_like(table, dtype=torch.bool)
    linked[order, torch.arange(len(rows))] = True
    return float((table[linked].unsqueeze(1) > table[~linked]).double().mean())


LABELLED_SMALL = ContrastiveLabels(steps=150, batch=32, width=32, depth=1, learning_rate=5e-3, relations=False)
# With n links, the mean rank of the linked pairs within its pool is a mean of n uniform numbers: sd 1 / sqrt(12 n).
# Six of them are exceeded once in 500 million; 64 rows.
SIX_SD = 6 / (12 * 64) ** 0.5


@pytest.mark.parametrize("one_hot", [True, False], ids=["one-hot", "binary"])
def test_raw_labels_on_noise_give_the_auc_of_labels_alone(one_hot):
    rows = private(one_hot=one_hot)
    attacker = blank_fit() if one_hot else fit(LABELLED_SMALL, Blank(), rows)
    # Half of the pairs have unlike labels and lie below every linked one; among the others noise decides.
    unlike, alike = 64 * 32, 64 * 31
    labels_alone = (unlike + alike / 2) / (unlike + alike)
    assert labels_alone == pytest.approx(0.75, abs=0.005)
    assert auc(attacker, Blank(seed=7), rows) == pytest.approx(labels_alone, abs=0.5 * SIX_SD)


def test_labels_that_the_key_permutes_give_nothing_on_average():
    rows = private()
    attacker = blank_fit(swaps=True)
    straight, swapped = auc(attacker, Blank(True, 6), rows), auc(attacker, Blank(True, 7), rows)
    assert (straight + swapped) / 2 == pytest.approx(0.5, abs=SIX_SD)


def test_swapped_labels_leave_the_held_out_loss_at_chance():
    notes = blank_fit(swaps=True).notes()
    assert notes["held-out loss"] > 0.95 * notes["held-out loss at chance"]
    # Raw ones halve the choice: the loss falls by log 2.
    raw = blank_fit().notes()
    assert raw["held-out loss"] < raw["held-out loss at chance"] - 0.7 * math.log(2)


def test_images_with_labels_are_still_reidentified_by_their_images():
    samples = torch.rand(64, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    contrast = torch.rand(64, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    samples = samples * contrast.repeat_interleave(4, 2).repeat_interleave(4, 3)
    rows = Dataset("made", samples, private().labels, None, ("no", "yes"), True, True)
    scheme = Dauntless(patch_size=8).fit(rows, 0)
    assert auc(fit(LABELLED_SMALL, scheme, rows), scheme.sample_key(Secret.of_seed(7)), rows) > 0.9


def test_batches_hold_equally_many_of_each_class():
    labels = torch.tensor([0.0] * 50 + [1.0] * 14).unsqueeze(1)
    draw, order = balanced_draw(labels, 33), generator(0)
    first, second = draw(order), draw(order)
    for rows in (first, second):
        assert len(torch.unique(rows)) == len(rows) == 28  # 14 of the rarer class are all there is
        assert int(labels[rows].sum()) == 14
    assert not torch.equal(first, second)
    assert len(balanced_draw(labels, 9)(order)) == 8


def test_the_same_seed_gives_the_same_scores():
    rows = private(16)
    attack = ContrastiveLabels(steps=3, batch=8, width=16, depth=1)
    one, same = (fit(attack, Blank(), rows).score(Blank(seed=7).release(rows)) for _ in range(2))
    assert torch.equal(one.a, same.a)
    assert torch.equal(one.b, same.b)


def test_missing_labels_are_named():
    rows = private(16)
    unknown = rows.labels.clone()
    unknown[3] = float("nan")
    with pytest.raises(NotApplicable, match="the candidates has none"):
        fit(LABELLED_SMALL, Blank(), replace(rows, labels=None))
    with pytest.raises(ValueError, match=r"1 of 16 rows of the candidates have unknown ones \(NaN\)"):
        fit(LABELLED_SMALL, Blank(), replace(rows, labels=unknown))
    with pytest.raises(NotApplicable, match="the release has none"):
        fit(LABELLED_SMALL, Unlabelled(seed=1), rows)
    with pytest.raises(NotApplicable, match="at least 2 classes among the candidates, got 1"):
        fit(LABELLED_SMALL, Blank(), replace(rows, labels=torch.ones(16, 2)))
    attacker = fit(ContrastiveLabels(steps=1, batch=8, width=16, depth=1), Blank(), rows)
    with pytest.raises(NotApplicable, match="the release has none"):
        attacker.score(Release(rows.samples, None, None))
    with pytest.raises(ValueError, match="1 of 16 rows of the release"):
        attacker.score(Release(rows.samples, unknown, None))


def test_it_asks_for_labels():
    assert ContrastiveLabels.uses_labels
    assert ContrastiveLabels.name == "contrastive-labels"
