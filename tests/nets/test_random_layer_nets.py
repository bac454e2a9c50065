import pytest
import torch
from torch.nn.functional import layer_norm, selu

from bench.nets.obfuscator import draw_layer, draw_layers, random_layer, random_layers
from bench.randomness import Secret
from bench.seeds import generator


def made(locations=3, inputs=5, width=7, rows=4):
    source = generator(0)
    return torch.rand(rows, locations, inputs, generator=source), draw_layer(
        Secret.of_seed(0).stream().normal, locations=locations, inputs=inputs, width=width
    )


def test_each_location_has_a_map_of_its_own_then_selu_then_layer_norm():
    tokens, weights = made()
    out = random_layer(tokens, weights)
    for row in range(4):
        for place in range(3):
            mapped = weights[place, -1].clone()
            for number in range(5):
                mapped += tokens[row, place, number] * weights[place, number]
            assert torch.allclose(out[row, place], layer_norm(selu(mapped), (7,)), atol=1e-5)


def test_weights_and_biases_are_standard_normal():
    weights = draw_layer(Secret.of_seed(1).stream().normal, locations=16, inputs=64, width=64).double()
    for part in (weights[:, :-1], weights[:, -1]):
        # Five standard errors of mean, variance and fourth moment (variances 1, 2 and 96).
        for moment, expected, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
            assert abs(float(part.pow(moment).mean()) - expected) < 5 * (variance / part.numel()) ** 0.5


def test_six_layers_of_the_paper_hold_its_random_parameters():
    layers = draw_layers(Secret.of_seed(0).stream().normal, locations=16, inputs=256, width=256, layers=6)
    assert sum(weights.numel() for weights in layers) == 6 * 16 * 65_792
    assert round(sum(weights.numel() for weights in layers) / 1e6, 1) == 6.3


def test_layers_follow_each_other():
    tokens, _ = made()
    layers = draw_layers(Secret.of_seed(2).stream().normal, locations=3, inputs=5, width=7, layers=3)
    step = random_layer(random_layer(random_layer(tokens, layers[0]), layers[1]), layers[2])
    assert torch.equal(random_layers(tokens, layers), step)


def test_a_token_depends_on_its_own_row_and_place_only():
    tokens, weights = made()
    before = random_layer(tokens, weights)
    tokens[1, 2] += 1
    moved = (random_layer(tokens, weights) - before).abs().amax(dim=2) > 1e-6
    assert moved.nonzero().tolist() == [[1, 2]]


def test_the_first_layer_forgets_nothing_that_a_wide_one_could_keep():
    tokens, _ = made(locations=1, inputs=5, rows=200)
    code = random_layer(tokens, draw_layer(Secret.of_seed(3).stream().normal, locations=1, inputs=5, width=64))[:, 0]
    design = torch.cat((code, torch.ones(200, 1)), dim=1).double()
    fitted = design @ torch.linalg.lstsq(design, tokens[:, 0].double()).solution
    assert float((fitted - tokens[:, 0]).square().mean()) < 0.01 * float(tokens.var())


def test_the_same_generator_gives_the_same_weights():
    one, same, other = (
        draw_layer(Secret.of_seed(seed).stream().normal, locations=2, inputs=3, width=4) for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("sizes", [(0, 5, 7), (3, 0, 7), (3, 5, 0)])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        draw_layer(Secret.of_seed(0).stream().normal, locations=sizes[0], inputs=sizes[1], width=sizes[2])
    with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
        draw_layers(Secret.of_seed(0).stream().normal, locations=3, inputs=5, width=7, layers=0)


def test_tokens_that_do_not_fit_are_refused():
    tokens, weights = made()
    with pytest.raises(ValueError, match=r"read tokens \(b, 3, 5\), got shape \(4, 2, 5\)"):
        random_layer(tokens[:, :2], weights)
