"""What an audit's strongest game shows of a claim."""

import pytest

from bench.audit.canary_game import CanaryGame
from bench.audit.distinguishing_game import CONFIDENCE
from bench.evidence import AuditEvidence
from bench.owner.gaussian_sum import GaussianSum
from bench.randomness import Secret
from metrics.empirical_epsilon import EmpiricalEpsilon


def shown(game: CanaryGame, secret: Secret) -> float:
    """Epsilon that a game shows, its guess chosen first."""
    coins = game.coins(CONFIDENCE)
    _, guess = game.choose(secret.derive("choice"), coins, confidence=CONFIDENCE)
    evidence = AuditEvidence(
        game.claim, game.count(secret.derive("count"), guess, coins), CONFIDENCE, one_run=True, coins="replace",
        runs=coins // game.each if guess.apart else 1,
    )  # fmt: skip
    return EmpiricalEpsilon()(evidence).value


def weaken(monkeypatch: pytest.MonkeyPatch, less: float) -> None:
    """Give sums that share of their noise, in secret."""
    exact = GaussianSum.noisy
    monkeypatch.setattr(
        GaussianSum, "noisy", lambda self, total, stream: exact(GaussianSum(less * self.sigma), total, stream)
    )
