import math
from dataclasses import replace

import pytest
import torch
from made.toy_methods import toy_seed

from attacks.contrastive_labels import ContrastiveLabels, balanced_draw
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, Key, NotApplicable, Release, Scheme, View, paired
from methods.dauntless import Dauntless


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


SMALL = ContrastiveLabels(steps=150, batch=32, width=32, depth=1, learning_rate=5e-3, relations=False)
# With n links, the mean rank of the linked pairs within its pool is a mean of n uniform numbers: sd 1 / sqrt(12 n).
# Six of them are exceeded once in 500 million; 64 rows.
SIX_SD = 6 / (12 * 64) ** 0.5


@pytest.mark.parametrize("one_hot", [True, False], ids=["one-hot", "binary"])
def test_raw_labels_on_noise_give_the_auc_of_labels_alone(one_hot):
    rows = private(one_hot=one_hot)
    attacker = fit(SMALL, Blank(), rows)
    # Half of the pairs have unlike labels and lie below every linked one; among the others noise decides.
    unlike, alike = 64 * 32, 64 * 31
    labels_alone = (unlike + alike / 2) / (unlike + alike)
    assert labels_alone == pytest.approx(0.75, abs=0.005)
    assert auc(attacker, Blank(seed=7), rows) == pytest.approx(labels_alone, abs=0.5 * SIX_SD)


def test_labels_that_the_key_permutes_give_nothing_on_average():
    rows = private()
    attacker = fit(SMALL, Blank(swaps=True), rows)
    straight, swapped = auc(attacker, Blank(True, 6), rows), auc(attacker, Blank(True, 7), rows)
    assert (straight + swapped) / 2 == pytest.approx(0.5, abs=SIX_SD)


def test_swapped_labels_leave_the_held_out_loss_at_chance():
    notes = fit(SMALL, Blank(swaps=True), private()).notes()
    assert notes["held-out loss"] > 0.95 * notes["held-out loss at chance"]
    # Raw ones halve the choice: the loss falls by log 2.
    told = fit(SMALL, Blank(), private()).notes()
    assert told["held-out loss"] < told["held-out loss at chance"] - 0.7 * math.log(2)


def test_images_with_labels_are_still_reidentified_by_their_images():
    samples = torch.rand(64, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    contrast = torch.rand(64, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    samples = samples * contrast.repeat_interleave(4, 2).repeat_interleave(4, 3)
    rows = Dataset("made", samples, private().labels, None, ("no", "yes"), True, True)
    scheme = Dauntless(patch_size=8).fit(rows, 0)
    assert auc(fit(SMALL, scheme, rows), scheme.sample_key(Secret.of_seed(7)), rows) > 0.9


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
        fit(SMALL, Blank(), replace(rows, labels=None))
    with pytest.raises(ValueError, match=r"1 of 16 rows of the candidates have unknown ones \(NaN\)"):
        fit(SMALL, Blank(), replace(rows, labels=unknown))
    with pytest.raises(NotApplicable, match="the release has none"):
        fit(SMALL, Unlabelled(seed=1), rows)
    with pytest.raises(NotApplicable, match="at least 2 classes among the candidates, got 1"):
        fit(SMALL, Blank(), replace(rows, labels=torch.ones(16, 2)))
    attacker = fit(ContrastiveLabels(steps=1, batch=8, width=16, depth=1), Blank(), rows)
    with pytest.raises(NotApplicable, match="the release has none"):
        attacker.score(Release(rows.samples, None, None))
    with pytest.raises(ValueError, match="1 of 16 rows of the release"):
        attacker.score(Release(rows.samples, unknown, None))


def test_it_asks_for_labels():
    assert ContrastiveLabels.uses_labels
    assert ContrastiveLabels.name == "contrastive-labels"
