"""What a releasing process has seen reaches no process that encodes queries, by any channel that is known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch

from bench.isolation import RemoteMethod, tenant
from bench.isolation.room_groups import RoomGroup
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.sandbox import why_not, why_unfiltered
from bench.types import Dataset

WHISPERER = Path(__file__).with_name("whisperer.py")
CHANNELS = ("locks", "flock", "output", "counter", "times", "evicted")
pytestmark = pytest.mark.skipif(
    why_not() is not None or why_unfiltered() is not None, reason=f"no sandbox here: {why_not() or why_unfiltered()}"
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Errors of this process go to a file, as those of a job on another machine do."""
    before, file = os.dup(2), os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 2)
    yield tmp_path / "log"
    os.dup2(before, 2)
    os.close(before)
    os.close(file)


@pytest.mark.parametrize("channel", CHANNELS)
def test_not_a_bit_of_a_classifier_is_heard(channel: str, tmp_path: Path, log: Path) -> None:
    """Even with both processes alive: without the turns that rooms take."""
    import sys

    sys.path.insert(0, str(WHISPERER.parent))
    from whisperer import BITS, bits

    chosen = configure("methods", f"{WHISPERER}:Whisperer[channel={channel}]", "smoke")
    rows = Dataset("made", torch.rand(20, 1, 4, 4, generator=torch.Generator().manual_seed(1)), None, None, (),
                   exclusive=False, shareable=True)  # fmt: skip
    told = bits(int(rows.samples.sum() * 1000))
    rooms = tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "folder" / "rooms")
    object.__setattr__(rooms, "rooms", RoomGroup(None))
    with closing(RemoteMethod(chosen.plugin, rooms)) as method:
        key = method.load({}).load_key({})
        key.release(rows)
        heard = key.query(rows.samples)[0]
        assert method.room("release").open  # which holds what it locked, and its open files
    assert heard.shape == (BITS,)
    assert heard.eq(-1).all(), f"{int((heard == told).sum())} of {BITS} bits were heard"


def test_a_pipe_in_what_a_plug_in_is_shown_is_refused(tmp_path: Path) -> None:
    """A read-only file system lets every process write into it."""
    shown = tmp_path / "shown"
    (shown / "inner").mkdir(parents=True)
    chosen = configure("methods", f"{WHISPERER}:Whisperer[channel={shown}]", "smoke")
    tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "folder" / "rooms")
    os.mkfifo(shown / "inner" / "pipe")
    with pytest.raises(UsageError, match=r"inner/pipe: a pipe, socket or device connects processes"):
        tenant(chosen, device="cpu", sandbox=True, folder=tmp_path / "folder" / "rooms")
