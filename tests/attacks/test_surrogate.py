from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from made.attack_games import play
from made.datasets import unlabelled
from made.dense_scores import DenseScores
from torch import Tensor

from attacks import surrogate
from attacks.relational import Relational
from attacks.surrogate import Surrogate
from bench.eve.ridge import Pairs, predict
from bench.nets.patches import cut
from bench.pairs.score_blocks import best
from bench.pairs.score_matrices import BlendedScores, CosineScores, TableScores
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Attack, Attacker, Release, View
from methods.dauntless import Dauntless
from methods.identity import Identity
from methods.noise import Noise


def images(n=300, side=8, seed=0):
    """Skewed mixtures of six random waves: a small map is learned from few rows, and an image is not its negative."""
    source = torch.Generator().manual_seed(seed)
    waves = torch.randn(6, side * side, generator=source)
    samples = 0.5 + 0.1 * torch.randn(n, 6, generator=source).exp() @ waves
    return unlabelled(samples.reshape(n, 1, side, side))


@dataclass(frozen=True)
class Lengths(Attack):
    """A weak attack: rows are alike whose first patches are about as long."""

    name: ClassVar[str] = "lengths"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "the raw rows and the release"

    places: int = 3

    def fit(self, view, seed):
        return LengthsAttacker(view.candidates.samples, self.places)


@dataclass(frozen=True, eq=False)
class LengthsAttacker(Attacker):
    candidates: Tensor
    places: int

    def score(self, sealed):
        a, b = (self._lengths(rows.double()) for rows in (self.candidates, sealed.samples))
        return TableScores(-torch.cdist(a, b))

    def _lengths(self, rows):
        lengths = cut(rows - rows.mean(dim=0), 4).square().sum(dim=2).clamp_min(1e-12).log()[:, : self.places]
        return (lengths - lengths.mean(dim=0)) / lengths.std(dim=0)


@dataclass(frozen=True)
class Exact(Attack):
    """Cosine of centred rows."""

    name: ClassVar[str] = "exact"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "the raw rows and the release"

    def fit(self, view, seed):
        return ExactAttacker(view.candidates.samples)


@dataclass(frozen=True, eq=False)
class ExactAttacker(Attacker):
    candidates: Tensor

    def score(self, sealed):
        return CosineScores(*((rows - rows.mean(dim=0)).flatten(1) for rows in (self.candidates, sealed.samples)))

    def notes(self):
        return {"told": 1}


def test_a_weak_base_becomes_a_break_of_dauntless():
    private = images()
    scheme = Dauntless(patch_size=4).fit(private, 0)
    boosted = play(Surrogate(base=Lengths()), scheme, private)
    assert play(Lengths(), scheme, private).top_1 < 0.2
    assert boosted.top_1 > 0.95
    assert boosted.attacker.variant is not None


@pytest.mark.parametrize("base", [Lengths(), Exact(), Relational(keys=2, held_out=1, reading="places")])
def test_noise_stays_at_chance(base):
    # 200 rows, one right by chance: Poisson(1), above 9 less than once in a million.
    private = images(200)
    assert play(Surrogate(base=base, rounds=4, held_out=1), Noise(), private).top_1 <= 9 / 200


def test_a_perfect_base_is_kept_and_its_notes_are_passed_on():
    private = images(60)
    game = play(Surrogate(base=Exact()), Identity(), private)
    assert game.top_1 == 1
    assert game.attacker.variant is None
    assert game.attacker.notes() == {
        "surrogate": "none: the base's scores",
        "log2 rank on simulated keys, none: the base's scores": 0.0,
        "base: told": 1,
    }


def test_a_surrogate_says_that_its_matches_stayed_and_passes_on_the_curves_of_its_base():
    private = images(60)
    view = View(private, Noise().fit(private, 0), private, private)
    curves = (
        Surrogate(base=Relational(keys=2, held_out=1, reading="places"), rounds=2, held_out=1).fit(view, 0).learning()
    )
    names = [curve.part for curve in curves]
    assert names[0] == "base"
    assert names[-len(surrogate.VARIANTS) - 1 :] == [
        "surrogate", *(f"rejected surrogate: {student}" for student in surrogate.VARIANTS)
    ]  # fmt: skip
    scheme = Dauntless(patch_size=4).fit(images(), 0)
    curve = Surrogate(base=Lengths()).fit(View(images(), scheme, images(), images()), 0).learning()[0]
    assert curve.points[-1][1] < 0.1 < curve.points[0][1]
    assert curve.converged


def test_surrogates_that_were_rejected_while_their_ranks_still_fell_have_not_converged():
    private = images(60)
    attacker = Surrogate(base=Exact(), rounds=2, held_out=1).fit(
        View(private, Noise().fit(private, 0), private, private), 0
    )
    assert attacker.variant is None
    own, *rejected = attacker.learning()
    assert own.converged
    moved = [fits.end == "moved" for student, fits in attacker.fits.items() if student is not None]
    assert any(moved)
    assert [curve.reason == "the budget of 2 fits ended first" for curve in rejected] == moved
    assert not any(curve.converged for curve, still in zip(rejected, moved, strict=True) if still)


def test_too_few_rows_to_fit_are_a_reason_of_their_own_and_no_convergence():
    private = images(8)
    attacker = Surrogate(base=Exact(), held_out=1).fit(View(private, Noise().fit(private, 0), private, private), 0)
    _, *rejected = attacker.learning()
    assert len(rejected) == len(surrogate.VARIANTS)
    assert {(curve.converged, curve.reason) for curve in rejected} == {
        (False, "too few rows to fit: fewer than 10 in a release under Eve's own keys")
    }


