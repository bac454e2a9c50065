"""Two data sets of one kind as a single data set."""

from __future__ import annotations

from dataclasses import replace

import torch

from bench.types import Dataset


def joined(first: Dataset, second: Dataset) -> Dataset:
    """The rows of both, those of the first before those of the second.

    Labels and people are there only where both have them. Name, findings and the rest are those of the first data set:
    the label columns of the second must be the same.
    """
    labels = subjects = None
    if first.labels is not None and second.labels is not None:
        labels = torch.cat((first.labels, second.labels))
    if first.subjects is not None and second.subjects is not None:
        subjects = torch.cat((first.subjects, second.subjects))
    samples = torch.cat((first.samples, second.samples))
    return replace(first, samples=samples, labels=labels, subjects=subjects)
