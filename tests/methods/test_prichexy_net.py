from dataclasses import replace

import pytest
import torch
from made.datasets import uniform

from bench.nets import anonymiser
from bench.nets.training import seeded
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import NotApplicable
from methods.prichexy_net import PriCheXyNet, PrivacyNet

SMALL = {"width": 4, "opponent": 8, "first_steps": 2, "steps": 2, "batch": 4}


def people_of(rows, images=2, side=16):
    return replace(uniform(rows, 1, side, side), subjects=torch.arange(rows) // images)


def network(mu, side=16, channels=1):
    with seeded(0):
        return anonymiser.Anonymiser((channels, side, side), mu, 4).eval()


@pytest.mark.parametrize("mu", [0.05, None])
@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 9, 21), (1, 5, 5)])
def test_an_untrained_network_gives_the_image_back(mu, shape):
    with seeded(0):
        untrained = anonymiser.Anonymiser(shape, mu, 4).eval()
    images = uniform(3, *shape).samples * 0.9 + 0.05
    assert torch.allclose(anonymiser.anonymised(untrained, images), images, atol=1e-5)


def test_a_constant_flow_moves_the_image_by_mu_halves_of_a_side():
    moving = network(2 * 3 / 15)  # three of the fifteen steps between the first and the last pixel
    torch.nn.init.constant_(moving.unet.last.bias, 50.0)  # a flow of 1 everywhere
    images = uniform(2, 1, 16, 16).samples
    out = anonymiser.anonymised(moving, images)
    assert torch.allclose(out[:, :, 3:, 3:], images[:, :, :-3, :-3], atol=1e-4)
    assert torch.allclose(out[:, :, :3, :3], images[:, :, :1, :1].expand(-1, -1, 3, 3), atol=1e-4)  # the edge, repeated
    assert anonymiser.mean_displacement(moving, images) == pytest.approx(3 * 2**0.5, rel=1e-4)


def test_a_displacement_is_smooth_and_within_mu():
    rough = network(0.3)
    with seeded(1):
        torch.nn.init.normal_(rough.unet.last.weight, std=20.0)
    moved = rough.displacement(uniform(4, 1, 16, 16).samples).detach()
    assert float(moved.abs().max()) <= 0.3 + 1e-6
    raw = 0.3 * torch.tanh(rough.unet(uniform(4, 1, 16, 16).samples)).detach()
    assert float(moved.diff(dim=3).abs().max()) < 0.5 * float(raw.diff(dim=3).abs().max())


@pytest.mark.parametrize("people", [[0, 0, 1, 1, 1, 2, 3, 4, 4, 5], [7, 3, 7, 1, 3, 9, 1, 1, 5, 0]])
def test_pairs_show_one_person_or_two_and_every_such_pair_occurs(people):
    who = torch.tensor(people)
    lessons = anonymiser.Lessons(torch.zeros(len(who), 1, 4, 4), None, who, False)
    first, second, same = lessons.pairs(4_000, generator(0))
    assert torch.equal(who[first] == who[second], same.bool())
    assert not bool((first == second).any())
    assert int(same.sum()) == 2_000
    wanted = who[:, None] == who[None]
    seen = torch.zeros(len(who), len(who), dtype=torch.bool)
    seen[first, second] = True
    # 18 or fewer true pairs among 2,000: one is missed with a chance below 1e-40; 82 or fewer false ones: 1e-8.
    assert torch.equal(seen, ~torch.eye(len(who), dtype=torch.bool) | (seen & wanted & torch.eye(len(who)).bool()))


def test_a_verifier_learns_people_and_the_generator_misleads_the_one_it_was_trained_against():
    with seeded(3):
        faces = torch.rand(12, 1, 8, 8)
    who = torch.arange(48) % 12
    images = faces.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)[who] + 0.1 * uniform(48, 1, 16, 16).samples
    lessons = anonymiser.Lessons((images / 1.1).clamp(0, 1), None, who, False)
    raw, changes = [], []
    for steps in (1, 60):
        course = anonymiser.AnonymiserCourse(120, steps, 16, 3e-3, 1.0, 1.0)
        painted = network(None)
        raw.append(anonymiser.train_anonymiser(painted, lessons, course, 8, 0)[0])
        changes.append(float((anonymiser.anonymised(painted, lessons.images) - lessons.images).abs().mean()))
    assert raw[0] == raw[1] > 0.9  # the same first course; of 256 true and 256 false pairs chance gives .5 +- .03
    assert changes[1] > 4 * changes[0]


@pytest.mark.parametrize("method", [PriCheXyNet, PrivacyNet])
def test_a_scheme_comes_back_from_its_state_and_releases_what_it_answers(method):
    public = people_of(24)
    scheme = method(**SMALL).fit(public, 0)
    again = method(**SMALL).load(scheme.state())
    key = again.sample_key(Secret.of_seed(1))
    release = key.release(public)
    assert torch.equal(release.samples, scheme.sample_key(Secret.of_seed(2)).query(public.samples))
    assert release.samples.shape == public.samples.shape
    assert 0 <= float(release.samples.min()) <= float(release.samples.max()) <= 1
    assert torch.equal(release.links, torch.arange(24)[:, None].repeat(1, 2))
    assert ("mean displacement, pixels" in scheme.notes()) == (method is PriCheXyNet)


def test_public_rows_without_enough_pairs_are_refused():
    with pytest.raises(NotApplicable, match=r"it needs 5 public people with several images, .* has 0"):
        PriCheXyNet(**SMALL).fit(people_of(24, images=1), 0)
    with pytest.raises(NotApplicable, match="has 0"):
        PriCheXyNet(**SMALL).fit(replace(people_of(24), subjects=None), 0)
    with pytest.raises(NotApplicable, match="has 1"):
        PriCheXyNet(**SMALL).fit(people_of(24, images=24), 0)
    with pytest.raises(NotApplicable, match="is a table"):
        PriCheXyNet(**SMALL).fit(replace(people_of(24), samples=torch.zeros(24, 5)), 0)


def test_images_of_another_shape_are_refused():
    key = PriCheXyNet(**SMALL).fit(people_of(24), 0).sample_key(Secret.of_seed(1))
    with pytest.raises(ValueError, match=r"images of shape \(1, 16, 16\), got \(1, 8, 8\)"):
        key.query(torch.zeros(2, 1, 8, 8))
