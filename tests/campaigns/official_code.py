"""Our methods beside their authors' own code, on the same rows and the same random numbers.

`python tests/campaigns/official_code.py neuracrypt=CHECKOUT instahide=CHECKOUT k-same=CHECKOUT cvae=CHECKOUT
cadp=CHECKOUT [--packages FOLDER]` prints a line each: what was compared, and the largest difference. Each checkout is
read as committed, with the patched lines stated here or in the adapter. `--packages` names a folder with what their
code imports and is not here (`pip install --target FOLDER einops pytorch-lightning remote-pdb`). The figures stand in
docs/official-code.md. It runs the authors' code with your rights.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.nets import cvae
from bench.nets.patches import cut
from bench.owner.gaussian_sum import calibrated
from bench.owner.same_size_clusters import same_size_clusters
from bench.plugins.author_repository import Declaration, Patch, copied, declared
from bench.randomness import Secret
from bench.room_types import authors_module
from bench.types import Dataset
from methods.cadp_mechanism import clipped
from methods.dp_merf import DPMERF
from methods.instahide import soft_labels
from methods.neuracrypt import NeuraCrypt

ADAPTERS = Path(__file__).parents[2] / "methods" / "official"
ROWS = 512


def laid_out(checkout: Path, said: Declaration, folder: Path) -> str:
    """A made adapter's file, beside the authors' code."""
    (folder / "files").mkdir(parents=True)
    made = copied(checkout, said, None, folder / "repository")
    print(f"\n{made.url or checkout.name} at {made.commit}, {len(made.patches)} patched lines")
    return str(folder / "files" / "adapter.py")


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images (n, 1, 8, 8) in [0, 1] and classes (n,)."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return torch.tensor(found.images / 16, dtype=torch.float32)[:, None], torch.tensor(found.target)


def tell(what: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Print the largest difference and the size of the numbers."""
    gap = float((ours.double() - theirs.double()).abs().max())
    same = "equal to the bit" if torch.equal(ours.to(theirs.dtype), theirs) else f"largest difference {gap:.2g}"
    print(f"  {what}: {same}; numbers of deviation {float(theirs.double().std()):.3g}, {theirs.numel()} compared")


def neuracrypt(checkout: Path, folder: Path) -> None:
    """Released patches under the weights of one official network."""
    file = ADAPTERS / "official_neuracrypt.py"
    said = declared(file)
    assert said is not None
    laid_out(checkout, said, folder)
    shutil.copy(file, folder / "files")
    sys.path.insert(0, str(folder / "files"))
    adapter: Any = importlib.import_module("official_neuracrypt")
    samples, _ = digits()
    for patch_size, channels, depth in ((4, None, 7), (2, 8, 5)):
        data = Dataset("digits", samples[:ROWS], None, None, (), False, True)
        options = {"patch_size": patch_size, "channels": channels, "depth": depth}
        key = adapter.OfficialNeuraCrypt(**options).fit(data, 0).sample_key(Secret.of_seed(1))
        weights = {name.partition(".")[2]: part for name, part in key.secret.items()}

        def linear(name: str, weights: Mapping[str, torch.Tensor] = weights) -> torch.Tensor:
            return torch.cat((weights[f"{name}.weight"].flatten(1).T, weights[f"{name}.bias"][None]))

        network = {
            "first": linear("image_encoder.0"),
            "hidden": torch.stack([linear(f"image_encoder.{2 + 3 * layer}") for layer in range(depth - 3)]),
            "place": weights["pos_embedding"][0], "last": linear("mixer.1"), "shuffles": key.secret["shuffles"],
        }  # fmt: skip
        ours = NeuraCrypt(**options).fit(data, 0).load_key(network).release(data).samples  # type: ignore[arg-type]
        sorted_tokens = [
            tokens.take_along_dim(tokens[..., :1].argsort(dim=1), dim=1)  # each draws its own order of patches
            for tokens in (cut(ours, patch_size), cut(key.release(data).samples, patch_size))
        ]
        tell(f"released patches, depth {depth}, patch {patch_size}, the order of patches set aside", *sorted_tokens)


