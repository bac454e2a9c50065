import math
from dataclasses import replace

import pytest
import torch
from made.datasets import unlabelled
from safetensors.torch import load_file, save_file

from bench.conformance import conform
from bench.plugins.configured import configure
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, NotApplicable
from methods.cvae import CVAE, OverfittedCVAE

SMALL = {"hidden": 64, "latent": 4, "learning_rate": 5e-3, "batch": 128}
QUICK = {**SMALL, "epochs": 3}


def mixture(n=400, d=12, seed=0):
    """Two classes, each about a mean of its own in the same two directions, and a little noise."""
    random = generator(seed)
    number = torch.arange(n) % 2
    spread = torch.randn(n, 2, generator=random) @ torch.randn(2, d, generator=generator(9))
    rows = spread * (1 + 0.5 * number[:, None]) + 0.05 * torch.randn(n, d, generator=random)
    rows = rows + number[:, None] * torch.linspace(-3, 3, d)
    return Dataset("made", rows, number[:, None].float(), None, ("finding",), False, True)


def vectors(labels, seed=0, d=5):
    """Random rows with those labels."""
    labels = torch.tensor(labels)
    rows = torch.rand(len(labels), d, generator=generator(seed))
    return Dataset("made", rows, labels, None, tuple(map(str, range(labels.shape[1]))), False, True)


def release(method, data, seed=1):
    return method.fit(data, 0).sample_key(Secret.of_seed(seed)).release(data)


def within(release):
    """Total variance of rows within their classes."""
    parts = [release.samples[release.labels[:, 0] == value] for value in (0, 1)]
    return sum(float((part - part.mean(dim=0)).square().sum()) for part in parts) / len(release)


def membership_auc(release, members, others):
    """AUC of the negative distance to the nearest released row, members against others."""
    near, far = (torch.cdist(rows, release.samples).amin(dim=1) for rows in (members, others))
    return float((near[:, None] < far).double().mean() + 0.5 * (near[:, None] == far).double().mean())


def test_synthetic_rows_have_the_means_and_spreads_of_their_class():
    data = mixture()
    drawn = release(CVAE(beta=0.01, **SMALL), data)
    for value in (0, 1):
        rows, own = (each.samples[each.labels[:, 0] == value].double() for each in (drawn, data))
        deviation, n = own.std(dim=0), len(own)
        # Two samples of n: standard errors of their means' difference and their deviations' ratio; five of them.
        assert ((rows.mean(dim=0) - own.mean(dim=0)).abs() < 5 * deviation * math.sqrt(2 / n)).all()
        assert ((rows.std(dim=0) / deviation - 1).abs() < 5 * math.sqrt(1 / n)).all()


@pytest.mark.parametrize("variant", ["corrected", "official-code"])
def test_sampling_variance_widens_the_spread(variant):
    data = mixture(n=200)
    method = CVAE(variant=variant, beta=0.01, epochs=100, **SMALL)
    still, *spreads = (within(release(replace(method, variance=value), data)) for value in (0.0, 0.5, 1.0, 1.5))
    assert still < 1e-9
    assert spreads == sorted(spreads)
    assert spreads[2] > 1.3 * spreads[0]


def test_the_official_code_draws_wider_than_its_prior():
    data = mixture(n=200)
    method = CVAE(beta=0.02, **SMALL)
    corrected, prior, official = (
        within(release(replace(method, **chosen), data))
        for chosen in (
            {},
            {"variant": "official-code", "variance": math.sqrt(0.5)},
            {"variant": "official-code"},
        )
    )
    # Latents of twice the prior's variance, through a decoder that is almost linear here.
    assert 1.5 < official / prior < 2.1
    # At its true prior it draws as the corrected one does: 1 / root of n is the ratio's standard error; five of them.
    assert abs(prior / corrected - 1) < 5 / math.sqrt(200)


def test_directions_of_less_variance_than_half_of_beta_are_lost():
    data = replace(vectors([[0.0]] * 400), samples=torch.randn(400, 2, generator=generator(1)))
    unit = data.samples / (data.samples.amax(dim=0) - data.samples.amin(dim=0))
    least, greatest = torch.linalg.eigvalsh(torch.cov(unit.T)).tolist()
    whole = float(data.samples.var(dim=0).sum())

    def share(beta):
        return float(release(CVAE(beta=beta, **SMALL), data).samples.var(dim=0).sum()) / whole

    assert greatest < 0.05
    assert share(0.1) < 0.05
    # Each direction keeps 1 - beta / 2 variance; root(2 / n) is the standard error of a variance's ratio; five of them.
    assert share(0.002) > 1 - 0.001 / least - 5 * math.sqrt(2 / 400)


def test_class_counts_are_kept_in_any_imbalance():
    nan = math.nan
    labels = [[0.0, 1.0]] * 120 + [[1.0, nan]] * 13 + [[nan, nan]] * 6 + [[1.0, 1.0]]
    data = vectors(labels)
    drawn = release(CVAE(**QUICK), data)
    assert drawn.links is None
    assert drawn.generator is None
    assert sorted(map(str, drawn.labels.tolist())) == sorted(map(str, data.labels.tolist()))
    assert str(drawn.labels.tolist()) != str(data.labels.tolist())  # not in the owner's order


