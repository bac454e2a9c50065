import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.stats import laplace
from torch import nn
from yaml import safe_load

import bench
from bench.conformance.outcome import sample_data
from bench.nets.cinn import levels_of
from bench.plugins.configured import configure, to_fit
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from methods.cadp import CADP, IMAGE_NOISE
from methods.dp_sgd import DPSGD

SMALL = {"blocks": 1, "width": 4, "flat_blocks": 1, "flat_width": 8, "steps": 4, "train_batch": 16}
VARIANTS = ("paper", "corrected", "official-code")
FINDINGS = ("first", "second")


def images(n=40, seed=0, labels=True, findings=FINDINGS):
    random = torch.Generator().manual_seed(seed)
    known = (torch.rand(n, len(findings), generator=random) < 0.5).float() if labels else None
    return Dataset("made", torch.rand(n, 1, 8, 8, generator=random), known, None, findings, False, True)


def table(n=60, seed=0):
    """A float column, one with values 1 and 2, a constant one and a large one."""
    random = torch.Generator().manual_seed(seed)
    sex = 1.0 + torch.randint(2, (n,), generator=random)
    numbers = torch.randn(n, 2, generator=random)
    columns = (numbers[:, 0], sex, torch.full((n,), 3.0), 100 * numbers[:, 1] + 50 * sex)
    return Dataset("made", torch.stack(columns, dim=1), torch.ones(n, 1), None, ("finding",), False, True)


@pytest.fixture(scope="module")
def state():
    """A flow for images that depends on its condition: more than the few steps of the tests would teach it."""
    found = dict(CADP(**SMALL).fit(images(seed=1), 0).state())
    random = torch.Generator().manual_seed(0)
    for name, tensor in found.items():
        if "subnet" in name:
            found[name] = 0.1 * torch.randn(tensor.shape, generator=random)
    return found


def loaded(state, **choices):
    return CADP(**SMALL, **choices).load(state)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_the_papers_rule_makes_the_noise_the_same_for_every_epsilon_up_to_eight(state, epsilon):
    notes = loaded(state, variant="paper", epsilon=epsilon).notes()
    assert notes["noise scale b"] == pytest.approx(0.5)
    assert notes["sensitivity s"] == pytest.approx(epsilon / 2)
    assert loaded(state, variant="corrected", epsilon=epsilon).notes()["noise scale b"] == pytest.approx(1.0)


def test_beyond_eight_the_norm_stays_and_the_noise_falls(state):
    notes = loaded(state, variant="paper", epsilon=16.0).notes()
    assert (notes["sensitivity s"], notes["noise scale b"]) == (4.0, 0.25)
    assert loaded(state, variant="paper", epsilon=2.0, sensitivity=6.0).notes()["noise scale b"] == 3.0


def test_claimed_and_derived_bounds_of_the_variants(state):
    bounds = {variant: loaded(state, variant=variant, epsilon=3.0).claim() for variant in VARIANTS}
    assert all(claim.epsilon == 3.0 and claim.unit == "image" for claim in bounds.values())
    assert {name: claim.derived for name, claim in bounds.items()} == {
        "paper": 6.0, "corrected": 3.0, "official-code": 2 * 64 * 3.0
    }  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_two_inputs_differ_by_more_than_the_derived_bound_and_witnesses_attain_it(state, variant):
    scheme = loaded(state, variant=variant, epsilon=3.0)
    mechanism, bound = scheme.mechanism(), scheme.claim().derived
    pairs = mechanism.witnesses(images())
    losses = [
        float(((mechanism.locate(first) - mechanism.locate(second)).abs() / mechanism.scale).sum())
        for first, second in pairs
    ]
    assert losses[:-1] == pytest.approx([bound] * (len(pairs) - 1), rel=0.01)
    assert 0 < losses[-1] < bound
    assert all(first.labels.nan_to_num(-1).equal(second.labels.nan_to_num(-1)) for first, second in pairs)
    assert any(first.labels.isnan().all() for first, _ in pairs)
    assert any(first.labels.isfinite().all() for first, _ in pairs)