def instahide(checkout: Path, folder: Path) -> None:
    """Mixtures and labels of `mixup_data`, with its own coefficients, partners and signs."""
    said = declared(ADAPTERS / "official_instahide.py")
    assert said is not None
    module = authors_module(laid_out(checkout, said, folder), "train_inside", arguments=["--klam", "3"])
    samples, classes = digits()
    samples, classes = samples[:ROWS], classes[:ROWS].float()
    torch.manual_seed(0)
    np.random.seed(0)
    theirs, _, weights = module.mixup_data(samples.clone(), classes, use_cuda=False)
    # The same draws again, in the authors' order: weights come from numpy, partners and signs from torch.
    torch.manual_seed(0)
    partners = [torch.arange(ROWS), *(torch.randperm(ROWS) for _ in range(2))]
    signs = torch.randint(2, size=list(samples.shape)) * 2.0 - 1
    instahide_module: Any = importlib.import_module("methods.instahide")
    ours = instahide_module._weighted((samples[rows] for rows in partners), weights) * signs
    tell("released rows under their weights, partners and signs", ours, theirs)
    one_hot = torch.nn.functional.one_hot(classes.long(), 10).float()
    targets = sum(module.vec_mul_ten(weights[:, part], one_hot[rows]) for part, rows in enumerate(partners))
    assert isinstance(targets, torch.Tensor)
    tell("mixed labels", soft_labels(one_hot, torch.stack(partners, dim=1), weights), targets)
    drawn = instahide_module.mix(200_000, 3, 0.65, Secret.of_seed(3).stream("mixture")).weights
    module.args.klam = 3
    np.random.seed(1)
    blank = torch.zeros(200_000, 1)
    other = module.mixup_data(blank, blank[:, 0], use_cuda=False)[2]
    from scipy.stats import ks_2samp

    found = ks_2samp(drawn[:, 0].numpy(), other[:, 0].numpy())
    print(f"  weights of 200,000 rows, ours and theirs drawn apart: Kolmogorov-Smirnov p = {found.pvalue:.2g}")


EMBEDDINGS = 300


