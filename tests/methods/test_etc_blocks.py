from dataclasses import replace
from itertools import permutations

import pytest
import torch
from made.datasets import uniform, unlabelled

from bench.nets.patches import cut
from bench.randomness import Secret
from bench.types import NotApplicable
from methods.etc_blocks import EtCBlocks

STEPS = ("scramble", "turn", "negate", "shuffle_channels", "shuffle_pixels")


def coarse(*shape):
    """Random images of 256 levels, as the method releases them."""
    made = uniform(*shape)
    return replace(made, samples=(made.samples * 255).round() / 255)


def small(*steps, **choices):
    """Blocks of 4 pixels; only the steps that are named, or the usual ones."""
    chosen = {step: step in steps for step in STEPS} if steps else {}
    return EtCBlocks(**({"patch_size": 4} | chosen | choices))


def key_of(method, private, seed=1):
    return method.fit(private, 0).sample_key(Secret.of_seed(seed))


def blocks_of(images, side=4):
    """Blocks (n, locations, c, side, side)."""
    return cut(images, side).unflatten(2, (images.shape[1], side, side))


def forms(block):
    """Every form (rotation, mirror, negative, order of channels) that a block (c, side, side) can take."""
    for quarter in range(4):
        for mirrored in (False, True):
            turned = block.rot90(quarter, (1, 2))
            turned = turned.flip(2) if mirrored else turned
            for negative in (False, True):
                for order in permutations(range(len(block))):
                    yield (quarter, mirrored, negative, order), (1 - turned if negative else turned)[list(order)]


