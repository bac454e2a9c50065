from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from bench.bob import model_selection
from bench.bob.model_selection import mean_auc, train_bob
from bench.bob.recipe_training import Course, Judge
from bench.bob.recipes import Best, BobPlan, Recipe, Vote
from bench.types import NotApplicable, Release, paired

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = float("nan")
PLAN = BobPlan(least_steps=60, batch=32, width=8, sau_width=32, sau_depth=1)
QUICK = replace(PLAN, architectures=("sau",))
# The AUC of 50 against 50 dev rows that look alike has deviation root(101 / (12 * 2500)) = .058: .95 is
# nearly eight of them from chance, and far enough below the 1 that these tasks allow for any arithmetic to get there.


def halves(n, seed, side=16):
    """Images whose left or right half is brighter; labels (n, 1): 1 where it is the right one."""
    source = torch.Generator().manual_seed(seed)
    samples = torch.randn(n, 1, side, side, generator=source)
    labels = torch.arange(n).remainder(2).float()[:, None]
    samples[labels[:, 0] == 1, :, :, side // 2 :] += 1
    samples[labels[:, 0] == 0, :, :, : side // 2] += 1
    return samples * 30 + 500, labels


def train(samples, labels, dev_samples, dev_labels, *, exclusive=False, plan=PLAN, decode=None):
    return train_bob(
        paired(samples, labels), dev_samples, dev_labels, exclusive=exclusive, plan=plan, seed=0, decode=decode
    )


def test_an_easy_task_is_learned_by_every_architecture():
    bob = train(*halves(256, 0), *halves(100, 1))
    best: dict[str, float] = {}
    for trial in bob.trials:
        name = trial.recipe.architecture
        best[name] = max(trial.dev.auc, best.get(name, 0.0))
    assert set(best) == {"linear", "resnet18", "sau"}
    assert min(best.values()) > 0.95
    assert bob.dev_auc >= max(best.values())
    samples, labels = halves(200, 2)
    assert mean_auc(bob.predict(samples), labels) > 0.95


def test_random_labels_are_not_learned():
    samples, _ = halves(128, 0)
    test, _ = halves(1000, 2)
    random = torch.Generator().manual_seed(3)
    labels, test_labels = (torch.rand(n, 1, generator=random).round() for n in (128, 1000))
    bob = train(samples, labels, samples[:50], labels[:50], plan=replace(PLAN, least_steps=20))
    # AUC of 500 against 500 unrelated rows has deviation root(1001 / (12 * 250000)) = .018; five of them.
    assert abs(mean_auc(bob.predict(test), test_labels) - 0.5) < 0.09


def test_vectors_get_a_linear_model_and_classes_a_softmax():
    source = torch.Generator().manual_seed(0)
    classes = torch.arange(300).remainder(3)
    samples = torch.randn(300, 5, generator=source)
    samples[torch.arange(300), classes] += 3
    labels = torch.nn.functional.one_hot(classes, 3).float()
    bob = train(samples[:200], labels[:200], samples[200:], labels[200:], exclusive=True)
    assert bob.architecture == "linear"
    assert bob.dev_auc > 0.95
    assert torch.allclose(bob.predict(samples).sum(dim=1), torch.ones(300, dtype=torch.float64))


def test_unknown_labels_are_left_out_and_findings_share_a_network():
    samples, labels = halves(256, 0)
    both = torch.cat((labels, 1 - labels), dim=1)
    both[::3, 0], both[1::3, 1], both[5] = NAN, NAN, NAN
    dev_samples, dev_labels = halves(100, 1)
    dev_both = torch.cat((dev_labels, 1 - dev_labels), dim=1)
    dev_both[:10, 0] = NAN
    bob = train(samples, both, dev_samples, dev_both, plan=replace(PLAN, architectures=("resnet18",)))
    assert bob.predict(dev_samples).shape == (100, 2)
    assert bob.dev_auc > 0.95


@pytest.mark.parametrize("exclusive", [False, True])
def test_mixed_rows_with_soft_labels_teach_to_tell_pure_ones(exclusive):
    samples, labels = halves(256, 0)
    partner, share = torch.arange(256).roll(37), torch.linspace(0.35, 0.65, 256)[:, None]
    mixed = share[:, :, None, None] * samples + (1 - share[:, :, None, None]) * samples[partner]
    soft = share * labels + (1 - share) * labels[partner]
    assert float(soft.remainder(1).count_nonzero() / 256) > 0.3
    dev_samples, dev_labels = halves(100, 1)
    if exclusive:
        soft, dev_labels = (torch.cat((one, 1 - one), dim=1) for one in (soft, dev_labels))
    plan = replace(PLAN, architectures=("resnet18",))
    bob = train(mixed, soft, dev_samples, dev_labels, exclusive=exclusive, plan=plan)
    assert bob.dev_auc > 0.95


def test_models_are_chosen_after_decoding():
    samples, labels = halves(256, 0)
    dev_samples, dev_labels = halves(100, 1)
    bob = train(samples, 1 - labels, dev_samples, dev_labels, decode=lambda scores: 1 - scores, plan=QUICK)
    assert bob.dev_auc > 0.95
    assert mean_auc(bob.predict(dev_samples), dev_labels) < 0.05


def test_the_kept_weights_are_those_of_the_best_epoch():
    bob = train(*halves(64, 0), *halves(100, 1), plan=replace(QUICK, least_steps=20))
    dev_samples, dev_labels = halves(100, 1)
    assert mean_auc(bob.predict(dev_samples), dev_labels) == bob.dev_auc


def test_every_combination_is_tried_once_and_the_same_seed_gives_the_same_bob():
    plan = BobPlan(("sau",), epochs=1, sau_width=16, sau_depth=1, weight_decays=(0.0, 0.1), dropouts=(0.0, 0.5))
    rows = (*halves(64, 0), *halves(20, 1))
    one, two = train(*rows, plan=plan), train(*rows, plan=plan)
    tried = [(trial.recipe.weight_decay, trial.recipe.dropout) for trial in one.trials]
    assert tried == [(0, 0), (0, 0.5), (0.1, 0), (0.1, 0.5)]
    assert torch.equal(one.predict(rows[0]), two.predict(rows[0]))


def test_the_precision_is_recorded():
    plan = BobPlan(("sau",), epochs=1, sau_width=16, sau_depth=1, precision="float32")
    assert train(*halves(64, 0), *halves(20, 1), plan=plan).precision == "float32"
    assert train(*halves(64, 0), *halves(20, 1), plan=replace(plan, precision=None)).precision in (
        "float32",
        "bfloat16",
    )


def test_mean_auc_is_the_mean_over_findings_with_both_classes():
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.4, 0.2, 0.5], [0.35, 0.3, 0.5], [0.8, 0.1, 0.5]])
    labels = torch.tensor([[0, 1, 1], [0, NAN, 1], [1, 0, 1], [1, 0, 1]])
    # First finding: three of four pairs are in order. Second: both of two. Third: it has no pair.
    assert mean_auc(scores, labels) == (0.75 + 1) / 2


