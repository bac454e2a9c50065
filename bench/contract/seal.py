"""Check, shuffle and seal releases: links are removed before Eve reads."""

from __future__ import annotations

__figures__ = True

from dataclasses import dataclass

import torch
from cryptography.hazmat.primitives.poly1305 import Poly1305

from bench.contract.dataset import Dataset, Release
from bench.memory.rows import Rows, rows_at
from bench.randomness import Secret

HASHED_ROWS = 256
KEY_BYTES = 32


class ContractError(Exception):
    """A plug-in broke the contract; the text says expected and actual values."""


@dataclass(frozen=True, eq=False)
class Sealed:
    """A release as published, and the links that the harness keeps.

    Args:
        release: Rows in random order, no links.
        links: (p, 2) int64 in that order, or None where the method has none.
        primary: (p,) bool as in `Release`.
    """

    release: Release
    links: torch.Tensor | None
    primary: torch.Tensor | None


def check(release: Release, private: Dataset) -> None:
    """Raise ContractError unless `release` is a well-formed release of `private`."""
    n, m = len(private), len(release)
    if not isinstance(release.samples, torch.Tensor) or release.samples.dtype != torch.float32:
        raise ContractError(f"released samples must be a float32 tensor, got {_kind(release.samples)}")
    if m == 0 or release.samples.ndim not in (2, 4):
        raise ContractError(
            f"released samples must be images (m, c, h, w) or vectors (m, d) with m at least 1, "
            f"got shape {tuple(release.samples.shape)}"
        )
    bad = (~release.samples.flatten(1).isfinite()).any(dim=1).nonzero()
    if len(bad):
        raise ContractError(f"released samples must be finite: row {int(bad[0])} is not ({len(bad)} rows in all)")
    if release.labels is not None:
        check_labels(release.labels)
        if tuple(release.labels.shape) != (m, len(private.findings)):
            raise ContractError(
                f"released labels must have shape {(m, len(private.findings))}, got {tuple(release.labels.shape)}"
            )
    if release.generator is not None and not release.generator.state():
        raise ContractError("a published generator must hold tensors: one without state is lost when it is stored")
    if release.links is None:
        if release.primary is not None:
            raise ContractError("primary marks links, and this release has none")
        return
    if release.links.dtype != torch.int64 or release.links.ndim != 2 or release.links.shape[1] != 2:
        raise ContractError(f"links must be int64 of shape (p, 2), got {_kind(release.links)}")
    if len(release.links) == 0:
        raise ContractError("links must name at least one pair; use None for methods in which no row stands in another")
    low, high = release.links.amin(dim=0).tolist(), release.links.amax(dim=0).tolist()
    if min(low) < 0 or high[0] >= n or high[1] >= m:
        raise ContractError(
            f"links must lie in {n} raw x {m} released rows, got up to raw {high[0]}, released {high[1]}"
        )
    if release.primary is not None and (
        release.primary.dtype != torch.bool or release.primary.shape != release.links.shape[:1]
    ):
        raise ContractError(
            f"primary must be bool of shape {tuple(release.links.shape[:1])}, got {_kind(release.primary)}"
        )
    if release.primary is not None and not bool(release.primary.any()):
        raise ContractError("primary must mark at least one link; use None where no row is primary")


def check_labels(labels: torch.Tensor) -> None:
    """Raise ContractError unless labels (m, k) are float32, finite or NaN."""
    if not isinstance(labels, torch.Tensor) or labels.dtype != torch.float32 or labels.ndim != 2:
        raise ContractError(f"released labels must be a float32 tensor (m, k), got {_kind(labels)}")
    if bool(labels.isinf().any()):
        raise ContractError("released labels must be finite, or NaN where they are not known: some are infinite")


def fingerprint(data: Dataset) -> str:
    """A fingerprint of a data set's tensors, to notice writes.

    Poly1305 under a key that is known takes an eighth of the time of SHA-256, and misses no mistake. Rows that are read
    where they are used cannot be written to.
    """
    found = Poly1305(bytes(range(KEY_BYTES)))
    for tensor in (data.samples, data.labels, data.subjects):
        if tensor is not None and not isinstance(tensor, Rows):
            for part in torch.split(tensor, HASHED_ROWS):
                found.update(part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.finalize().hex()


def seal(release: Release, secret: Secret) -> Sealed:
    """Shuffle rows by a secret; keep the renumbered links apart."""
    order = secret.stream("order").permutation(len(release)).to(release.samples.device)
    labels = None if release.labels is None else release.labels[order]
    links = release.links
    if links is not None:
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        links = torch.stack((links[:, 0], place[links[:, 1]]), dim=1)
    return Sealed(
        Release(rows_at(release.samples, order), labels, None, generator=release.generator), links, release.primary
    )


def _kind(value: object) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
