import math
from dataclasses import dataclass, replace

import pytest
import torch
from made.attack_games import play
from made.datasets import unlabelled
from made.toy_methods import Unlinked, toy_seed
from torch.utils._python_dispatch import TorchDispatchMode

from attacks import relational
from attacks.relational import Relational
from bench.eve import gram_matching
from bench.eve.gram_matching import assign, gram, log_posterior, refine, signature
from bench.eve.tokens import READINGS, tokens, unshuffled
from bench.nets.patches import cut
from bench.pairs.score_matrices import CosineScores, TableScores
from bench.seeds import derive, generator
from bench.types import Key, NotApplicable, Release, Scheme, View, paired
from methods.dauntless import Dauntless
from methods.identity import Identity
from methods.neuracrypt import NeuraCrypt
from methods.noise import Noise


def images(n=60, side=16, seed=0):
    """Mixtures of four random waves."""
    source = torch.Generator().manual_seed(seed)
    waves = torch.randn(4, side * side, generator=source)
    samples = 0.5 + 0.1 * torch.randn(n, 4, generator=source) @ waves
    return unlabelled(samples.reshape(n, 1, side, side))


@dataclass(frozen=True)
class Layers(Scheme, Key):
    """Random layers (linear, SELU, LayerNorm) on each quarter of an image, or the key that `seed` draws."""

    depth: int
    width: int = 256
    seed: int = 0

    def sample_key(self, secret):
        return Layers(self.depth, self.width, toy_seed(secret))

    def load_key(self, state):
        return self

    def state(self):
        return {}

    def release(self, private):
        source = generator(derive(self.seed, "layers"))
        rows = cut(private.samples, 8).transpose(0, 1)
        for _ in range(self.depth):
            rows = rows @ torch.randn(len(rows), rows.shape[2], self.width, generator=source)
            rows = torch.nn.functional.layer_norm(torch.selu(rows), rows.shape[2:])
        return paired(rows.transpose(0, 1).flatten(1), None)


@dataclass(frozen=True)
class Shuffled(Layers):
    """One random layer, the same for all patches, then the patches of each image in an order of its own."""

    def sample_key(self, secret):
        return Shuffled(self.depth, self.width, toy_seed(secret))

    def release(self, private):
        source = generator(derive(self.seed, "layers"))
        patches = private.samples.unfold(2, 4, 4).unfold(3, 4, 4).flatten(4).flatten(1, 3)
        patches = torch.selu(patches @ torch.randn(patches.shape[2], self.width, generator=source))
        order = torch.rand(patches.shape[:2], generator=source).argsort(dim=1)
        mixed = patches.gather(1, order[:, :, None].expand_as(patches))
        return paired(mixed.transpose(1, 2).reshape(len(mixed), self.width, 4, 4), None)


SMALL = Relational(keys=4, held_out=1)
PLACES = Relational(keys=4, held_out=1, reading="places")


def test_identity_is_fully_reidentified():
    assert play(SMALL, Identity().fit(images(), 0), images()).top_1 == 1


def test_dauntless_is_reidentified():
    private = images()
    # Under one key in four, a row or two of the 60 are missed: 99 % over 48 keys.
    assert play(SMALL, Dauntless(patch_size=8).fit(private, 0), private).top_1 >= 0.95


@pytest.mark.parametrize("depth", [1, 3])
def test_random_layers_are_reidentified(depth):
    # One of 60 right by chance; nine tenths are what a working attack finds.
    assert play(PLACES, Layers(depth), images()).top_1 > 0.9


def test_noise_stays_at_chance():
    # 200 rows, one right by chance: Poisson(1), above 9 less than once in a million.
    private = images(200)
    assert play(Relational(keys=3, held_out=1), Noise().fit(private, 0), private).top_1 <= 9 / 200


