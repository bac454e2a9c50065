import torch

from bench.owner.noise_stream import content_seed, laplace


def test_a_content_seed_follows_rows_purpose_and_key():
    rows = torch.rand(3, 4)
    first = content_seed(1, "release", rows)
    assert first == content_seed(1, "release", rows.clone())
    others = [
        content_seed(2, "release", rows),
        content_seed(1, "query", rows),
        content_seed(1, "release", rows + 1),
        content_seed(1, "release", rows.reshape(4, 3)),
        content_seed(1, "release", rows[:0]),
    ]
    assert len({first, *others}) == 6


def test_rows_in_any_memory_layout_have_one_seed():
    rows = torch.rand(2, 3, 4, 4)
    assert content_seed(1, "query", rows) == content_seed(1, "query", rows.to(memory_format=torch.channels_last))


def test_laplace_numbers_have_the_moments_of_scale_one():
    numbers = laplace((1_000_000,), torch.Generator().manual_seed(0)).double()
    # Even moments of Laplace(1) are (2k)!: 2, 24, 40320. Five standard errors each.
    assert abs(float(numbers.mean())) < 5 * (2 / 1e6) ** 0.5
    assert abs(float(numbers.square().mean()) - 2) < 5 * ((24 - 4) / 1e6) ** 0.5
    assert abs(float(numbers.pow(4).mean()) - 24) < 5 * ((40320 - 576) / 1e6) ** 0.5