def test_the_official_code_clips_what_leaves_a_level_by_itself_and_the_bound_counts_all_parts():
    method = CADP(**SMALL, splits="0.5+0.5", variant="official-code", epsilon=3.0)
    scheme = method.fit(images(seed=1), 0)
    mechanism, bound = scheme.mechanism(), scheme.claim().derived
    latent = torch.randn(7, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    latent[:, :16] *= 100
    norms = [part.abs().sum(dim=0).amax() for part in mechanism.normed(latent).split(mechanism.flow.parts, dim=1)]
    assert [float(norm) for norm in norms] == pytest.approx([mechanism.norm] * 3, rel=1e-6)
    assert bound == pytest.approx(2 * 64 * 3.0)
    first, second = mechanism.witnesses(images())[0]
    apart = (mechanism.locate(first) - mechanism.locate(second)).abs() / mechanism.scale
    assert float(apart.sum()) == pytest.approx(bound, rel=0.01)
    whole = replace(method, variant="corrected").fit(images(seed=1), 0).mechanism()
    assert torch.allclose(whole.locate(images(5)).abs().sum(dim=1), torch.tensor(whole.norm, dtype=torch.float64))
    assert scheme.sample_key(Secret.of_seed(1)).release(images(5)).samples.isfinite().all()


@pytest.mark.parametrize(("rows", "batch"), [(1, 512), (7, 512), (9, 4)])
def test_a_changed_row_moves_the_official_codes_batch_by_at_most_two_s_for_every_column(state, rows, batch):
    mechanism = loaded(state, variant="official-code", sensitivity=1.5, batch=batch).mechanism()
    random = torch.Generator().manual_seed(rows)
    for size in (0.01, 1.0, 100.0):
        latent = torch.randn(rows, 64, generator=random, dtype=torch.float64)
        changed = latent.clone()
        changed[0] = size * torch.randn(64, generator=random, dtype=torch.float64)
        one, other = mechanism.normed(latent), mechanism.normed(changed)
        assert (one - other).abs().sum() <= 2 * 64 * 1.5
        assert torch.equal(one[batch:], other[batch:])
        short = latent[:1] * 1e-3
        torch.testing.assert_close(mechanism.normed(short), short, atol=1e-7, rtol=0)  # a clip leaves it as it is
        assert float(one[:batch].abs().sum(dim=0).amax()) == pytest.approx(1.5, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e3, 1e6, 1e12])
def test_a_large_epsilon_leaves_a_latent_whole(state, epsilon):
    """Noise is so small then that a grid as fine as it is has to reach far: not 256 scales, but to the norm."""
    private = images(5)
    for variant in ("paper", "corrected"):
        scheme = loaded(state, variant=variant, epsilon=epsilon)
        mechanism = scheme.mechanism()
        alone = torch.eye(64, dtype=torch.float64)[:3]
        torch.testing.assert_close(mechanism.normed(alone), alone * mechanism.norm, rtol=1e-6, atol=0)
        ends = [(mechanism.locate(a) - mechanism.locate(b)).abs().sum() for a, b in mechanism.witnesses(private)[:2]]
        assert float(max(ends)) / mechanism.noise_scale == pytest.approx(scheme.claim().derived, rel=1e-3)


@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_every_row_is_brought_to_the_norm_by_itself(state, variant):
    mechanism = loaded(state, variant=variant, sensitivity=1.5).mechanism()
    data = images(9)
    located = mechanism.locate(data)
    torch.testing.assert_close(located.abs().sum(dim=1), torch.full((9,), 1.5, dtype=torch.float64))
    torch.testing.assert_close(mechanism.locate(data.take(torch.tensor([4]))), located[4:5], atol=1e-6, rtol=1e-5)
    short = 1e-3 * torch.ones(1, 64, dtype=torch.float64)
    assert float(mechanism.normed(short).abs().sum()) == pytest.approx(1.5)  # lengthened: a division, no clip
    assert torch.equal(mechanism.normed(0 * short), 0 * short)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_added_to_the_latents_is_laplace_noise_of_the_stated_scale(state, variant):
    scheme, data = loaded(state, variant=variant, epsilon=2.0), images(1200, seed=3)
    mechanism = scheme.mechanism()
    noise = mechanism.noise(
        mechanism.locate(data), mechanism.observe(scheme.sample_key(Secret.of_seed(1)).release(data))
    ).flatten()
    # Dvoretzky-Kiefer-Wolfowitz: P(distance > t) <= 2 exp(-2 n t^2); t for one in 10^9.
    threshold = math.sqrt(math.log(2e9) / (2 * len(noise)))
    steps = torch.arange(1, len(noise) + 1) / len(noise)
    distance = float((torch.from_numpy(laplace.cdf(noise.sort().values)) - steps).abs().max())
    assert distance < threshold
    wrong = float((torch.from_numpy(laplace.cdf(noise.sort().values, scale=1.1)) - steps).abs().max())
    assert wrong > threshold  # the test can tell a wrong scale


