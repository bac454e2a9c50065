import pytest
import torch

from bench.nets.decoder import Decoder, train_decoder
from bench.seeds import generator


def keyed(n=300):
    """Smooth 8 x 8 images and what a secret linear map of each 4 x 4 patch makes of them."""
    source = generator(0)
    raw = torch.rand(n, 1, 4, 4, generator=source).repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    maps = torch.randn(4, 16, 16, generator=source)
    released = torch.empty_like(raw)
    for location in range(4):
        rows, cols = (
            slice(4 * (location // 2), 4 * (location // 2) + 4),
            slice(4 * (location % 2), 4 * (location % 2) + 4),
        )
        released[:, :, rows, cols] = (raw[:, :, rows, cols].flatten(1) @ maps[location]).view(n, 1, 4, 4)
    return released, raw


def test_a_key_holder_sees_new_images_again():
    released, raw = keyed()
    decoder = train_decoder(released[:250], raw[:250], steps=100, seed=0, width=32)
    with torch.no_grad():
        error = (decoder(released[250:]) - raw[250:]).square().mean()
    assert float(error) < 0.5 * float(raw.var(dim=0).mean())  # the mean image reaches 1


def test_nothing_is_seen_without_the_key():
    released, raw = keyed()
    decoder = train_decoder(released[:250], raw[:250], steps=100, seed=0, width=32)
    with torch.no_grad():
        error = (decoder(released[250:].flip(2)) - raw[250:]).square().mean()
    assert float(error) > 0.9 * float(raw.var(dim=0).mean())


def test_training_starts_from_the_mean_image():
    released, raw = keyed(40)
    decoder = train_decoder(released, raw, steps=1, seed=0, width=8, learning_rate=1e-9)
    with torch.no_grad():
        assert torch.allclose(decoder(released), raw.mean(dim=0).expand_as(raw), atol=1e-4)


@pytest.mark.parametrize(
    ("released", "raw"),
    [((1, 8, 8), (1, 8, 8)), ((1, 4, 4), (3, 16, 16)), ((2, 5, 7), (1, 8, 12)), ((1, 8, 8), (1, 7, 7))],
)
def test_any_pair_of_images_is_decoded(released, raw):
    source = generator(0)
    coded, plain = torch.rand(6, *released, generator=source), torch.rand(6, *raw, generator=source)
    decoder = train_decoder(coded, plain, steps=2, seed=0, width=8)
    assert decoder(coded).shape == plain.shape


def test_a_token_meets_its_patch_where_the_grids_agree():
    assert Decoder((1, 64, 64), (1, 64, 64)).released_patch == 16
    assert Decoder((1, 32, 32), (1, 64, 64)).released_patch == 8
    assert Decoder((1, 30, 32), (1, 64, 64)).released_patch is None


def test_the_same_seed_gives_the_same_bits_and_leaves_torch_alone():
    released, raw = keyed(40)
    before = torch.random.get_rng_state()
    one, same, other = (train_decoder(released, raw, steps=3, seed=seed, width=8)(released) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_what_is_no_pair_of_images_is_refused():
    with pytest.raises(ValueError, match=r"got shapes \(4, 9\) and \(4, 1, 3, 3\)"):
        train_decoder(torch.rand(4, 9), torch.rand(4, 1, 3, 3), steps=1, seed=0)
    with pytest.raises(ValueError, match="image pairs"):
        train_decoder(torch.rand(4, 1, 3, 3), torch.rand(5, 1, 3, 3), steps=1, seed=0)
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        train_decoder(torch.rand(4, 1, 4, 4), torch.rand(4, 1, 4, 4), steps=0, seed=0)
