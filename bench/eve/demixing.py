"""Private images from released mixtures alone: no candidate, no pair, no key.

Source: Carlini et al. 2021, "Is Private Learning Possible with Instance Encoding?" (the attack on InstaHide): absolute
values undo sign flips; mixtures that share an image are alike, so that they fall into a cluster for each image; the
clusters and the absolute values are a system of equations |A X| = |Y|, solved for the images X up to signs.

Differences:
- Likeness is the cosine of whitened absolute values; the paper trains a network for it.
- Clusters overlap, k for each mixture. They are found at once by symmetric factors without negative numbers (Kuang et
  al. 2015, "SymNMF") in place of a graph and a flow of least cost, and then found anew by regression on the images
  (`bench.eve.unmixing`).
- The paper knows the weights A; here they are fitted with the images.
- The system is solved pixel by pixel by alternating between signs and numbers from several first guesses, held to the
  mean of Eve's own people by a ridge. |A X| has no sign at a pixel: signs follow the likeness of neighbouring numbers
  in images of Eve's people (leading signs of the entrywise product of both second-moment matrices), and their mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import scipy
import torch

from bench.eve.unmixing import Effort, build, explain
from bench.seeds import derive, generator
from bench.types import Release

WHITE = 1e-2  # of the largest variance: what whitening adds to each
FACTOR_ROUNDS, FACTOR_STARTS = 200, 2
SOLVE_ROUNDS, SOLVE_STARTS = 20, 4
TURNS = 3  # of images and clusters
SIGN_ROUNDS, SIGN_PEOPLE = 50, 256
SMALLEST_WEIGHT = 1e-3
TINY = 1e-9
LARGEST = 1 << 32  # mixtures squared times images: the cost of a round of factors
EFFORT = Effort(shortlist=12, rounds=4, restarts=1)


@dataclass(frozen=True, eq=False)
class Demixed:
    """Images that explain a release, and the mixtures they are in.

    Args:
        images: (n, d) float64, above the centre.
        members: (m, k) int64, the images in each released row.
        left: Share of the absolute values' squares that the mixtures do not explain.
    """

    images: torch.Tensor
    members: torch.Tensor
    left: float

    def named(self, links: torch.Tensor, n: int) -> torch.Tensor:
        """Image (n,) int64 of each raw row; -1: none.

        Recovered images have no names: the harness gives each the raw row that it shares most released rows with, by
        `links` (p, 2), one to one. Likeness of pixels plays no part.
        """
        shared = torch.zeros(len(self.images), n, dtype=torch.float64)
        linked = torch.zeros(len(self.members), n, dtype=torch.float64)
        linked[links[:, 1], links[:, 0]] = 1
        for column in self.members.T:
            shared.index_add_(0, column, linked)
        images, rows = scipy.optimize.linear_sum_assignment(shared.numpy(), maximize=True)
        found = torch.full((n,), -1)
        found[torch.from_numpy(rows)] = torch.from_numpy(images)
        return found

    def share_found(self, links: torch.Tensor, n: int) -> float:
        """Share of links whose image is among its released row's members."""
        name = self.named(links, n)
        return float((self.members[links[:, 1]] == name[links[:, 0], None]).any(dim=1).double().mean())


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Lessons of mixtures that Eve, the attacker, releases herself.

    Args:
        mixed: Images in a released row, k.
        rows_each: Released rows that are made mainly of one image.
        centre: (d,) float64, subtracted before mixing, for all that she knows: the mean of a channel.
        scale: Length of a released row in units of such a mixture.
        people: (q, d) float64, her people's images above the centre.
    """

    mixed: int
    rows_each: int
    centre: torch.Tensor
    scale: float
    people: torch.Tensor

    def too_many(self, rows: int) -> bool:
        """True for a release whose clusters take too long."""
        return rows**2 * (rows // self.rows_each) > LARGEST

    def undone(self, released: torch.Tensor, ridge: float, seed: int) -> Demixed:
        """Images of a release; a ridge holds them to the mean."""
        sizes = released.flatten(1).double().abs() / self.scale
        n = max(self.mixed + 1, len(sizes) // self.rows_each)
        shares = clusters(sizes, n, seed)
        members = shares.topk(self.mixed, dim=1).indices
        weights = torch.full(members.shape, 1 / self.mixed, dtype=torch.float64)
        mean = self.people.mean(dim=0)
        for turn in range(TURNS):
            mixing = torch.zeros(len(sizes), n, dtype=torch.float64).scatter_(1, members, weights)
            images = solve(mixing, sizes, mean, ridge, derive(seed, "solve", turn))
            images = images * signs(images, self.people[:SIGN_PEOPLE])
            if turn + 1 < TURNS:
                explained = explain(build(images), sizes, EFFORT)
                best = explained.weights.topk(min(self.mixed, explained.weights.shape[1]), dim=1)
                members = explained.chosen.gather(1, best.indices)
                weights = best.values / best.values.sum(dim=1, keepdim=True).clamp_min(TINY)
                weights = weights.clamp_min(SMALLEST_WEIGHT)
        left = (sizes - (mixing @ images).abs()).square().sum() / sizes.square().sum().clamp_min(TINY)
        return Demixed(images, members, float(left))


def learn(raw: torch.Tensor, release: Release) -> Mixtures | None:
    """Lessons of Eve's own release of raw images (n, c, h, w).

    None unless released rows have the shape of images, each mixes the same number of several images, and each image
    stands in several released rows.
    """
    if release.links is None or raw.ndim != 4 or raw.shape[1:] != release.samples.shape[1:]:
        return None
    links, n, m, raw = release.links.cpu(), len(raw), len(release), raw.cpu()
    each, of = torch.bincount(links[:, 1], minlength=m), torch.bincount(links[:, 0], minlength=n)
    k = int(each[0])
    if k < 2 or bool((each != k).any()) or int(of.min()) < 2 or m < n:
        return None
    people = raw.double()
    centre = people.mean(dim=(0, 2, 3), keepdim=True).expand_as(people[:1]).flatten()
    people = people.flatten(1) - centre
    members = links[links[:, 1].argsort(stable=True), 0].reshape(m, k)
    sizes = release.samples.cpu().flatten(1).double().abs()
    return Mixtures(k, m // n, centre, _scale(people, members, sizes), people)


def _scale(people: torch.Tensor, members: torch.Tensor, sizes: torch.Tensor) -> float:
    """Median sum of the weights with which members give absolute values."""
    weights = []
    for some, part in zip(torch.split(members, 256), torch.split(sizes, 256), strict=True):
        atoms = people[some]
        signed = part.copysign(atoms.mean(dim=1))
        gram = atoms @ atoms.mT
        gram.diagonal(dim1=1, dim2=2).add_(TINY + TINY * gram.diagonal(dim1=1, dim2=2).amax(dim=1, keepdim=True))
        for _ in range(SOLVE_ROUNDS):
            found = torch.linalg.solve(gram, atoms @ signed[:, :, None])
            signed = part.copysign((atoms.mT @ found)[:, :, 0])
        weights.append(found[:, :, 0].sum(dim=1))
    return max(float(torch.cat(weights).median()), TINY)


def clusters(sizes: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    """Strengths (m, n) float64 of overlapping clusters of sizes (m, d)."""
    centred = sizes - sizes.mean(dim=0)
    values, axes = torch.linalg.eigh(centred @ centred.T / len(sizes))  # (m, m): rows are wide
    values = values.clamp_min(0)
    # Whitened rows have the inner products of U f(values) U^T.
    like = (axes * (values / (values + WHITE * values.amax().clamp_min(TINY)))) @ axes.T
    length = like.diagonal().clamp_min(TINY).sqrt()
    like = (like / length / length[:, None]).fill_diagonal_(0)
    like = (like - like.mean()).clamp_min(0).float()
    best: tuple[float, torch.Tensor] | None = None
    for start in range(FACTOR_STARTS):
        random = generator(derive(seed, "factors", start))
        factors = torch.rand(len(sizes), n, generator=random) * 2 * (like.mean() / n).sqrt()
        for _ in range(FACTOR_ROUNDS):
            factors *= 0.5 + 0.5 * (like @ factors) / (factors @ (factors.T @ factors)).clamp_min(TINY)
        error = float((like - factors @ factors.T).square().sum())
        if best is None or error < best[0]:
            best = error, factors
    assert best is not None
    return (best[1] / best[1].mean(dim=0).clamp_min(TINY)).double()


def solve(mixing: torch.Tensor, sizes: torch.Tensor, mean: torch.Tensor, ridge: float, seed: int) -> torch.Tensor:
    """Images (n, d) whose mixtures have these sizes, signs unknown.

    Each number (column) is a system of its own, and keeps the best of several first guesses.

    Args:
        mixing: (m, n) weights.
        sizes: (m, d) absolute values.
        mean: (d,) that a ridge holds images to, and the first guess.
        ridge: In units of the mean square of an image's weights.
        seed: Draws the other first guesses.
    """
    gram = mixing.T @ mixing
    gram.diagonal().add_(ridge * gram.diagonal().mean())
    back = torch.linalg.solve(gram, mixing.T)
    spread = sizes.square().mean().sqrt()
    expected = mixing @ mean.expand(mixing.shape[1], -1)
    found, least = torch.empty(0), torch.empty(0)
    for number, first in enumerate(_guesses(mixing.shape[1], mean, spread, seed)):
        images = first
        for _ in range(SOLVE_ROUNDS):
            signed = sizes.copysign(mixing @ images)
            images = mean + back @ (signed - expected)
        left = (sizes - (mixing @ images).abs()).square().sum(dim=0)
        left += ridge * gram.diagonal().mean() * (images - mean).square().sum(dim=0)
        found, least = (
            (images, left) if not number else (torch.where(left < least, images, found), torch.minimum(left, least))
        )
    return found


def _guesses(n: int, mean: torch.Tensor, spread: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
    yield mean.expand(n, -1)
    random = generator(seed)
    for number in range(SOLVE_STARTS):
        noise = torch.randn(n, len(mean), generator=random, dtype=torch.float64) * spread / 2
        yield noise + (mean if number % 2 else 0)


def signs(images: torch.Tensor, people: torch.Tensor) -> torch.Tensor:
    """Signs (d,) that make images vary as people do."""
    ours, theirs = (
        rows / torch.linalg.vector_norm(rows, dim=0, keepdim=True).clamp_min(TINY) for rows in (images, people)
    )
    mean = people.mean(dim=0)
    found = torch.ones_like(mean).copysign((images * mean).sum(dim=0))
    for _ in range(SIGN_ROUNDS):
        found = torch.ones_like(mean).copysign((ours * (((ours * found) @ theirs.T) @ theirs)).sum(dim=0))
    return -found if float(((images * found).mean(dim=0) * mean).sum()) < 0 else found