def test_noise_belongs_to_the_key_the_rows_and_their_labels(state):
    scheme, data = loaded(state), images(4)
    mechanism, key = scheme.mechanism(), scheme.sample_key(Secret.of_seed(1))
    relabelled = replace(data, labels=1 - data.labels)
    changed = replace(data, samples=data.samples.flip(0))
    added = [
        mechanism.noise(mechanism.locate(rows), mechanism.observe(owner.release(rows)))
        for owner, rows in (
            (key, data),
            (scheme.sample_key(Secret.of_seed(2)), data),
            (key, relabelled),
            (key, changed),
        )
    ]
    drawn = torch.cat(added)
    assert (torch.cdist(drawn, drawn, p=1) + 64 * torch.eye(len(drawn)) > 32).all()
    assert torch.equal(key.release(data).samples, key.release(data).samples)


def test_labels_find_their_findings_by_name(state):
    mechanism, data = loaded(state).mechanism(), images(6)
    swapped = replace(data, labels=data.labels.flip(1), findings=FINDINGS[::-1])
    assert torch.equal(mechanism.locate(swapped), mechanism.locate(data))
    only = replace(data, labels=data.labels[:, 1:], findings=("second",))
    unknown = data.labels.clone()
    unknown[:, 0] = torch.nan
    assert torch.equal(mechanism.locate(only), mechanism.locate(replace(data, labels=unknown)))
    assert not torch.equal(mechanism.locate(only), mechanism.locate(data))
    strange = replace(data, labels=data.labels[:, :1], findings=("third",))
    assert torch.equal(mechanism.locate(strange), mechanism.locate(replace(data, labels=None)))


def test_released_labels_are_read_under_the_public_findings(state):
    scheme, data = loaded(state), images(6)
    only = replace(data, labels=data.labels[:, 1:], findings=("second",))
    release, mechanism = scheme.sample_key(Secret.of_seed(1)).release(only), scheme.mechanism()
    with pytest.raises(NotApplicable, match=r"expected 2 columns \(first, second\), the release has 1"):
        mechanism.observe(release)
    named = torch.cat((torch.full_like(only.labels, torch.nan), only.labels), dim=1)
    seen = mechanism.observe(replace(release, labels=named)) - mechanism.locate(only)
    assert float((seen / mechanism.scale).abs().mean()) == pytest.approx(1.0, abs=0.3)  # 384 sizes of mean 1: 6 sd


def test_labels_say_nothing_to_a_flow_without_public_ones():
    scheme, data = CADP(**SMALL).fit(images(labels=False), 0), images(6)
    mechanism, release = scheme.mechanism(), scheme.sample_key(Secret.of_seed(1)).release(data)
    assert release.labels is not None
    assert torch.equal(mechanism.observe(release), mechanism.observe(replace(release, labels=None)))


def test_unknown_is_neither_yes_nor_no(state):
    conditions = loaded(state).mechanism().conditions
    labels = torch.tensor([[1.0, 0.0], [0.25, math.nan]])
    expected = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.25, 0.0, 0.75, 0.0]])
    assert torch.equal(conditions.read(torch.zeros(2, 1, 8, 8), labels, FINDINGS), expected)


def test_classes_are_one_hot():
    data = replace(images(), labels=torch.eye(2).repeat(20, 1), exclusive=True)
    conditions = CADP(**SMALL).fit(data, 0).mechanism().conditions
    assert torch.equal(conditions.read(data.samples, data.labels, FINDINGS), data.labels)