def test_few_mutual_matches_are_completed_so_that_learning_goes_on():
    private = images(16)
    attacker = Surrogate(base=Exact(), held_out=1).fit(View(private, Noise().fit(private, 0), private, private), 0)
    scores = DenseScores(torch.ones(16, 16).triu() + torch.arange(16.0))  # all released rows name the first raw row
    pairs = attacker._pairs(scores, torch.zeros(16, dtype=torch.int64))
    assert len(pairs.released) == surrogate.FEWEST_PAIRS
    assert {fits.end for fits in attacker.fits.values()} <= {"stayed", "moved"}


def test_a_perfect_base_leaves_nothing_to_learn_and_has_converged():
    private = images(60)
    (curve,) = Surrogate(base=Exact()).fit(View(private, Identity().fit(private, 0), private, private), 0).learning()
    assert curve.converged
    assert curve.reason == (
        "closed form: the base ranked all links of Eve's own keys first, so that no surrogate was tried"
    )


def test_at_chance_the_usual_number_of_fits_can_converge():
    private = images(60)
    attack = Surrogate(base=Exact(), held_out=1)
    curves = attack.fit(View(private, Noise().fit(private, 0), private, private), 0).learning()
    assert any(curve.reason.startswith("plateau: the last two thirds of 20 fits") for curve in curves)


def test_weak_matches_are_learned_from_where_no_more_are_first():
    """What counts is the rank of links, not only how many are first."""
    scores = TableScores(torch.tensor([[3.0, 1.0, 0.0], [2.0, 1.0, 5.0], [1.0, 1.0, 4.0]]).double())
    links = torch.tensor([[0, 0], [1, 1], [2, 2]])
    assert surrogate._log_ranks(scores, links).exp2().tolist() == [1.0, 2.0, 2.0]


def test_the_same_seed_gives_the_same_scores():
    private = images(60)
    view = View(private, Dauntless(patch_size=4).fit(private, 0), private, private)
    sealed = Release(view.scheme.sample_key(Secret.of_seed(7)).release(private).samples, None, None)
    attack = Surrogate(base=Lengths(), rounds=2)
    one, two = (attack.fit(view, 1).score(sealed).block(slice(None), slice(None)) for _ in range(2))
    assert torch.equal(one, two)


@pytest.mark.parametrize(("n", "m"), [(7, 5), (1500, 1100), (1, 3)])
def test_best_pairs_by_blocks_are_those_of_the_whole(n, m):
    grid = torch.randn(n, m, generator=generator(0)).double()
    found = best(TableScores(grid))
    assert torch.equal(found.raw, grid.argmax(dim=0))
    top = grid.sort(dim=0, descending=True).values
    assert torch.equal(found.lead, top[0] - top[min(1, n - 1)])
    assert torch.equal(found.mutual, grid.argmax(dim=1)[grid.argmax(dim=0)] == torch.arange(m))


@pytest.mark.parametrize("kernel", ["linear", "gauss"])
def test_predictions_do_not_use_a_rows_own_match(kernel, monkeypatch):
    monkeypatch.setattr("bench.eve.ridge.RIDGES", (0.1,))  # a spoilt row may change the choice, and that only
    raw = torch.randn(40, 3, generator=generator(0)).double()
    released = raw @ torch.randn(3, 4, generator=generator(1)).double()
    rows = torch.arange(40)
    pairs = Pairs(rows, rows, rows.remainder(5))
    spoilt = released.clone()
    spoilt[3] += 5
    # The scale is that of all released rows; the direction of a prediction tells what it was learned from.
    one, two = (
        torch.nn.functional.normalize(predict([raw], [part], pairs, kernel)[0], dim=1) for part in (released, spoilt)
    )
    assert torch.allclose(one[3], two[3], atol=1e-9)
    assert not torch.allclose(one[4], two[4], atol=1e-3)


def test_labels_are_not_passed_on():
    with pytest.raises(ValueError, match="base must be an attack that does without labels, and labelled asks for them"):
        Surrogate(base=Labelled())


@dataclass(frozen=True)
class Labelled(Exact):
    name: ClassVar[str] = "labelled"
    uses_labels: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"most_pairs": 9}, "most_pairs must be at least 10, got 9"),
        ({"held_out": 0}, "held_out must be at least 1, got 0"),
    ],
)
def test_senseless_choices_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        Surrogate(base=Exact(), **choices)


def test_a_base_that_is_no_attack_is_refused():
    with pytest.raises(TypeError, match="base must be an attack, got str"):
        Surrogate(base="relational")


def test_blended_scores_have_the_same_bits_in_every_block():
    first, second = (TableScores(torch.randn(30, 20, generator=generator(seed))) for seed in (0, 1))
    blended = BlendedScores(first, second, 0.5)
    whole = blended.block(slice(None), slice(None))
    assert torch.equal(blended.block(slice(3, 11), slice(7, 20)), whole[3:11, 7:20])
    expected = first.table / first.table.std(correction=0) + 0.5 * second.table / second.table.std(correction=0)
    assert torch.allclose(whole, expected)
    with pytest.raises(ValueError, match="of the same pairs"):
        BlendedScores(first, TableScores(torch.zeros(20, 30)), 0.5)
