from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made.feature_images import images, table

from bench.features.public_cnn import PublicCNN
from bench.types import NotApplicable

SMALL = PublicCNN(width=4, epochs=6, batch=8)


def test_what_the_labels_taught_shows_in_images_never_seen() -> None:
    public, fresh = images(48), images(40, seed=1)
    fitted = SMALL.fit(public, 0)
    with torch.no_grad():
        learned, seen = fitted.embed(public.samples), fitted.embed(fresh.samples)
    assert seen.shape == (40, 32)
    means = torch.stack([learned[public.labels[:, 0] == value].mean(dim=0) for value in (0, 1)])
    nearest = torch.cdist(seen, means).argmin(dim=1)
    assert torch.equal(nearest, fresh.labels[:, 0].long())  # by chance: once in 2^40
    assert fitted.notes() == {"public images with a label": 48}


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
    PublicCNN(width=4, epochs=1, batch=8).fit(images(), 0)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("wrong", [{"width": 0}, {"epochs": 0}, {"batch": 1}, {"learning_rate": 0.0}])
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        PublicCNN(**wrong)
