"""Released rows that Bob keeps from training to judge by; equal rows stay together."""

from __future__ import annotations

import hashlib

import torch

from bench.seeds import generator


def held_out(samples: torch.Tensor, share: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Training rows and held-out rows (int64 indices, ascending), about `share` of them; equal rows on one side.

    Clusters release a row several times: on both sides it would be known before it is judged by.
    """
    digests = [hashlib.blake2b(row.numpy().tobytes(), digest_size=8).digest() for row in samples.cpu().contiguous()]
    numbers = {digest: number for number, digest in enumerate(dict.fromkeys(digests))}
    member = torch.tensor([numbers[digest] for digest in digests])
    order = torch.randperm(len(numbers), generator=generator(seed))
    sizes = torch.bincount(member)[order]
    held = torch.isin(member, order[sizes.cumsum(0) <= share * len(samples)])
    kept, apart = ((side).nonzero()[:, 0].to(samples.device) for side in (~held, held))
    return kept, apart
