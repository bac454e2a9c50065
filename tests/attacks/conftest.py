"""Networks and matrices of attack tests are small: one thread is fastest."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def always_one_thread(one_thread: None) -> None:
    """See `one_thread`."""