def test_what_is_at_chance_on_keys_of_her_own_is_refined_all_the_same_and_stays_at_chance(monkeypatch):
    asked = []
    monkeypatch.setattr(relational, "refine", lambda *told: asked.append(told) or refine(*told))
    private = images()
    attacker = SMALL.fit(View(private, Noise().fit(private, 0), private, private), 0)
    assert len(asked) >= len(relational.BLENDS)
    curve, *rejected = attacker.learning()
    tried = {f"rejected blend {blend}" for blend in relational.BLENDS if blend != attacker.variant.blend}
    assert {curve.part for curve in rejected} == tried
    # The mean of log2 over ranks 1 to n.
    assert curve.points[0][1] == pytest.approx(math.log2(len(private)) - 1 / math.log(2), abs=0.3)


def test_a_refinement_that_moves_at_chance_has_converged_and_one_that_improves_has_not():
    private = images()
    attacker = SMALL.fit(View(private, Noise().fit(private, 0), private, private), 0)

    def ended(ranks, **changed):
        variant = replace(attacker.variant, **{"blend": 0.3, "stayed": False, "ranks": ranks, **changed})
        curve = replace(attacker, variant=variant).learning()[0]
        return curve.converged, curve.reason

    at_chance = tuple(5.6 + 0.05 * (-1) ** number for number in range(21))
    assert ended(at_chance) == (True, "plateau: the last two thirds of 20 rounds brought no improvement beyond noise")
    falling = tuple(5.6 - 0.1 * number for number in range(21))
    assert ended(falling) == (False, "the budget of 20 rounds ended first")
    assert ended(falling, stayed=True)[0]


def test_a_refined_matching_says_whether_it_stayed():
    private = images()
    curve, *others = PLACES.fit(View(private, Layers(5), private, private), 0).learning()
    assert curve.converged
    assert not others  # held-out links are known: what was rejected does not matter
    assert curve.points[-1][1] < curve.points[0][1]
    assert "stayed after" in curve.reason


def test_refinements_that_were_rejected_while_their_ranks_still_fell_have_not_converged():
    private = images()
    attacker = SMALL.fit(View(private, Noise().fit(private, 0), private, private), 0)
    falling = tuple(5.6 - 0.1 * number for number in range(21))
    other = replace(attacker.variant, blend=0.3, likelihood=-4.0, ranks=falling, stayed=False)
    none = replace(attacker.variant, blend=None, likelihood=-3.9, ranks=(5.6,), rejected=(other,))

    def ended(variant):
        return [(curve.converged, curve.reason) for curve in replace(attacker, variant=variant).learning()]

    assert ended(none) == [
        (True, "closed form: no refinement made held-out links likelier"),
        (False, "the budget of 20 rounds ended first"),
    ]
    assert all(converged for converged, _ in ended(replace(none, rejected=(replace(other, stayed=True),))))
    assert ended(replace(none, likelihood=0.0)) == [
        (True, "closed form: held-out links were known already, so that no refinement was tried")
    ]


def test_refinement_finds_rows_that_signatures_miss():
    scheme, private = Layers(5), images()
    plainly = Relational(keys=4, held_out=1, reading="places", refine_up_to=0)
    refined, plain = (play(part, scheme, private).right for part in (PLACES, plainly))
    # If neither were better, each row that only one finds would be a coin toss: 12 in a row come once in 4096 times.
    assert int((refined & ~plain).sum()) >= 12
    assert not bool((plain & ~refined).any())


def test_shuffled_patches_are_read_as_bags():
    private = images(80)
    game = play(SMALL, Shuffled(1, width=64), private)
    assert game.attacker.notes()["reading"] == "bags"
    # One of 80 right by chance: Poisson(1), above 9 less than once in a million.
    assert game.matched > 9


def test_shuffled_patches_that_are_marked_by_place_are_put_back():
    private = images(80)
    scheme = NeuraCrypt(patch_size=8, channels=4).fit(private, 0)
    chosen, bags = (play(Relational(keys=4, held_out=1, reading=name), scheme, private) for name in ("auto", "bags"))
    assert chosen.attacker.notes()["reading"] == "unshuffled"
    # If neither were better, each row that only one finds would be a coin toss: 19 of 21 come once in 9,000 times.
    only, lost = int((chosen.right & ~bags.right).sum()), int((bags.right & ~chosen.right).sum())
    assert only >= 19
    assert lost <= 2


