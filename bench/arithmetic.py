"""The arithmetic of a device: float32 that is float32, and the same bits whenever the same is computed again."""

from __future__ import annotations

import os

import torch


def exact(device: torch.device | str) -> torch.device:
    """The device, after this process was told to compute on it repeatably; called before the first work on it.

    A CPU does so by itself. On CUDA convolutions round to TensorFloat-32 and the fastest kernels add in whatever order
    they come, so that two fits with one seed differ and rows change with their neighbours in a batch: both are turned
    off for the whole process, and an operation that has no repeatable form is an error of torch that names it
    (`bench.repeatable` has some that torch lacks). Networks that may train in bfloat16 ask for that themselves
    (`bench.nets.classifier.fast_precision`).
    """
    device = torch.device(device)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
    return device
