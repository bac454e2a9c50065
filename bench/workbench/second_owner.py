"""A second owner: a key's state in a clean process, which releases what it is given and knows of nothing else.

The judge asks her for every release but the first. She works as the owner of the first release does, behind the same
door: neither the caller, nor the stack, nor the environment tells a method whether a person, the benchmark or the judge
wants a release.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from bench.contract.seal import check
from bench.isolation import RemoteMethod, tenant
from bench.types import Dataset, Method, NotApplicable, Release, Scheme, State
from bench.workbench.workbench import Workbench


@contextmanager
def second_owner(bench: Workbench) -> Iterator[Method]:
    """The cell's method in another process than its own, isolated as that one is."""
    chosen = bench.cell.method
    memory = None if bench.store.budget is None else bench.store.budget.memory
    with tempfile.TemporaryDirectory(prefix="owner-") as folder:
        if isinstance(bench.method, RemoteMethod):
            rooms = bench.method.tenant
        else:
            rooms = tenant(chosen, device=bench.cell.device, sandbox=False, folder=Path(folder), memory=memory)
        with closing(RemoteMethod(chosen.plugin, rooms)) as method:
            yield method


def releases(scheme: Scheme, key: State, parts: Sequence[Dataset]) -> list[Release | NotApplicable]:
    """What a key releases of each part, loaded anew for each, or why it refuses.

    Raises ContractError for a release that is not well-formed.
    """
    found: list[Release | NotApplicable] = []
    for part in parts:
        try:
            release = scheme.load_key(key).release(part)
        except NotApplicable as reason:
            found.append(reason)
            continue
        check(release, part)
        found.append(release)
    return found