def test_patches_that_are_put_back_are_each_row_s_own_whatever_their_order():
    source = generator(0)
    parts = torch.randn(40, 6, 3, generator=source, dtype=torch.float64) + 9 * torch.arange(6)[:, None]
    order = torch.rand(40, 6, generator=source).argsort(dim=1)
    found = unshuffled(parts.take_along_dim(order[:, :, None], dim=1))
    places = (found[0] / 9).round()[:, 0].long()
    assert sorted(places.tolist()) == list(range(6))
    assert torch.equal(found, parts[:, places])


def test_signatures_alone_are_compared_if_asked_and_the_notes_say_so():
    private = images()
    attacker = Relational(keys=3, held_out=1, refine_up_to=0).fit(
        View(private, Identity().fit(private, 0), private, private), 0
    )
    assert isinstance(attacker.score(Release(private.samples, None, None)), CosineScores)
    assert attacker.notes()["matching"] == "signatures only (refine_up_to is 0)"


def test_landmarks_find_rows_that_signatures_miss(monkeypatch):
    monkeypatch.setattr(relational, "LANDMARKS", 40)
    scheme, private = Layers(5), images()
    many, plain = (
        play(Relational(keys=4, held_out=1, reading="places", refine_up_to=most), scheme, private) for most in (59, 0)
    )
    # If neither were better, each row that only one finds would be a coin toss: 12 in a row come once in 4096 times.
    assert int((many.right & ~plain.right).sum()) >= 12
    assert int((plain.right & ~many.right).sum()) <= 1
    assert many.attacker.notes()["matching"].endswith("40 of 60 candidates as landmarks")
    curve = many.attacker.learning()[0]
    assert curve.points[-1][1] < curve.points[0][1]


def test_rows_that_need_no_landmarks_are_scored_alike_in_blocks(monkeypatch):
    private = images()
    tables = []
    for most in (60, 59):
        attack = Relational(keys=3, held_out=1, reading="places", refine_up_to=most)
        game = play(attack, Identity().fit(private, 0), private)
        assert game.attacker.notes()["matching"] == "signatures only"
        tables.append(game.table)
    assert torch.allclose(*tables, atol=1e-3)


def test_landmarks_of_noise_stay_at_chance(monkeypatch):
    # 200 rows, one right by chance: Poisson(1), above 9 less than once in a million.
    monkeypatch.setattr(relational, "LANDMARKS", 50)
    private = images(200)
    attack = Relational(keys=3, held_out=1, reading="places", refine_up_to=199)
    assert play(attack, Noise().fit(private, 0), private).top_1 <= 9 / 200