def test_rows_without_labels_are_released_without():
    data = images(labels=False)
    release = CADP(**SMALL).fit(data, 0).sample_key(Secret.of_seed(1)).release(data)
    assert release.labels is None
    assert bool(release.samples.isfinite().all())


def test_labels_and_queries_stay_as_they_are(state):
    key, data = loaded(state).sample_key(Secret.of_seed(1)), images(5)
    assert torch.equal(key.release(data).labels, data.labels)
    assert torch.equal(key.query(data.samples), data.samples)


def test_a_column_as_condition_is_released_as_it_is_and_said_so():
    data = table()
    scheme = CADP(**SMALL, condition="1").fit(data, 0)
    released = scheme.sample_key(Secret.of_seed(1)).release(data).samples
    assert torch.equal(released[:, 1], data.samples[:, 1])
    assert not (released[:, [0, 2, 3]] == data.samples[:, [0, 2, 3]]).any()
    assert scheme.claim().unit == "record"
    assert "same columns [1] (counted from 0) and labels count as neighbours" in scheme.claim().assumptions
    assert "[1] (counted from 0) and labels are released as they are" in scheme.claim().assumptions
    mechanism = scheme.mechanism()
    assert len(mechanism.scale) == 3
    other = replace(data, samples=data.samples.clone())
    other.samples[:, 1] = 3 - other.samples[:, 1]
    assert not torch.equal(mechanism.locate(other), mechanism.locate(data))  # the flow reads it
    noise = mechanism.noise(
        mechanism.locate(data), mechanism.observe(scheme.sample_key(Secret.of_seed(1)).release(data))
    )
    assert float(noise.abs().mean()) == pytest.approx(1.0, abs=0.45)  # 180 sizes of mean 1, deviation 1: 6 sd


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_row_whose_latent_overflows_is_refused_rather_than_released_far_beyond_the_norm(variant):
    data = table()
    scheme = CADP(**SMALL, variant=variant, batch=7).fit(data, 0)
    large = data.samples.clone()
    large[3, 0] = math.inf  # as 1e38 has become after a few couplings
    with pytest.raises(ValueError, match="a row is not finite, or so large"):
        scheme.sample_key(Secret.of_seed(1)).release(replace(data, samples=large))


def test_every_row_is_seen_150_times_where_a_batch_would_hold_more_than_there_are(monkeypatch):
    class AskedError(Exception):
        pass

    def train(flow, rows, told, course, **_):
        raise AskedError(course.steps, len(rows))

    monkeypatch.setattr("bench.nets.normalising_flow.train_flow", train)
    with pytest.raises(AskedError, match=r"\(150, 54\)"):
        CADP(**SMALL | {"steps": 1000, "train_batch": 442}).fit(table(), 0)


