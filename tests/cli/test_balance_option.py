"""Labels in their natural proportions, where features are released, and balanced ones elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from made.cells import place
from made.commands import request

from bench.plugins.spec import UsageError
from bench.runs.plan import cells
from bench.runs.request import run_spec
from bench.workbench.cell import Cell
from bench.workbench.inputs import fit_inputs
from bench.workbench.open_data import open_data


def planned(*more: str) -> Cell:
    arguments = [
        "run",
        "--method",
        "identity",
        "--dataset",
        "diabetes",
        "--preset",
        "smoke",
        "--attack",
        "none",
        "--device",
        "cpu",
    ]
    return cells(run_spec(request([*arguments, *more])))[0]


def test_rows_of_features_keep_the_proportions_of_their_labels_unless_asked() -> None:
    assert planned().choice.balanced
    assert not planned("--features", "pixels").choice.balanced
    assert planned("--features", "pixels", "--balance").choice.balanced
    assert not planned("--no-balance").choice.balanced


def test_labels_are_withheld_only_where_they_are_balanced(tmp_path: Path) -> None:
    natural, balanced = (planned(option) for option in ("--no-balance", "--balance"))
    found = {
        cell.choice.balanced: open_data(cell.choice, place(tmp_path), torch.device("cpu"))[:2]
        for cell in (natural, balanced)
    }
    assert not found[False][0].private.labels.isnan().any()
    known = found[True][0].private.labels
    assert int((known == 1).sum()) == int((known == 0).sum()) < len(known)
    # What they were is kept for those who have to withhold other rows' labels as well.
    assert found[False][0].natural is None
    assert torch.equal(found[True][0].natural, found[False][0].private.labels)
    assert fit_inputs(natural, found[False][1], apart=False) != fit_inputs(balanced, found[True][1], apart=False)


def test_weights_need_an_extractor() -> None:
    with pytest.raises(UsageError, match="name it with --features or --scored-in"):
        planned("--weights", "w.safetensors")
