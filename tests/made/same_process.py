"""A second owner in the process of the tests: what a clean process gives is tested in tests/evaluators/test_honesty."""

from __future__ import annotations

from collections.abc import Sequence

from bench.plugins.chosen import Chosen
from bench.types import Dataset, Method, NotApplicable, Release, State


def release_here(
    method: Chosen[Method], scheme: State, key: State, parts: Sequence[Dataset]
) -> list[Release | NotApplicable]:
    """As `bench.workbench.second_owner.release_elsewhere`, without the process of its own."""
    found: list[Release | NotApplicable] = []
    for part in parts:
        try:
            found.append(method.plugin.load(dict(scheme)).load_key(dict(key)).release(part))
        except NotApplicable as reason:
            found.append(reason)
    return found