def test_the_official_code_decodes_under_columns_that_it_draws_at_random():
    data = table()
    scheme = CADP(**SMALL, condition="1", variant="official-code").fit(data, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    released = key.release(data).samples
    values = data.samples[:, 1].unique()
    assert torch.equal(released[:, 1].unique(), values)
    same = float((released[:, 1] == data.samples[:, 1]).float().mean())
    assert same == pytest.approx(1 / len(values), abs=5 / 2 / len(data) ** 0.5)  # five deviations of a coin
    assert torch.equal(key.release(data).samples, released)
    assert "columns are drawn at random, labels are released as they are" in scheme.claim().assumptions
    mechanism = scheme.mechanism()
    noise = mechanism.noise(mechanism.locate(data), mechanism.observe(key.release(data)))
    assert float(noise.abs().mean()) == pytest.approx(1.0, abs=0.45)  # found under the columns that were drawn


def test_a_coupling_s_clamp_is_the_code_s_unless_told(state):
    def flow(clamp):
        return CADP(**SMALL, clamp=clamp).fit(table(), 0).mechanism().flow

    assert flow(None).state_dict().keys() == flow(1.2).state_dict().keys()
    with pytest.raises(ValueError, match="clamp"):
        CADP(clamp=0.0)
    assert CADP(**CADP.presets["paper"]).downsampling == "i-revnet"


def test_the_paper_preset_is_the_paper_s_column_of_chest_x_rays():
    paper = CADP(**CADP.presets["paper"])
    levels = levels_of((1, 128, 128), paper.levels)
    stated = (
        paper.coupling,
        levels,
        paper.blocks,
        paper.flat_blocks,
        IMAGE_NOISE,
        paper.learning_rate,
        paper.train_batch,
    )
    assert stated == ("glow", 4, 4, 4, 0.15, 3e-4, 64)
    assert (paper.flat_width, paper.steps, paper.batch, paper.downsampling) == (1024, 50_000, 64, "i-revnet")
    assert CADP.sides["paper"] == 128


def test_the_mnist_suite_is_the_paper_s_column_of_mnist():
    suite = safe_load((Path(bench.__file__).parent / "suites" / "cadp-mnist.yaml").read_text(encoding="utf-8"))
    made = [configure("methods", method, "paper").plugin for method in suite["methods"]]
    flows = [method for method in made if isinstance(method, CADP)]
    column = {(flow.flat_blocks, flow.flat_width, flow.train_batch, flow.learning_rate) for flow in flows}
    assert column == {(2, 392, 512, 5e-4)}
    assert {(flow.coupling, flow.batch) for flow in flows if flow.variant == "official-code"} == {("glow", 512)}
    assert {flow.coupling for flow in flows if flow.variant != "official-code"} == {"gin"}
    baselines = [method for method in made if isinstance(method, DPSGD) and method.network == "strided"]
    assert {(own.epochs, own.batch, own.clip_norm, own.optimiser) for own in baselines} == {(40, 512, 10.0, "adam")}


def test_a_table_is_learned_by_a_flow_as_wide_as_asked_and_for_as_long_as_asked():
    made = CADP(**(SMALL | {"flat_width": 64, "steps": 30, "train_batch": 60})).fit(table(), 0)
    assert {layer.out_features for layer in made.noise.flow.modules() if isinstance(layer, nn.Linear)} >= {64}
    assert made.notes()["training steps"] == 30
    short = CADP(**(SMALL | {"steps": 30, "train_batch": 60, "most_epochs": 4})).fit(table(), 0)
    assert short.notes()["training steps"] == 4


@pytest.mark.parametrize(
    ("data", "condition", "reason"),
    [
        (images(), "1", "made holds images"),
        (table(), "4", "made has 0 to 3"),
        (table(), "0+1", "at most 20 values: column 0 of made has 60"),
        (table(), "0", "at most 20 values"),
    ],
)
def test_columns_that_cannot_be_conditions_are_not_applicable(data, condition, reason):
    with pytest.raises(NotApplicable, match=reason):
        CADP(**SMALL, condition=condition).fit(data, 0)


def test_one_trained_flow_serves_every_epsilon_and_variant(state):
    data = images(5)
    for choices in ({"epsilon": 0.3}, {"variant": "paper"}, {"variant": "official-code", "batch": 3}):
        method = CADP(**SMALL, **choices)
        assert to_fit(method) == CADP(**SMALL)
        fitted, shared = method.fit(images(seed=1), 0), method.load(CADP(**SMALL).fit(images(seed=1), 0).state())
        assert torch.equal(
            fitted.sample_key(Secret.of_seed(1)).release(data).samples,
            shared.sample_key(Secret.of_seed(1)).release(data).samples,
        )
        assert fitted.claim() == shared.claim()
        assert fitted.notes() == shared.notes()


def test_notes_say_what_the_flow_was_trained_on(state):
    notes = loaded(state).notes()
    assert (notes["public rows trained on"], notes["held-out public rows"]) == (36, 4)
    assert math.isfinite(notes["bits per dimension"])
    assert "nats per dimension" in CADP(**SMALL).fit(table(), 0).notes()


def test_any_image_that_the_levels_divide_will_do():
    data = sample_data(rows=12)
    colour = replace(data, samples=data.samples[..., :12].expand(-1, 3, -1, -1).clone())
    released = (
        CADP(**SMALL, coupling="gin", downsampling="i-revnet")
        .fit(colour, 0)
        .sample_key(Secret.of_seed(1))
        .release(colour)
    )
    assert released.samples.shape == (12, 3, 64, 12)
    with pytest.raises(NotApplicable, match=r"set levels \(or splits\) to at most that"):
        CADP(**SMALL, levels=3).fit(colour, 0)