def test_rows_without_labels_are_one_class():
    data = replace(vectors([[0.0]] * 20), labels=None)
    for publish in ("set", "decoder"):
        drawn = release(CVAE(publish=publish, **QUICK), data)
        assert drawn.labels is None
        assert drawn.samples.shape == data.samples.shape


def test_constant_columns_stay_constant():
    data = vectors([[0.0], [1.0]] * 20)
    constant = data.samples.clone()
    constant[:, 1], constant[:, 3] = 0.1, -7e5
    drawn = release(CVAE(**QUICK), replace(data, samples=constant)).samples
    assert (drawn[:, [1, 3]] == constant[:, [1, 3]]).all()
    assert (drawn[:, 0].std() > 0).all()
    still = replace(data, samples=constant[:1].expand(40, -1).clone())
    assert torch.equal(release(CVAE(beta=0.1, **QUICK), still).samples, still.samples)


def test_rows_stay_within_the_private_ranges():
    data = mixture(n=100)
    drawn = release(CVAE(variance=25.0, **QUICK), data).samples
    slack = 1e-5 * data.samples.abs().max()
    assert (drawn >= data.samples.amin(dim=0) - slack).all()
    assert (drawn <= data.samples.amax(dim=0) + slack).all()


def test_held_out_people_are_others_and_every_class_is_learned():
    labels = [[0.0]] * 60 + [[1.0]] * 2
    data = replace(vectors(labels), subjects=torch.cat((torch.arange(60) // 3, torch.tensor([7, 99]))))
    number = data.labels[:, 0].long()
    scheme, seen = CVAE(held_out=0.5).fit(data, 0), set()
    for seed in range(20):
        learned, held = scheme.sample_key(Secret.of_seed(seed)).parts(data, number)
        assert sorted([*learned.tolist(), *held.tolist()]) == list(range(62))
        assert not set(data.subjects[learned].tolist()) & set(data.subjects[held].tolist())
        assert number[learned].sum() > 0
        seen |= set(held.tolist())
    assert seen > set(range(60))
    # Two rows of two classes: none can be spared, and the learned rows themselves are judged by.
    pair = vectors([[0.0], [1.0]])
    learned, held = scheme.sample_key(Secret.of_seed(0)).parts(pair, torch.tensor([0, 1]))
    assert sorted(learned.tolist()) == [0, 1]
    assert torch.equal(learned, held)


def test_an_over_fitted_cvae_is_caught_and_a_cvae_of_many_rows_is_not():
    members, others = (mixture(n=30, d=8, seed=seed) for seed in (1, 2))
    caught = membership_auc(release(OverfittedCVAE(), members), members.samples, others.samples)
    # Under chance, n and m rows give an AUC of deviation root((n + m + 1) / (12 n m)) about 1/2; five of them.
    assert caught > 0.5 + 5 * math.sqrt(61 / (12 * 900))
    members, others = (mixture(n=300, seed=seed) for seed in (1, 2))
    told = membership_auc(release(CVAE(**SMALL), members), members.samples, others.samples)
    assert abs(told - 0.5) < 5 * math.sqrt(601 / (12 * 90000))


@pytest.mark.parametrize("method", [CVAE(publish="decoder", **QUICK), OverfittedCVAE(publish="decoder", epochs=3)])
def test_a_published_decoder_survives_a_file(tmp_path, method):
    data = vectors([[0.0, math.nan]] * 30 + [[1.0, 0.0]] * 10)
    scheme = method.fit(data, 0)
    published = scheme.sample_key(Secret.of_seed(1)).release(data).generator
    save_file({name: tensor.contiguous() for name, tensor in published.state().items()}, tmp_path / "decoder")
    loaded = scheme.load_generator(load_file(tmp_path / "decoder"))
    one, other, third = published.sample(50, 3), loaded.sample(50, 3), loaded.sample(50, 4)
    assert torch.equal(one.samples, other.samples)
    assert torch.equal(one.labels.nan_to_num(-1), other.labels.nan_to_num(-1))
    assert not torch.equal(one.samples, third.samples)


def test_a_decoder_draws_classes_by_their_proportions():
    data = vectors([[0.0]] * 90 + [[1.0]] * 10)
    made = release(CVAE(publish="decoder", **QUICK), data)
    assert len(made) == 100
    share = float(made.generator.sample(10_000, 3).labels.mean())
    assert abs(share - 0.1) < 5 * math.sqrt(0.1 * 0.9 / 10_000)


def published_state():
    data = vectors([[0.0]] * 15 + [[1.0]] * 5)
    scheme = CVAE(publish="decoder", **QUICK).fit(data, 0)
    return scheme, dict(scheme.sample_key(Secret.of_seed(1)).release(data).generator.state())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("decoder.0.weight", lambda x: None, "needs decoder.0.weight: got"),
        ("more", lambda x: torch.zeros(1), "holds more: expected only centre classes"),
        ("decoder.0.weight", lambda x: x.T, r"decoder.0.weight must be torch.float32 of shape \(64, 6\), got"),
        ("decoder.2.bias", lambda x: x[1:], r"decoder.2.bias must be torch.float32 of shape \(5,\), got .* \(4,\)"),
        ("decoder.2.weight", lambda x: x / 0, "decoder.2.weight must be finite: 320 of its 320 numbers are not"),
        ("minimum", lambda x: x.double(), r"minimum must be torch.float32 of shape \(5,\), got torch.float64"),
        ("extent", lambda x: -x, "extent must be at least 0, got -"),
        ("classes", lambda x: x[:, 0], r"classes must be torch.float32 of shape \(2, 0\), got .* \(2,\)"),
        ("proportions", lambda x: 2 * x, "proportions must be at least 0 with sum 1"),
        ("centres", lambda x: x[:, :3], r"centres must be torch.float32 of shape \(2, 4\)"),
        ("centre classes", lambda x: x * 0, "centre classes must be the numbers 0 to 1, each at least once"),
        ("deviation", lambda x: x * torch.nan, "deviation must be finite"),
    ],
)
def test_a_state_of_no_decoder_is_refused(name, change, message):
    scheme, state = published_state()
    changed = change(state.pop(name, None))
    if changed is not None:
        state[name] = changed
    with pytest.raises(ValueError, match=message):
        scheme.load_generator(state)


def test_rows_that_cannot_be_learned_are_refused():
    data = vectors([[0.0], [1.0]] * 10)
    key = CVAE(**QUICK).fit(data, 0).sample_key(Secret.of_seed(1))
    broken = data.samples.clone()
    broken[3, 1], broken[3, 2], broken[8, 0] = torch.nan, torch.inf, -torch.inf
    with pytest.raises(ValueError, match="features must be finite: 2 of 20 rows of made are not"):
        key.release(replace(data, samples=broken))
    with pytest.raises(NotApplicable, match="cvae needs at least 2 rows to learn from, got 1"):
        key.release(data.take(torch.tensor([0])))
    with pytest.raises(NotApplicable, match="made has 1, needs at least 2"):
        key.release(replace(data, subjects=torch.zeros(20, dtype=torch.int64)))


def test_images_are_not_applicable():
    images = unlabelled(torch.rand(9, 1, 8, 8))
    with pytest.raises(NotApplicable, match=r"made is images: choose --features"):
        CVAE().fit(images, 0)


def test_a_published_decoder_satisfies_the_contract():
    results = conform("methods", "cvae[publish=decoder,epochs=2]", torch.device("cpu"))
    found = {result.check: result for result in results}
    assert not [result for result in results if result.status == "failed"]
    for check in ("draws what it is asked for", "obeys its seed", "saves and loads"):
        assert found[f"generator {check}"].status == "passed"


def test_columns_that_do_not_vary_together_keep_their_spread_by_default_and_lose_it_under_the_papers_beta():
    """The share of each of 16 uncorrelated columns is their variance, and a twentieth of it is lost."""
    rows = torch.randn(400, 16, generator=generator(4))
    data = Dataset("made", rows, (rows[:, :1] > 0).float(), None, ("finding",), False, True)
    usual = CVAE(hidden=64, latent=16, learning_rate=5e-3, batch=64, epochs=150)
    kept, lost = (within(release(method, data)) / within(data) for method in (usual, replace(usual, beta=0.1)))
    assert kept > 0.7
    assert lost < 0.1


def test_beta_follows_the_spread_of_the_columns_and_not_what_classes_differ_by():
    rows = torch.rand(60, 8, generator=generator(2))
    number = torch.arange(60) % 3
    method = CVAE(latent=4)
    found = method.weight(rows, number)
    assert found == pytest.approx(
        0.1 * sum(float(rows[number == k].var(dim=0, correction=0).sum()) for k in range(3)) / 12
    )
    assert method.weight(rows + 5 * number[:, None], number) == pytest.approx(found, rel=1e-5)
    assert method.weight(rows / 2, number) == pytest.approx(found / 4)


@pytest.mark.parametrize("number", [torch.arange(6), torch.zeros(6)])
def test_without_two_rows_of_a_class_that_differ_there_is_no_beta_by_default(number):
    """It would be 0, and every class would come out as the row that it is."""
    rows = torch.ones(6, 3) if number.amax() == 0 else torch.rand(6, 3)
    with pytest.raises(NotApplicable, match=r"in no class do two of them.*set beta \(the paper's is 0.1\)"):
        CVAE(**SMALL).weight(rows, number)
    assert CVAE(variant="official-code", **SMALL).weight(rows, number) == 0.1


def test_the_papers_beta_is_that_of_its_preset_and_of_its_code():
    rows, number = torch.rand(20, 8, generator=generator(2)), torch.zeros(20)
    assert configure("methods", "cvae", "paper").plugin.beta == 0.1
    assert CVAE(beta=0.1).weight(rows, number) == 0.1
    assert CVAE(variant="official-code").weight(rows, number) == 0.1
    assert OverfittedCVAE().weight(rows, number) == 0