def readings(raw, released):
    """Of each image released for `raw` (c, h, w), which raw block in which form each block is: [(place, form), ...]."""
    known = [
        (place, form, image) for place, block in enumerate(blocks_of(raw[None])[0]) for form, image in forms(block)
    ]
    images = torch.stack([image for *_, image in known]).flatten(1)
    fits = (blocks_of(released).flatten(2)[:, :, None] - images).abs().amax(dim=3) < 1e-6
    assert bool((fits.sum(dim=2) == 1).all())
    return [[known[number][:2] for number in row] for row in fits.int().argmax(dim=2).tolist()]


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 12)])
def test_released_blocks_are_the_raw_ones_turned_mirrored_negated_and_recoloured_alike_in_all_images(shape):
    private = coarse(4, *shape)
    released = key_of(small(), private).release(private).samples
    found = [readings(raw, image[None])[0] for raw, image in zip(private.samples, released, strict=True)]
    assert all(one == found[0] for one in found)
    assert sorted(place for place, _ in found[0]) == list(range(shape[1] * shape[2] // 16))
    assert not torch.allclose(released, private.samples)


def test_every_image_has_a_key_of_its_own_if_asked_for():
    same = unlabelled(coarse(1, 3, 8, 8).samples.expand(60, 3, 8, 8).contiguous())
    released = key_of(small(keys="per-image"), same).release(same).samples
    found = readings(same.samples[0], released)
    # Of 4! 8^4 2^4 6^4 keys, two images of 60 share one with a probability below 1e-6.
    assert len({tuple(one) for one in found}) == 60
    first = [one[0] for one in found]
    for of, values in (
        (lambda place, form: place, 4), (lambda place, form: form[0], 4), (lambda place, form: form[1], 2),
        (lambda place, form: form[2], 2), (lambda place, form: form[3], 6),
    ):  # fmt: skip
        counts = torch.tensor([sum(of(*one) == value for one in first) for value in {of(*one) for one in first}])
        # Each of v values is missing from 60 draws with a probability of at most (5 / 6)^60 = 2e-5.
        assert len(counts) == values
        assert float((counts - 60 / values).abs().max()) < 5 * (60 / values * (1 - 1 / values)) ** 0.5


@pytest.mark.parametrize("step", ["turn", "negate", "shuffle_channels"])
def test_a_step_alone_leaves_blocks_where_they_are(step):
    private = coarse(3, 3, 8, 8)
    (found,) = readings(private.samples[0], key_of(small(step), private, seed=3).release(private).samples[:1])
    assert [place for place, _ in found] == [0, 1, 2, 3]
    quiet = {"turn": (2, 3), "negate": (0, 1, 3), "shuffle_channels": (0, 1, 2)}[step]
    still = (0, False, False, (0, 1, 2))
    assert all(form[part] == still[part] for _, form in found for part in quiet)
    assert any(form != still for _, form in found)


def test_pixels_are_shuffled_in_all_blocks_alike():
    private = coarse(3, 3, 8, 8)
    released = cut(key_of(small("shuffle_pixels"), private).release(private).samples, 4)
    raw = cut(private.samples, 4)
    order = (released[:, 0, :, None] - raw[:, 0, None]).abs().sum(dim=0).argmin(dim=1)
    assert sorted(order.tolist()) == list(range(48)) != order.tolist()
    assert torch.allclose(released, raw[:, :, order], atol=1e-6)


def test_a_linear_embedding_of_blocks_can_undo_all_steps():
    # Why a vision transformer need not lose accuracy (Kiya et al. 2023): other weights give the same tokens.
    private, method = coarse(5, 3, 8, 8), small(shuffle_pixels=True)
    scheme = method.fit(private, 0)
    secret = Secret.of_seed(1)
    released = scheme.sample_key(secret).release(private).samples
    key = scheme.draw(scheme.sample_key(secret).secret.stream("arrangement"), 1)
    weights = torch.randn(4, 48, 7, generator=torch.Generator().manual_seed(0))
    tokens = torch.einsum("nld,ldw->nw", cut(private.samples, 4), weights)
    sign = 1 - 2 * key.negative[0].float()
    moved = weights.flatten(0, 1)[key.places[0].flatten()].unflatten(0, (4, 48))
    offset = (moved * key.negative[0][:, :, None]).sum(dim=(0, 1))
    embedded = torch.einsum("nld,ldw->nw", cut(released, 4), moved * sign[:, :, None]) + offset
    assert torch.allclose(embedded, tokens, atol=1e-4)


def test_no_rounding_tells_negated_pixels_from_others():
    levels = (torch.arange(256) / 255).reshape(1, 1, 16, 16)
    private = unlabelled(levels.expand(20, 1, 16, 16).contiguous())
    released = key_of(small("negate", keys="per-image"), private).release(private).samples
    kinds = set(released.flatten().tolist())
    assert kinds == set(levels.flatten().tolist())
    # Real numbers would tell: float32 has no exact negative of every k / 255.
    assert len({*kinds, *(1 - levels).flatten().tolist()}) > 256


def test_new_images_come_under_the_key_of_the_release_or_under_their_own():
    private = uniform(6, 1, 8, 8)
    for keys, alike in (("one", True), ("per-image", False)):
        key = key_of(small(keys=keys), private)
        assert torch.equal(key.query(private.samples), key.release(private).samples) is alike
        assert torch.equal(key.release(private).samples, key.release(private).samples)


@pytest.mark.parametrize("keys", ["one", "per-image"])
def test_a_key_survives_its_state_and_seeds_make_keys(keys):
    private, method = uniform(6, 3, 8, 8), small(keys=keys)
    scheme = method.fit(private, 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.release(private).samples, same.release(private).samples)
    assert not torch.allclose(one.release(private).samples, other.release(private).samples)
    again = method.load(scheme.state()).load_key(one.state())
    assert torch.equal(one.release(private).samples, again.release(private).samples)
    with pytest.raises(ValueError, match="the stored scheme has patch_size"):
        small("turn").load(scheme.state())


def test_the_key_space_is_that_of_the_steps():
    # n! 8^n 2^n (c!)^n keys of 16 blocks: log2 is 44.25 + 48 + 16, and 16 log2 6 = 41.36 more in colour.
    grey, colour = (EtCBlocks().fit(uniform(1, c, 64, 64), 0).notes()["bits of a key"] for c in (1, 3))
    assert (grey, colour) == (108.3, 149.6)
    assert small("negate").fit(uniform(1, 1, 8, 8), 0).notes()["bits of a key"] == 4


def test_inputs_stay_untouched_and_labels_as_they_are():
    private = uniform(7, 1, 8, 8)
    before = private.samples.clone()
    release = key_of(small(), private).release(private)
    release.samples.zero_()
    assert torch.equal(private.samples, before)
    assert torch.equal(release.labels, private.labels)


def test_rows_that_cannot_be_encrypted_are_not_applicable():
    with pytest.raises(NotApplicable, match="16 does not divide 28x28; set patch_size to one of 1, 2, 4, 7, 14, 28"):
        EtCBlocks().fit(uniform(7, 1, 28, 28), 0)
    with pytest.raises(NotApplicable, match="is a table"):
        EtCBlocks().fit(uniform(7, 5), 0)
    with pytest.raises(NotApplicable, match="leave grey images as they are"):
        small("shuffle_channels").fit(uniform(7, 1, 8, 8), 0)
    with pytest.raises(ValueError, match=r"images of shape \(1, 8, 8\), got \(1, 8, 12\)"):
        key_of(small(), uniform(7, 1, 8, 8)).query(uniform(2, 1, 8, 12).samples)
