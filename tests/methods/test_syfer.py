import hashlib
import json
import re
from pathlib import Path

import pytest
import safetensors.torch
import torch
from made.datasets import unlabelled

from bench.contract.source import DataError
from bench.plugins.configured import configure
from bench.plugins.spec import parameters
from bench.randomness import Secret
from bench.types import CAVEAT, Dataset, NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from methods.syfer import Syfer, SyferRandom

TINY = {"patch_size": 8, "width": 16, "blocks": 2, "depth": 1}
SHORT = {**TINY, "steps": 6, "batch": 8, "opponent_width": 16, "opponent_depth": 1}
UNBALANCED = torch.ones(24, 1).index_fill(0, torch.arange(3), 0.0)


def images(n=24, shape=(1, 16, 16), seed=0, exclusive=False, labels=None):
    samples = torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))
    if labels is None:
        rows = torch.arange(n)
        labels = torch.stack((rows % 2, rows // 2 % 2), dim=1).float()
    findings = tuple(f"finding {k}" for k in range(labels.shape[1]))
    return Dataset("made", samples, labels, None, findings, exclusive, True)


def key(method, number=1, public=None):
    return method.fit(images() if public is None else public, 0).sample_key(Secret.of_seed(number))


@pytest.mark.parametrize("method", [SyferRandom(**TINY), Syfer(**SHORT)])
def test_a_release_is_an_image_of_normalised_tokens(method):
    released = key(method).release(images()).samples
    assert released.shape == (24, 1, 8, 8)  # 2 x 2 tokens of 4 x 4
    tokens = released.reshape(24, 2, 4, 2, 4).transpose(2, 3).reshape(24, 4, 16)
    assert torch.allclose(tokens.mean(dim=2), torch.zeros(24, 4), atol=1e-5)
    assert torch.allclose(tokens.var(dim=2, correction=0), torch.ones(24, 4), atol=1e-3)


def test_paper_sized_patches_give_images_of_the_same_shape():
    private = images(n=4, shape=(1, 32, 48))
    assert key(SyferRandom(blocks=1), public=private).release(private).samples.shape == private.samples.shape


def test_the_paper_preset_has_the_stated_sizes():
    preset = Syfer(**Syfer.presets["paper"])
    assert (preset.steps, preset.batch, preset.blocks, preset.patch_size) == (50_000, 128, 5, 16)
    scheme = SyferRandom(**SyferRandom.presets["paper"]).fit(images(n=2, shape=(1, 64, 64)), 0)
    learned = sum(weight.numel() for weight in scheme.network.parameters())
    random = sum(layer.numel() for layer in scheme.sample_key(Secret.of_seed(0)).layers)
    assert round(learned / 1e6, 1) == 6.6
    assert round(random / 1e6, 1) == 6.3
    assert round((learned + random) / 1e6, 1) == 12.9


@pytest.mark.parametrize("preset", Syfer.presets)
def test_every_preset_shapes_the_random_ablation_like_syfer(preset):
    method, ablation = Syfer(**Syfer.presets[preset]), SyferRandom(**SyferRandom.presets[preset])
    for size in ("patch_size", "width", "blocks", "depth"):
        assert getattr(method, size) == getattr(ablation, size)


def test_training_changes_the_learned_layers_and_nothing_else():
    random = dict(SyferRandom(**TINY).fit(images(), 0).state())
    trained = dict(Syfer(**SHORT).fit(images(), 0).state())
    moved = {name for name in random if not torch.equal(random[name], trained[name])}
    assert moved
    assert all(name.startswith(("stacks.", "enter.")) for name in moved)


def test_the_same_seed_gives_the_same_bits():
    one, same, other = (
        Syfer(**SHORT).fit(images(), seed).sample_key(Secret.of_seed(1)).release(images()) for seed in (0, 0, 1)
    )
    assert torch.equal(one.samples, same.samples)
    assert not torch.allclose(one.samples, other.samples)


def test_keys_differ_and_a_key_repeats():
    scheme = SyferRandom(**TINY).fit(images(), 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)).release(images()).samples for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


@pytest.mark.parametrize("method", [SyferRandom(**TINY), Syfer(**SHORT)])
def test_schemes_and_keys_survive_their_states(method):
    scheme = method.fit(images(), 0)
    original = scheme.sample_key(Secret.of_seed(1))
    again = method.load(dict(scheme.state())).load_key(dict(original.state()))
    for a, b in zip(vars(original.release(images())).values(), vars(again.release(images())).values(), strict=True):
        assert a is b is None or torch.equal(a, b)
    scores = torch.rand(3, 2)
    assert torch.equal(original.decode(scores), again.decode(scores))


def test_an_encoding_does_not_depend_on_its_batch():
    private, secret = images(), key(SyferRandom(**TINY))
    whole = secret.release(private).samples
    assert torch.allclose(secret.query(private.samples[3:4]), whole[3:4], atol=1e-5)
    assert torch.allclose(secret.query(private.samples.flip(0)), whole.flip(0), atol=1e-5)


def test_colour_images_and_a_single_patch_are_encoded():
    for shape, patch_size, side in (((3, 16, 16), 8, 8), ((1, 8, 8), 8, 4)):  # 3 x 16 numbers: 8 x 8 hold them
        private = images(shape=shape)
        released = key(SyferRandom(patch_size=patch_size, width=16), public=private).release(private).samples
        assert released.shape == (24, 1, side * shape[1] // patch_size, side * shape[2] // patch_size)


@pytest.mark.parametrize(
    ("shape", "patch_size", "width", "ratio"),
    [
        ((1, 64, 64), 16, 256, 1),
        ((1, 64, 64), 32, 1024, 1),
        ((3, 32, 32), 16, 784, 768 / 784),
        ((1, 28, 28), 7, 64, 49 / 64),
    ],
)
def test_a_token_holds_its_patch_unless_it_is_asked_to_be_narrower(shape, patch_size, width, ratio):
    told = SyferRandom(patch_size=patch_size, depth=1).fit(images(n=2, shape=shape), 0)
    assert told.network.width == width
    assert told.notes()["numbers of a patch for one of its token"] == round(ratio, 4)
    narrow = SyferRandom(patch_size=patch_size, width=16, depth=1).fit(images(n=2, shape=shape), 0)
    assert narrow.notes()["numbers of a patch for one of its token"] > 1
    assert SyferRandom(patch_size=patch_size).load(told.state()).notes() == told.notes()


def test_the_usual_width_is_written_down_as_it_was():
    assert (
        parameters(SyferRandom())["width"]
        == parameters(SyferRandom(**SyferRandom.presets["first-look"]))["width"]
        == 256
    )


def test_encoded_labels_are_flipped_by_some_keys_and_decode_flips_predictions_back():
    private, scheme = images(), SyferRandom(**TINY).fit(images(), 0)
    flipped = torch.zeros(2)
    for seed in range(64):
        secret = scheme.sample_key(Secret.of_seed(seed))
        coded = secret.release(private).labels
        same, changed = (coded == private.labels).all(dim=0), (coded == 1 - private.labels).all(dim=0)
        assert (same ^ changed).all()
        assert torch.equal(secret.decode(coded), private.labels)
        flipped += changed
    # Binomial(64, 1/2): outside 16..48 once in 40,000.
    assert ((flipped >= 16) & (flipped <= 48)).all()


def test_raw_labels_and_their_predictions_stay_as_they_are():
    unbalanced = images(labels=UNBALANCED)
    secret = key(SyferRandom(**TINY, labels="raw"))
    assert torch.equal(secret.release(unbalanced).labels, unbalanced.labels)
    scores = torch.rand(3, 1)
    assert torch.equal(secret.decode(scores), scores)


def test_labels_do_not_reach_the_samples():
    private, secret = images(), key(SyferRandom(**TINY))
    hidden = Dataset("made", private.samples, None, None, private.findings, False, True)
    assert torch.equal(secret.release(private).samples, secret.release(hidden).samples)
    assert secret.release(hidden).labels is None


def test_unbalanced_labels_are_refused_unless_withheld():
    unbalanced = images(labels=UNBALANCED)
    with pytest.raises(NotApplicable, match=r"got 21 yes, 3 no for finding 'finding 0'.*unbalanced=withhold"):
        key(SyferRandom(**TINY)).release(unbalanced)
    coded = key(SyferRandom(**TINY, unbalanced="withhold")).release(unbalanced).labels
    assert int(coded.isnan().sum()) == 18
    assert int((coded == 1).sum()) == int((coded == 0).sum()) == 3


def test_a_release_of_one_image_is_encoded():
    assert key(SyferRandom(**TINY)).release(images(n=1)).samples.shape == (1, 1, 8, 8)


def test_training_on_one_image_is_not_applicable():
    with pytest.raises(NotApplicable, match="needs 2 public images, got 1"):
        Syfer(**SHORT).fit(images(n=1), 0)


def test_training_that_diverges_is_an_error():
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        Syfer(**{**SHORT, "steps": 40, "learning_rate": 1e30}).fit(images(), 0)


def test_a_patch_that_does_not_divide_is_not_applicable_and_says_what_is():
    with pytest.raises(NotApplicable, match="16 does not divide 28x28; set patch_size to one of 1, 2, 4, 7, 14, 28"):
        SyferRandom().fit(images(shape=(1, 28, 28)), 0)


def test_tables_are_not_applicable():
    with pytest.raises(NotApplicable, match="made is a table"):
        SyferRandom().fit(unlabelled(torch.rand(5, 3)), 0)


def test_images_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 16, 16\), got \(1, 24, 24\)"):
        key(SyferRandom(**TINY)).query(torch.rand(2, 1, 24, 24))


def test_a_scheme_of_other_sizes_is_refused():
    state = SyferRandom(**TINY).fit(images(), 0).state()
    with pytest.raises(ValueError, match=r"\[8, 16, 2, 1\], this method has \[8, 16, 3, 1\]"):
        SyferRandom(**{**TINY, "blocks": 3}).load(state)


@pytest.mark.parametrize(
    ("shape", "choices", "said"),
    [
        ((1, 64, 64), {}, "2 x 1 learned layers of width 256 for 16 patches"),
        ((1, 64, 64), {"blocks": 5, "depth": 5, "patch_size": 8, "width": 256}, "5 x 5 .* width 256 for 64 patches"),
        ((3, 64, 64), {"blocks": 5, "depth": 5}, "5 x 5 .* width 784 for 16 patches"),
        ((1, 128, 128), {"blocks": 5, "depth": 5}, "5 x 5 .* width 256 for 64 patches"),
    ],
)
def test_a_network_of_another_size_says_what_the_paper_s_is(shape, choices, said):
    with torch.device("meta"):
        network = Syfer(**choices)._network(shape)
    wrong = f"a network of {said}; the paper's is 5 x 5 learned layers of width 256 for 16 patches"
    for method in (Syfer(**choices), SyferRandom(**choices)):
        assert re.match(wrong, method._caveat(network))


def test_every_trained_network_says_how_long_and_that_the_weights_of_its_losses_are_guesses():
    said = Syfer(**SHORT).fit(images(), 0).notes()[CAVEAT]
    assert "trained for 6 steps of 8 images (the paper: 50000 of 128)" in said
    assert "the weights of its losses, 2 and 20, and its learning rate, 0.001, are guesses" in said
    with torch.device("meta"):
        network = Syfer(**Syfer.presets["paper"])._network((1, 64, 64))
    paper = Syfer(**Syfer.presets["paper"])._caveat(network)
    assert paper.startswith("a network of the paper's size; trained for 50000 steps of 128")
    assert "the paper's is" not in paper


def test_a_loaded_network_says_the_same():
    method = Syfer(**SHORT)
    scheme = method.fit(images(), 0)
    assert method.load(scheme.state()).notes() == scheme.notes()


@pytest.fixture
def kept(tmp_path):
    """Weights of a short training, large ones in bfloat16, and the SHA-256 of their file."""
    state = Syfer(**SHORT).fit(images(), 3).network.state_dict()
    path = tmp_path / "jane-doe.safetensors"
    safetensors.torch.save_file({n: t.bfloat16() if t.numel() > 64 else t for n, t in state.items()}, path)
    return state, str(path), hashlib.sha256(path.read_bytes()).hexdigest()


def test_weights_of_a_file_stand_in_for_training_whatever_the_public_images(kept):
    state, path, digits = kept
    scheme = Syfer(**SHORT, weights=path, weights_sha256=digits[:12]).fit(images(seed=9), 5)
    for name, tensor in scheme.network.state_dict().items():
        assert torch.equal(tensor, state[name].bfloat16().float() if tensor.numel() > 64 else state[name])
    assert scheme.caveat.endswith(f"its weights were trained before, SHA-256 {digits[:12]}")
    again = Syfer(**SHORT, weights=path, weights_sha256=digits).load(scheme.state())
    one, two = (each.sample_key(Secret.of_seed(1)).release(images()).samples for each in (scheme, again))
    assert torch.equal(one, two)


def test_weights_of_other_content_or_size_are_refused(kept, tmp_path):
    _, path, digits = kept
    damaged, gone = tmp_path / "jane-roe.safetensors", tmp_path / "gone"
    damaged.write_bytes(Path(path).read_bytes()[:-9])
    for wrong, file, sha256, options in (
        ("must have a SHA-256 that begins 0{12}, and has ", path, "0" * 12, {}),
        ("not the weights of this model", path, digits, {"blocks": 3}),
        (f"of SHA-256 {digits}, is not there", gone, digits, {}),
        ("unreadable or cut short", damaged, hashlib.sha256(damaged.read_bytes()).hexdigest(), {}),
    ):
        with pytest.raises(DataError, match=f"the file of weights.*{wrong}") as raised:
            Syfer(**SHORT | options, weights=str(file), weights_sha256=sha256).fit(images(), 0)
        assert not re.search("jane|gone", str(raised.value))
    for few in (digits[:4], "x" * 12):
        with pytest.raises(ValueError, match="first 12 hexadecimal digits or more"):
            Syfer(**SHORT, weights=path, weights_sha256=few)


def test_the_weights_that_are_kept_are_those_of_their_training():
    folder = Path(__file__).parents[2] / "leaderboard" / "weights"
    told = json.loads((folder / "syfer-kermany.json").read_text())
    path, digits = str(folder / "syfer-kermany-50000.safetensors"), told["sha256"]["steps-50000"]
    public = images(n=2, shape=tuple(told["shape"]))
    scheme = Syfer(**told["options"], weights=path, weights_sha256=digits).fit(public, 0)
    assert scheme.caveat.startswith("a network of the paper's size; its weights were trained before")
    assert scheme.sample_key(Secret.of_seed(0)).query(public.samples).isfinite().all()


@pytest.mark.parametrize("half", [{"weights": "/a"}, {"weights_sha256": "0" * 12}])
def test_weights_need_their_hash_and_a_hash_its_weights(half):
    with pytest.raises(ValueError, match="belong together"):
        Syfer(**SHORT, **half)


def test_the_path_of_the_weights_names_no_folder_of_records(kept):
    _, path, digits = kept
    method = configure("methods", f"syfer[weights={path},weights_sha256={digits[:12]}]", "smoke")
    folder = Cell(method, Choice.read({"dataset": "digits", "preset": "smoke"}), "cpu").folder
    assert "jane" not in folder
    assert digits[:12] in folder
