"""The script of attackers that train as long as the encoder, in short turns on a CPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from made.datasets import unlabelled

from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import View
from methods.syfer import SyferRandom

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
import long_opponent


def test_keys_drawn_on_the_device_encode_as_an_owner_with_these_layers_does():
    rows = unlabelled(torch.rand(6, 1, 32, 32, generator=generator(0)))
    scheme = SyferRandom(blocks=1).fit(rows, 0)
    quick = long_opponent.QuickScheme.of(scheme)
    key = quick.sample_key(Secret.of_seed(0, "key"))
    owner = scheme.load_key({**key.state(), "label-secret": Secret.of_seed(0, "labels").tensor()})
    assert torch.equal(key.release(rows).samples, owner.release(rows).samples)
    assert torch.equal(quick.load_key(key.state()).release(rows).samples, key.release(rows).samples)
    for one, same in ((quick.sample_key(Secret.of_seed(0, "key")), True), (quick.sample_key(Secret.of_seed(1)), False)):
        assert torch.equal(one.release(rows).samples, key.release(rows).samples) == same
    layers = torch.cat([layer.flatten() for layer in key.layers])
    assert abs(float(layers.mean())) < 6 / len(layers) ** 0.5
    assert abs(float(layers.var()) - 1) < 6 * (2 / len(layers)) ** 0.5


def test_refinement_that_is_rejected_is_used_all_the_same():
    rows = unlabelled(torch.rand(40, 1, 32, 32, generator=generator(0)))
    scheme = SyferRandom(blocks=2, depth=2).fit(rows, 0)
    view = View(rows, scheme, rows, rows)
    plain = long_opponent.Relational(keys=2, held_out=1).fit(view, 0).variant
    forced = long_opponent.RefinedRelational(keys=2, held_out=1).fit(view, 0).variant
    tried = [variant for variant in (plain, *plain.rejected) if variant.blend is not None]
    assert tried, "the rows are told apart without refinement: use a harder scheme"
    assert forced.blend is not None
    assert forced.likelihood == max(variant.likelihood for variant in tried)
    assert len(forced.rejected) == len(tried) - 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_missing_gpu_is_an_error_and_no_run_on_a_cpu():
    with pytest.raises(UsageError, match="finds no CUDA device"):
        long_opponent.main(["identity", "--dataset", "synth-cxr", "--preset", "smoke"])


def test_trainings_take_the_steps_that_were_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = "identity --dataset synth-cxr --size 32 --preset smoke --device cpu --steps 6 9 --batch 16 --width 16"
    long_opponent.main([*words.split(), "--depth", "1", "--folder", str(tmp_path)])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["details"]["steps"] for line in lines] == [6, 9]
    assert {line["details"]["ended by"] for line in lines} == {"last step"}
    assert all(0 <= line["figures"]["reid-auc"]["value"] <= 1 for line in lines)
    assert (tmp_path / "results.jsonl").read_text() == "".join(json.dumps(line) + "\n" for line in lines)