def test_a_release_without_labels_or_fitting_architecture_is_not_applicable():
    samples, labels = halves(20, 0)
    with pytest.raises(NotApplicable, match="none were released"):
        train_bob(Release(samples, None, None), samples, labels, exclusive=False, plan=PLAN, seed=0)
    with pytest.raises(NotApplicable, match=r"none of sau reads released rows of shape \(9,\)"):
        train(samples.flatten(1)[:, :9], labels, samples, labels, plan=QUICK)
    with pytest.raises(NotApplicable, match="both classes"):
        train(samples, labels, samples[::2], labels[::2])


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"batch": 1}, "batch must be at least 2"),
        ({"architectures": ("vgg",)}, "some of linear, resnet18, sau"),
        ({"dropouts": ()}, "at least one value"),
    ],
)
def test_senseless_plans_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        BobPlan(**choices)


def test_released_rows_choose_for_an_outsider_without_a_dev_label():
    samples, labels = halves(160, 0)
    dev_samples, dev_labels = halves(60, 1)
    plan = BobPlan(("linear",), hold_out=0.25)
    told = train(samples, labels, dev_samples, dev_labels, plan=plan)
    lied = train(samples, labels, dev_samples, 1 - dev_labels, plan=plan)
    assert told.outsider is not None
    assert lied.outsider is not None
    assert told.outsider.choice == lied.outsider.choice
    assert told.model.choice != lied.model.choice
    test, truth = halves(200, 2)
    assert mean_auc(told.outsider.predict(test), truth) > 0.95
    assert all(trial.held_out is not None for trial in told.trials)
    assert train(samples, labels, dev_samples, dev_labels, plan=BobPlan(("linear",))).outsider is None


def test_a_shortlist_is_all_that_is_trained_under_further_keys():
    rows = (*halves(120, 0), *halves(60, 1))
    plan = BobPlan(("linear",), hold_out=0.25)
    first = train_bob(paired(*rows[:2]), *rows[2:], exclusive=False, plan=plan, seed=0)
    again = train_bob(paired(*rows[:2]), *rows[2:], exclusive=False, plan=plan, seed=1, shortlist=first.shortlist)
    assert len(first.trials) > 2
    assert {trial.recipe for trial in again.trials} == set(first.shortlist.recipes)
    assert again.outsider is not None
    assert again.outsider.choice == first.shortlist.outsider
    assert again.dev_auc > 0.95


def test_a_network_that_stays_behind_ends_early_unless_the_plan_is_patient():
    samples, labels = halves(128, 0)
    flipped = labels[torch.randperm(128, generator=torch.Generator().manual_seed(5))]
    dev_samples, dev_labels = halves(100, 1)
    mixed = torch.cat((labels[:64], flipped[64:]))  # linear models still learn; so wide a penalty path does not mind
    plan = replace(PLAN, architectures=("linear", "sau"), least_steps=20)
    for patient in (True, False):
        bob = train(samples, mixed, dev_samples, dev_labels, plan=replace(plan, patient=patient))
        assert [trial.stopped for trial in bob.trials][-1] is not patient


class Fixed:
    """A model of given probabilities."""

    def __init__(self, predicted):
        self.predicted, self.exclusive = predicted, False

    def predict(self, samples):
        return self.predicted[: len(samples)]


def test_models_that_err_on_different_rows_vote_and_worse_ones_do_not():
    truth = torch.tensor([0.0, 0, 0, 1, 1, 1, 0, 1])[:, None]
    one, two = (torch.where(truth > 0, 0.8, 0.2).double() for _ in range(2))
    one[0], two[5] = 0.9, 0.1  # each is wrong about one row
    rows = torch.zeros(8, 1)
    dev = Judge(rows, lambda scores, at: mean_auc(scores, truth))
    bad = 1 - one
    vote = Vote((Fixed(one), Fixed(two)), (1.0, 1.0))
    assert dev.value(vote.predict(rows), 1.0) > max(dev.value(one, 1.0), dev.value(two, 1.0))

    def voters(*predicted):
        recipe = Recipe("linear", "columns")
        courses = [Course(recipe, (Best(dev.value(each, 1.0), 1.0),), (each,), False, 0.0) for each in predicted]
        work = SimpleNamespace(model=lambda course: Fixed(course.networks[0]))
        return [course.networks[0] for course in model_selection._voters(work, courses, dev)]

    assert len(voters(one, two)) == 2
    assert len(voters(one, bad)) == 1
