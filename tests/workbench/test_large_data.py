"""A job that may hold little reads its rows where they are used, and finds what it finds with all of them in memory."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from made.cells import cell, place
from torch import Tensor

from bench.contract.seal import fingerprint
from bench.evaluators.reidentification import Reidentification
from bench.evidence import PairEvidence
from bench.isolation import RemoteAttack, tenant
from bench.memory.rows import Rows
from bench.plugins.configured import configure
from bench.sandbox import Isolation
from bench.workbench.workbench import Workbench

LITTLE = 20_000_000  # a thirty-second is less than 160 images of 64 x 64 take as float32, a quarter more


def found(folder: Path, memory: int | None, isolation: Isolation = "none") -> tuple[Tensor, list[Tensor], bool]:
    """The sealed release, how often each of its rows is found under two keys, and whether rows stayed on disk."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    where, what = replace(place(folder), memory=memory), cell("dp-simple", "synth-cxr")
    chosen = configure("attacks", "nearest-neighbour", "smoke")
    with closing(Workbench.open(what, where, isolation)) as bench:
        attack = chosen.plugin
        if isolation != "none":
            rooms = tenant(chosen, what.method, device="cpu", sandbox=False, folder=where.results.rooms, memory=memory)
            attack = RemoteAttack(chosen.plugin, rooms)
        evidence = cast(PairEvidence, Reidentification(attack).measure(bench).evidence[""])
        samples = bench.sealed(bench.scheme(), 0).release.samples
        assert isinstance(samples, Rows) == isinstance(bench.private.samples, Rows)
        if isinstance(attack, RemoteAttack):
            attack.close()
        return samples[:100].clone(), [counts.top_1 for counts in evidence.images.full], isinstance(samples, Rows)


@pytest.mark.isolated
@pytest.mark.usefixtures("quick_rooms")
def test_release_and_figures_are_the_same_bits_whether_rows_fit_or_not(tmp_path: Path) -> None:
    whole, expected, large = found(tmp_path, None)
    assert not large
    samples, top_1, large = found(tmp_path, LITTLE, "processes")
    assert large
    assert torch.equal(samples, whole)
    assert all(map(torch.equal, top_1, expected))


def test_rows_on_disk_cannot_be_written_to_and_need_no_watching(tmp_path: Path) -> None:
    with closing(Workbench.open(cell("identity", "synth-cxr"), replace(place(tmp_path), memory=LITTLE))) as bench:
        before = fingerprint(bench.private)
        with pytest.raises(TypeError, match="cannot be written to"):
            bench.private.samples[0] = 1.0
        assert fingerprint(bench.private) == before
        assert bench.private.labels is not None
        bench.private.labels[0] = 0.5
        assert fingerprint(bench.private) != before