def k_same(checkout: Path, folder: Path) -> None:
    """Clusters and means of `kSAME`, across classes."""
    said = Declaration(
        url="https://github.com/francescodisalvo05/cvae-anonymization", licence="MIT", files=["LICENSE", "src/"],
    )  # fmt: skip
    module = authors_module(laid_out(checkout, said, folder), "src.anonymizer.ksame")
    importlib.import_module("scipy.spatial")  # theirs imports scipy alone
    samples, classes = digits()
    rows = samples[:EMBEDDINGS].flatten(1)
    noisy = rows + 1e-3 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(0))  # no two distances tie
    for k in (2, 5, 10):
        theirs, _ = module.kSAME(k=k, device="cpu").apply(noisy.numpy(), classes[:EMBEDDINGS].numpy())
        clusters = same_size_clusters(noisy[: EMBEDDINGS // k * k], k)
        ours = noisy[: EMBEDDINGS // k * k].clone()
        for number in clusters.unique():
            ours[clusters == number] = ours[clusters == number].mean(dim=0)
        alike = float((ours - torch.from_numpy(theirs)).abs().amax(dim=1).lt(1e-5).double().mean())
        print(f"  k = {k}: {alike:.1%} of {len(ours)} released rows within 1e-5")
        tell(f"k = {k}, released rows", ours, torch.from_numpy(theirs))


CVAE_PATCHES = [
    Patch(file="src/model/cvae.py", line=line, before=before, after=after, why="no CUDA here")
    for line, before, after in (
        (20, "        self.norm.loc = self.norm.loc.cuda()        # hack to get sampling on the GPU", "        pass"),
        (21, "        self.norm.scale = self.norm.scale.cuda()", "        pass"),
    )
]


def cvae_network(checkout: Path, folder: Path) -> None:
    """Encoder, decoder and loss of `CVAE` under one set of weights."""
    said = Declaration(
        url="https://github.com/francescodisalvo05/cvae-anonymization", licence="MIT", files=["LICENSE", "src/"],
        patches=CVAE_PATCHES,
    )  # fmt: skip
    module = authors_module(laid_out(checkout, said, folder), "src.model.cvae")
    samples, classes = digits()
    rows, one_hot = samples[:ROWS].flatten(1), torch.nn.functional.one_hot(classes[:ROWS], 10).float()
    torch.manual_seed(0)
    theirs = module.CVAE(input_dim=64, hidden_dim=256, latent_dim=50, n_classes=10, device="cpu")
    ours = cvae.ConditionalVAE(64, 10, hidden=256, latent=50)
    for part, other in ((ours.encoder, theirs.encoder.encode), (ours.decoder, theirs.decoder.decode)):
        part.load_state_dict(other.state_dict())
    with torch.no_grad():
        torch.manual_seed(1)
        back = theirs(rows, one_hot)
        torch.manual_seed(1)
        noise = torch.distributions.Normal(0, 1).sample(torch.Size((ROWS, 50)))
        mean, spread = ours.encode(rows, one_hot)
        latents = mean + cvae.deviation(spread, "official-code") * noise
        tell("rows encoded and decoded", ours.decode(latents, one_hot), back)
        kl = cvae.divergence(mean, spread, "official-code").sum()
        other = theirs.encoder.kl
        print(f"  divergence of the batch: {float(kl):.8g} and {float(other):.8g}, both summed in float32")
        torch.manual_seed(2)
        counts = Counter({3: 40, 7: 25})
        drawn, _ = theirs.generate_samples_v1(counts, torch.zeros(64), torch.ones(64))
        torch.manual_seed(2)
        conditions = [one_hot.new_zeros(n, 10).index_fill(1, torch.tensor(c), 1.0) for c, n in counts.items()]
        made = [ours.decode(torch.randn(len(each), 50), each) for each in conditions]
        tell("released synthetic rows", torch.cat(made), torch.from_numpy(np.stack(drawn)))


CADP_LINES = {
    16: "import FrEIA.framework as ff", 17: "import data", 18: "import models", 19: "import utils",
    21: "_tqdm = tqdm.notebook.tqdm if utils.in_notebook() else tqdm.tqdm",
}  # fmt: skip


def cadp(checkout: Path, folder: Path) -> None:
    """The clip and the noise of `LaplaceMechanism` on batches of latents; the network is not run."""
    patches = [
        Patch(file="latent_dp.py", line=line, before=text, after="", why="the network and the data are not run")
        for line, text in CADP_LINES.items()
    ]
    patches += [
        Patch(file="latent_dp.py", line=line, before=before, after=before.replace(".cuda()", ""), why="no CUDA here")
        for line, before in ((49, "            return z + self.d.sample(z.size()).cuda()"),)
    ]
    patches += [
        Patch(file="latent_dp.py", line=line, before=before, after=before.replace("ff.ReversibleGraphNet", "object"),
              why="the network is not imported")
        for line, before in ((108, "def apply_dp(inn: ff.ReversibleGraphNet,"),
                             (121, "def privatize(inn: ff.ReversibleGraphNet,"))
    ]  # fmt: skip
    said = Declaration(
        url="https://github.com/Cardio-AI/CADP", licence="MIT", files=["LICENSE", "latent_dp.py"], patches=patches
    )
    module = authors_module(laid_out(checkout, said, folder), "latent_dp")
    latents = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
    for norm in (0.5, 4.0, 100.0):
        mechanism = module.LaplaceMechanism(2.0, norm)
        tell(f"latents clipped to {norm:g}", clipped(latents, norm), mechanism.norm_clip(latents))
        torch.manual_seed(0)
        noisy = mechanism(latents)
        torch.manual_seed(0)
        noise = torch.distributions.Laplace(0.0, norm / 2.0).sample(latents.shape)
        tell(f"latents with noise of scale {norm:g} / epsilon", clipped(latents, norm) + noise, noisy)


def dp_merf(checkout: Path, folder: Path) -> None:
    """Random features and the labelled mean of rows, and the noise for an epsilon."""
    said = Declaration(
        url="https://github.com/ParkLabML/DP-MERF", licence="MIT",
        files=["LICENSE", "code_balanced/aux.py", "code_balanced/rff_mmd_approx.py"],
    )  # fmt: skip
    file = laid_out(checkout, said, folder)
    module = authors_module(file, "rff_mmd_approx", folder="code_balanced")
    samples, classes = digits()
    one_hot = torch.nn.functional.one_hot(classes[:ROWS], 10).float()
    data = Dataset("digits", samples[:ROWS], one_hot, None, tuple("0123456789"), True, True)
    scheme = DPMERF(features=1000).fit(data, 0)
    rows = ((data.samples - scheme.learned["mean"]) / scheme.learned["std"]).flatten(1)
    frequencies = module.rff_param_tuple(w=scheme.learned["frequencies"], b=None)
    tell("random features", scheme.features(rows), module.rff_sphere(rows, frequencies))
    theirs = module.data_label_embedding(rows, one_hot, frequencies, "sphere")
    ours = scheme.read(scheme.vector(data).mean(dim=0))[0]
    tell("mean of features by class", ours[:, -10:], theirs)


def private_evolution(checkout: Path, folder: Path) -> None:
    """The noise that their accountant wants for an epsilon, beside that of our Gaussian rows (DP-MERF's)."""
    said = Declaration(
        url="https://github.com/microsoft/DPSDA", licence="MIT",
        files=["LICENSE", "pe/__init__.py", "pe/dp/", "pe/logging/", "pe/constant/"],
    )  # fmt: skip
    module = authors_module(laid_out(checkout, said, folder), "pe.dp.gaussian")
    importlib.import_module("scipy.stats")
    for epsilon, delta in ((0.2, 1e-5), (1.0, 1e-5), (10.0, 1e-6)):
        ours, theirs = 1 / calibrated(epsilon, delta), module.get_noise_multiplier(epsilon, 1, delta)
        print(f"  noise for epsilon {epsilon:g}, delta {delta:g}: {ours:.7g} and {theirs:.7g}")


K_SALSA_LINES = {
    14: "from configs import data_configs", 15: "from datasets.inference_dataset import Clustering_Dataset",
    16: "from options.test_options import TestOptions", 17: "from models.psp import pSp",
    18: "from models.e4e import e4e", 19: "from utils.model_utils import ENCODER_TYPES",
    20: "from utils.common import tensor2im",
    21: "from utils.inference_utils import run_on_batch, get_average_image",
}  # fmt: skip


def k_salsa(checkout: Path, folder: Path) -> None:
    """Clusters of one size; the networks, whose weights are not in the repository, are not run."""
    place = "k-SALSA_algorithm/scripts/same_size_nearest_clustering.py"
    patches = [
        Patch(file=place, line=line, before=text, after="", why="the networks are not run")
        for line, text in K_SALSA_LINES.items()
    ]
    patches += [
        Patch(file=place, line=line, before=text, after=text.replace("np.int", "int"), why="numpy 2 has no np.int")
        for line, text in (
            (51, "    clust_inds = np.zeros(n, dtype=np.int) + np.nan"),
            (61, "        cluster = np.append(nearest, next_point).astype(np.int)"),
            (69, "    return clust_inds.astype(np.int)"),
        )
    ]
    said = Declaration(url="https://github.com/hcholab/k-salsa", licence="MIT", files=[place], patches=patches)
    file = laid_out(checkout, said, folder)
    module = authors_module(file, "same_size_nearest_clustering", folder="k-SALSA_algorithm/scripts")
    from scipy.spatial.distance import cdist

    samples, _ = digits()
    rows = samples[:EMBEDDINGS].flatten(1)
    noisy = rows + 1e-3 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(0))
    for k in (2, 5, 10):
        theirs = module.nearestNeighborClust(cdist(noisy.double(), noisy.double()), k)
        ours = same_size_clusters(noisy, k) + 1
        print(f"  k = {k}: {float((ours.numpy() == theirs).mean()):.1%} of {len(noisy)} rows in the same cluster")


COMPARED: Mapping[str, Callable[[Path, Path], None]] = {
    "neuracrypt": neuracrypt, "instahide": instahide, "k-same": k_same, "cvae": cvae_network, "cadp": cadp,
    "dp-merf": dp_merf, "private-evolution": private_evolution, "k-salsa": k_salsa,
}  # fmt: skip


def main() -> None:
    """Compare each method whose checkout is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", metavar="NAME=CHECKOUT")
    parser.add_argument("--packages", type=Path)
    given = parser.parse_args()
    if given.packages is not None:
        sys.path.append(str(given.packages))
    for word in given.checkouts:
        name, _, path = word.partition("=")
        if name not in COMPARED or not path:
            parser.error(f"expected NAME=CHECKOUT, NAME one of {', '.join(COMPARED)}, got {word!r}")
        with tempfile.TemporaryDirectory() as folder:
            before = {*sys.modules}
            COMPARED[name](Path(path), Path(folder) / "made")
            for module in {*sys.modules} - before:  # several authors call a module `utils`
                if str(folder) in str(getattr(sys.modules[module], "__file__", "")):
                    del sys.modules[module]
            sys.path[:] = [place for place in sys.path if not place.startswith(folder)]


if __name__ == "__main__":
    main()