class Largest(TorchDispatchMode):
    """The most numbers in a tensor that any operation made."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(one, torch.Tensor):
                self.numbers = max(self.numbers, one.numel())
        return made


def test_no_array_of_landmarks_is_larger_than_the_table_of_scores(monkeypatch):
    monkeypatch.setattr(relational, "LANDMARKS", 16)
    monkeypatch.setattr(relational, "JUDGED_ROWS", 32)
    monkeypatch.setattr(gram_matching, "REFERENCE_ROWS", 32)
    n, scheme = 300, Layers(2, width=4)
    private = images(n)
    largest = {}
    for most in (n - 1, n):
        with Largest() as seen:
            attack = Relational(keys=2, held_out=1, reading="places", refine_up_to=most)
            attacker = attack.fit(View(private, scheme, private, private), 0)
            attacker.score(scheme.release(private)).block(slice(0, 5), slice(0, 5))
        largest[most] = seen.numbers
    assert largest[n - 1] <= n * n
    assert largest[n] >= 5 * n * n  # a Gram matrix for each part and the whole row


@pytest.mark.parametrize("refined", [False, True])
def test_many_rows_are_judged_by_some_of_their_columns(refined, monkeypatch):
    seen = []
    monkeypatch.setattr(relational, "LANDMARKS", 20)
    block = CosineScores.block
    monkeypatch.setattr(relational, "JUDGED_ROWS", 16)
    monkeypatch.setattr(CosineScores, "block", lambda self, *at: seen.append(self.shape) or block(self, *at))
    private = images()
    most = len(private) - 1 if refined else 0
    attack = Relational(keys=3, held_out=1, reading="places", refine_up_to=most)
    attack.fit(View(private, Noise().fit(private, 0), private, private), 0)
    of_all = [columns for rows, columns in seen if rows == len(private)]
    assert of_all
    assert max(of_all) <= 16
    # Landmarks alone are matched with every column.
    assert {rows for rows, _ in seen} == ({20, len(private)} if refined else {len(private)})


def test_the_same_seed_gives_the_same_scores():
    private = images(30)
    one, two = (play(PLACES, Layers(2, width=64), private).table for _ in range(2))
    assert torch.equal(one, two)


def test_the_order_of_released_rows_tells_nothing():
    private = images(30)
    attacker = PLACES.fit(View(private, Layers(1, width=64), private, private), 0)
    released = Layers(1, width=64, seed=7).release(private).samples
    order = torch.randperm(30, generator=torch.Generator().manual_seed(5))
    whole = attacker.score(Release(released, None, None)).block(slice(None), slice(None))
    mixed = attacker.score(Release(released[order], None, None)).block(slice(None), slice(None))
    assert torch.allclose(mixed, whole[:, order], atol=1e-3)


def test_releases_without_links_are_not_applicable():
    private = images(8)
    with pytest.raises(NotApplicable, match="no raw row stands in a row of this release"):
        SMALL.fit(View(private, Unlinked(), private, private), 0)


def test_two_rows_have_no_relations_to_compare():
    private = images(2)
    with pytest.raises(NotApplicable, match="needs at least 3, got 2"):
        SMALL.fit(View(private, Layers(1), private, private), 0)


class Pairing(Layers):
    """Releases the mean of each two neighbours once."""

    def sample_key(self, secret):
        return self

    def release(self, private):
        rows = torch.arange(len(private))
        return Release(private.samples.unflatten(0, (-1, 2)).mean(dim=1), None, torch.stack((rows, rows // 2), dim=1))


def test_several_raw_rows_may_share_a_released_row():
    private = images(60)
    attacker = SMALL.fit(View(private, Pairing(1), private, private), 0)
    release = Pairing(1).release(private)
    scores = attacker.score(Release(release.samples, None, None)).block(slice(None), slice(None))
    assert scores.shape == (60, 30)
    # Two of 60 right by chance: Poisson(2), above 12 less than once in a million.
    assert int((scores.argmax(dim=1) == torch.arange(60) // 2).sum()) > 12


def test_signatures_do_not_depend_on_rotation_or_order():
    rows = torch.randn(40, 6, generator=generator(0)).double()
    rows = rows - rows.mean(dim=0)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=generator(1)).double())[0]
    order = torch.randperm(40, generator=generator(2))
    one, two = signature(rows, torch.arange(40)), signature((3 * rows @ turn)[order], torch.arange(40))
    assert torch.allclose(one[order], two, atol=1e-5)


def test_leverages_in_signatures_survive_any_invertible_map():
    rows = torch.randn(200, 6, generator=generator(0)).double()
    rows = rows - rows.mean(dim=0)
    mapped = rows @ (torch.eye(6).double() + 0.2 * torch.randn(6, 6, generator=generator(3)).double())
    one, two = (signature(part, torch.arange(200))[:, -8] for part in (rows, mapped))
    assert torch.allclose(one, two, atol=1e-2)
    assert not torch.allclose(signature(rows, torch.arange(200))[:, 0], signature(mapped, torch.arange(200))[:, 0])


def test_gram_matrices_have_no_diagonal_and_centred_rows():
    found = gram(torch.randn(20, 5, generator=generator(0)).double())
    assert not found.diagonal().any()
    assert found.sum(dim=1).abs().max() < 1e-4
    assert found.square().mean() == pytest.approx(1, rel=1e-5)


def test_bags_do_not_depend_on_the_order_of_patches():
    rows = torch.randn(10, 8, 4, 4, generator=generator(0))
    order = torch.randperm(16, generator=generator(1))
    shuffled = rows.flatten(2)[:, :, order].unflatten(2, (4, 4))
    for one, two in zip(tokens(rows, "bags", 16), tokens(shuffled, "bags", 16), strict=True):
        assert torch.allclose(one @ one.T, two @ two.T)


def test_refinement_recovers_a_matching_from_a_few_right_pairs():
    known = torch.randn(50, 50, generator=generator(0))
    known = (known + known.T).fill_diagonal_(0)
    order = torch.randperm(50, generator=generator(1))
    start = torch.randn(50, 50, generator=generator(2)).double()
    start[order[:15], torch.arange(15)] += 10
    found = refine(known[None], known[order][:, order][None], torch.ones(1), start, 0.3)
    assert found.stayed
    assert torch.equal(found.scores.argmax(dim=0), order)


def test_a_matching_of_more_candidates_than_releases_uses_each_once():
    rows, cols = assign(torch.rand(7, 4, generator=generator(0)))
    assert len(rows.unique()) == len(cols.unique()) == 4


def test_posteriors_of_a_released_row_sum_to_one():
    found = log_posterior(torch.randn(6, 6, generator=generator(0)).double(), 2.0).exp()
    assert torch.allclose(found.sum(dim=0), torch.ones(6).double())
    assert torch.allclose(found.sum(dim=1), torch.ones(6).double(), atol=0.1)


def test_tables_of_scores_must_be_finite_matrices():
    with pytest.raises(ValueError, match="raw row 1, released row 2"):
        TableScores(torch.zeros(3, 3).index_put((torch.tensor([1]), torch.tensor([2])), torch.tensor(torch.nan)))
    with pytest.raises(ValueError, match=r"shape \(n, m\), got \(3,\)"):
        TableScores(torch.zeros(3))


def test_of_many_rows_an_even_part_is_read_and_the_record_says_so(monkeypatch):
    monkeypatch.setattr(relational, "REFERENCE_ROWS", 32)
    monkeypatch.setattr(relational, "SORTED", 60 * 32 * 3)  # three parts of each of 60 rows
    monkeypatch.setattr(relational, "TRIED_ON", 40)
    private = images(n=60)
    scheme = Layers(1, width=64)
    attacker = Relational(keys=3, held_out=1, refine_up_to=0).fit(View(private, scheme, private, private), 0)
    told = attacker.notes()
    assert told["signatures"] == "3 of 5 parts of a row" or attacker.variant.statistics.look.reading == "bags"
    assert told["reading tried on"] == "40 of 60 candidates"
    whole = Relational(keys=3, held_out=1, refine_up_to=0, reading="places")
    monkeypatch.undo()
    assert not {"signatures", "reading tried on"} & set(whole.fit(View(private, scheme, private, private), 0).notes())


def test_of_many_products_an_even_part_of_the_gram_matrices_is_matched_and_the_record_says_so(monkeypatch):
    private = images(n=60)
    scheme = Layers(1, width=64)
    asked = Relational(keys=3, held_out=1, reading="places")
    whole = asked.fit(View(private, scheme, private, private), 0).notes()
    assert whole["Gram matrices"] == "5 of 5 parts of a row"
    monkeypatch.setattr(relational, "MATCHED", 2 * 60**3)
    told = asked.fit(View(private, scheme, private, private), 0).notes()
    assert told["Gram matrices"] == "2 of 5 parts of a row"


def test_chosen_tokens_are_those_of_all_tokens():
    rows = images(20).samples
    for reading in READINGS:
        every = list(tokens(rows, reading, 4))
        some = [0, len(every) - 1]
        assert all(map(torch.equal, tokens(rows, reading, 4, some), [every[number] for number in some]))
