import pytest
import torch

from bench.eve.plateau import Plateau, levelled


def watched(losses, least=150):
    """The number of checks, 25 steps apart, until a plateau; None: there is none."""
    watch = Plateau(4.0, least)
    for number, loss in enumerate(losses, start=1):
        if watch.reached(25 * number, loss):
            return number
    return None


def noisy(losses, size, seed=0):
    noise = size * torch.randn(len(losses), generator=torch.Generator().manual_seed(seed))
    return [loss + float(error) for loss, error in zip(losses, noise, strict=True)]


def test_losses_that_never_leave_chance_are_a_plateau_after_the_least_steps():
    assert watched([4.0] * 40) == 6


def test_a_falling_loss_is_no_plateau():
    assert watched([4.0 - 0.08 * number for number in range(40)]) is None


def test_a_break_through_after_the_least_steps_is_awaited_as_long_as_it_took():
    late = [4.0] * 20 + [4.0 - 0.1 * number for number in range(1, 20)] + [2.0] * 200
    assert watched(late, least=600) > 2 * 30


def test_noise_without_a_trend_is_a_plateau_soon():
    ends = [watched(noisy([3.0] * 400, 0.05, seed), least=600) for seed in range(20)]
    assert all(end is not None for end in ends)
    assert sorted(ends)[10] <= 2 * 24


def test_a_slow_fall_under_noise_is_no_plateau_while_it_lasts():
    # 2.0 in 200 checks: in half of them it falls by many times its noise.
    losses = [4.0 - 0.01 * number for number in range(200)]
    assert all(watched(noisy(losses, 0.05, seed), least=600) is None for seed in range(20))


def test_no_plateau_counts_before_the_least_steps():
    assert watched([4.0] * 40, least=700) == 28


def test_no_plateau_counts_before_one_smoothed_figure():
    assert watched([4.0] * 40, least=1) == 3


def test_rounds_at_chance_are_level():
    assert sum(levelled([7.8, *noisy([7.8] * 20, 0.05, seed)]) for seed in range(50)) >= 45


def test_rounds_that_still_improve_are_not_level():
    assert not any(levelled([7.8, *noisy([7.8 - 0.1 * n for n in range(20)], 0.05, seed)]) for seed in range(50))


def test_a_break_through_in_the_last_rounds_is_not_level():
    assert not any(levelled([7.8, *noisy([7.8] * 13 + [6.0] * 7, 0.05, seed)]) for seed in range(50))


@pytest.mark.parametrize("rounds", [1, 8, 15])
def test_too_few_rounds_are_never_level(rounds):
    assert not levelled([7.8] * (rounds + 1))
    assert levelled([7.8] * 17)


@pytest.mark.parametrize(
    "figures", [[8.0] * 7 + [7.5, 6.0], [8.0] * 8 + [7.0], [8.0] * 19 + [7.5, 6.0], [8.0] * 20 + [7.0]]
)
def test_a_fall_in_the_last_rounds_alone_is_not_level(figures):
    assert not levelled(figures)


def test_a_late_fall_under_noise_is_not_level():
    falls = [[7.8, *noisy([7.8] * 18 + [7.6, 7.0], 0.1, seed)] for seed in range(200)]
    assert sum(map(levelled, falls)) <= 10


@pytest.mark.parametrize(("fall", "noise"), [(0.2, 0.5), (0.05, 0.2)])
@pytest.mark.parametrize("rounds", [8, 20])
def test_a_steady_fall_of_a_quarter_of_its_noise_a_round_is_rarely_level(fall, noise, rounds):
    curves = [[8.0, *noisy([8.0 - fall * n for n in range(1, rounds + 1)], noise, seed)] for seed in range(200)]
    assert sum(map(levelled, curves)) <= 20


def test_rounds_that_fell_early_and_stayed_are_level():
    curves = [[7.8, *noisy([7.8 - 0.5 * min(n, 5) for n in range(1, 21)], 0.1, seed)] for seed in range(200)]
    assert sum(map(levelled, curves)) >= 180


def test_the_curve_is_kept():
    watch = Plateau(4.0, 100)
    watch.reached(25, 3.5)
    watch.reached(50, 3.0)
    assert watch.curve == [(25, 3.5), (50, 3.0)]


@pytest.mark.parametrize(("fall", "links", "level"), [(0.004, 600, True), (0.05, 50, False), (0.05, 600, False)])
def test_a_smooth_drift_counts_beyond_the_error_over_links(fall: float, links: int, *, level: bool) -> None:
    assert levelled([7.8 - fall * n for n in range(21)], links) == level
    assert not levelled([7.8 - fall * n for n in range(21)])
