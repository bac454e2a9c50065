"""Faults of the real `dp-sgd`: its trainings do less than the claim's accountant counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Literal
from unittest.mock import patch

import torch

from bench.nets import private_optimiser, private_training
from bench.nets.private_optimiser import PrivateOptimiser
from bench.nets.private_training import PrivateCourse
from bench.randomness import Secret, Stream
from bench.types import Key, PrivacyClaim, Scheme, State

TrainingFault = Literal["half the noise", "no clip", "wrong neighbours", "batch not sampled"]
TRAINING_FAULTS: Mapping[TrainingFault, str] = {
    "half the noise": "noise of half the multiplier",
    "no clip": "the same noise, and a clip that no gradient reaches",
    "wrong neighbours": "noise for one row more or less, claimed of a replaced row",
    "batch not sampled": "all rows in every step, noise for a sampled quarter",
}
UNREACHED = 1000.0


@dataclass(frozen=True, eq=False)
class Restated(Scheme):
    """A scheme that claims as much of replaced rows."""

    scheme: Scheme

    def sample_key(self, secret: Secret) -> Key:
        return self.scheme.sample_key(secret)

    def load_key(self, state: State) -> Key:
        return self.scheme.load_key(state)

    def claim(self) -> PrivacyClaim | None:
        claim = self.scheme.claim()
        assert claim is not None
        return replace(claim, neighbours="replaced")


def unclipped(
    optimiser: torch.optim.Optimizer, *, noise_multiplier: float, max_grad_norm: float, expected_batch_size: int,
    stream: Stream,
) -> PrivateOptimiser:  # fmt: skip
    """The noise of a clip, and a clip that is `UNREACHED` times as long."""
    return PrivateOptimiser(
        optimiser, stream, noise_multiplier=noise_multiplier / UNREACHED, max_grad_norm=UNREACHED * max_grad_norm,
        expected_batch_size=expected_batch_size,
    )  # fmt: skip


@contextmanager
def faulty(fault: TrainingFault | None) -> Iterator[None]:
    """Trainings inside have the fault."""
    calibrate, sampling = private_training.calibrate, PrivateCourse.sampling
    with ExitStack() as stack:
        stack.enter_context(patch.object(private_training, "account", lambda *values, **options: 0.0))
        if fault == "half the noise":
            half = lambda *values, **options: calibrate(*values, **options) / 2  # noqa: E731
            stack.enter_context(patch.object(private_training, "calibrate", half))
        elif fault == "no clip":
            stack.enter_context(patch.object(private_optimiser, "PrivateOptimiser", unclipped))
        elif fault == "batch not sampled":
            whole = lambda course, rows: (sampling(course, rows)[0], 1.0, sampling(course, rows)[2])  # noqa: E731
            of_share = lambda epsilon, delta, *, share, steps: calibrate(  # noqa: E731
                epsilon, delta, share=private_training.SHARE, steps=steps
            )
            stack.enter_context(patch.object(PrivateCourse, "sampling", whole))
            stack.enter_context(patch.object(private_training, "calibrate", of_share))
        yield


def stated(scheme: Scheme, fault: TrainingFault | None) -> Scheme:
    """The scheme with the claim of the fault."""
    return Restated(scheme) if fault == "wrong neighbours" else scheme
