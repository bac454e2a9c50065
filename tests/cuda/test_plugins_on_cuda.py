"""Every plug-in lives its whole life on a device, which is simulated; `tox -e cuda` tries them all."""

import pytest
from made.device_figures import COMPUTING, needs_more
from made.simulated_cuda import CUDA, SimulatedCuda

from bench.conformance import conform
from bench.plugins import registry

QUICK = {
    ("attacks", "nearest-neighbour"),
    ("attacks", "likelihood"),
    ("features", "pixels"),
    ("evaluators", "reidentification"),
}
APART = {("evaluators", "honesty"): "it asks another process, which has no simulated device"}
ALL = [(group, name) for group in COMPUTING for name in sorted(registry.own(group))]


@pytest.mark.parametrize(
    ("group", "name"), [pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow) for one in ALL]
)
def test_a_plugin_holds_its_contract_on_the_device(group, name):
    if why := APART.get((group, name)) or needs_more(group, name):
        pytest.skip(why)
    with SimulatedCuda():
        found = conform(group, name, CUDA)
    assert [f"{each.check}: {each.detail}" for each in found if each.status in ("failed", "not-reached")] == []
    assert any(each.status == "passed" for each in found)
