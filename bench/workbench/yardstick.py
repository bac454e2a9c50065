"""What speed is held against: a ResNet-18 forward on the same device, in the same run."""

from __future__ import annotations

from statistics import median

import torch

from bench.memory.rows import rows_at
from bench.nets.convolutional_networks import resnet18
from bench.workbench.timing import repeat

ROWS = {"cpu": 16, "cuda": 2048}  # where the rate is near its highest; 64 on a CPU take four times as long
LEAST_SIDE = 32
REPEATS = 3


def resnet18_rate(rows: torch.Tensor, device: torch.device) -> float | None:
    """Images a second of a ResNet-18 in float32, channels last, all rows in one batch.

    Args:
        rows: (n, c, h, w), repeated or cut to the number of rows that keeps the device busy.
        device: It runs on.

    Returns:
        None where there are no rows, or no images of at least 32 pixels a side, which the network halves five times.
    """
    if rows.ndim != 4 or min(rows.shape[2:]) < LEAST_SIDE or not len(rows):
        return None
    wanted = ROWS[device.type]
    batch = rows_at(rows, torch.arange(wanted) % len(rows))[:].to(device, memory_format=torch.channels_last)
    network = resnet18((batch.shape[1], batch.shape[2], batch.shape[3]), 1)
    network.eval().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.inference_mode():
        return wanted / median(repeat(lambda: network(batch), device=device, repeats=REPEATS).seconds)
