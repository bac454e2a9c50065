from __future__ import annotations

import pytest

from bench.conformance import methods


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Bob and the judge of promises, which train models and have tests of their own."""
    slow = ("Bob keeps up with simple models", "its word holds")
    quick = {title: work for title, work in methods._CHECKS.items() if title not in slow}
    monkeypatch.setattr(methods, "_CHECKS", quick)
