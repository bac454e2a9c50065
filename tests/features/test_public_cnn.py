from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made.feature_images import images, table

from bench.contract.extractor import Embedding
from bench.features.public_cnn import PublicCNN
from bench.seeds import generator
from bench.types import Dataset, NotApplicable

# Not narrower: float32 convolutions of 2 or 4 channels by oneDNN's AVX2 kernels have been seen to corrupt memory.
SMALL = PublicCNN(width=8, epochs=6, batch=8, learning_rate=0.01)


def striped(rows: int, seed: int) -> Dataset:
    """Noise of any brightness under stripes that run down every second image and across the others."""
    source, present = generator(seed), torch.arange(rows) % 2
    samples = torch.rand((rows, 1, 8, 8), generator=source) + torch.rand((rows, 1, 1, 1), generator=source)
    across = ((torch.arange(8)[:, None] + torch.randint(2, (rows, 1, 1, 1), generator=source)) % 2 - 0.5).expand(
        -1, -1, -1, 8
    )
    samples += torch.where(present[:, None, None, None] == 1, across, across.transpose(2, 3))
    return Dataset("made", samples, present[:, None].float(), torch.arange(rows), ("across",), False, True)


def nearer_their_own_mean(embedding: Embedding, public: Dataset, fresh: Dataset) -> int:
    """How many fresh images lie nearer the mean public vector of their own label than that of the other."""
    with torch.no_grad():
        learned, seen = embedding.embed(public.samples), embedding.embed(fresh.samples)
    assert seen.shape == (len(fresh), 64)
    means = torch.stack([learned[public.labels[:, 0] == value].mean(dim=0) for value in (0, 1)])
    return int((torch.cdist(seen, means).argmin(dim=1) == fresh.labels[:, 0].long()).sum())


def test_what_the_labels_taught_shows_in_images_never_seen() -> None:
    public, fresh = striped(64, 0), striped(100, 1)
    fitted, untaught = SMALL.fit(public, 1), replace(SMALL, epochs=1, learning_rate=1e-12).fit(public, 1)
    # 100 fair coins: 75 or more once in 3.5 million. Any arithmetic that learns gets nearly all of them.
    assert nearer_their_own_mean(fitted, public, fresh) >= 75
    assert nearer_their_own_mean(untaught, public, fresh) < 75  # it was the labels
    assert fitted.notes() == {"public images with a label": 64}


def test_public_images_without_labels_are_refused_with_the_alternatives() -> None:
    data = images()
    for labels in (None, torch.full_like(data.labels, torch.nan), torch.ones_like(data.labels)):
        with pytest.raises(NotApplicable, match="choose another --public, or eigenspace, pixels or timm:MODEL"):
            SMALL.fit(replace(data, labels=labels), 0)
    with pytest.raises(NotApplicable, match="vectors already"):
        SMALL.fit(table(), 0)


def test_training_leaves_the_global_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    replace(SMALL, epochs=1).fit(images(), 0)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("wrong", [{"width": 7}, {"epochs": 0}, {"batch": 1}, {"learning_rate": 0.0}])
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        PublicCNN(**wrong)
