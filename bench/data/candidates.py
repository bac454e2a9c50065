"""The owner's rows and Eve's candidates, by profile."""

from __future__ import annotations

from dataclasses import replace

import torch

from bench.contract.eve_profile import PROFILES
from bench.contract.source import DataError
from bench.data.splits import Candidates, Splits
from bench.rows.grouping import persons_of
from bench.seeds import derive, generator

FEWEST_PEOPLE = 10
"""Smallest number of people that `other-study` can judge by."""


def seen_by(profile: str, splits: Splits, seed: int) -> tuple[Splits, list[str]]:
    """The owner's rows and Eve's candidates of a profile, and notes.

    People are drawn by `seed`, the same for every method.

    Raises:
        DataError: Too few people, or with too few images.
    """
    known = PROFILES[profile]
    if known.everyone:
        return splits, []
    private, random = splits.private, generator(derive(seed, "profile", profile))
    person = persons_of(private)
    notes = []
    if known.same_image:
        released, held = _halves(person, private.name, profile, random)
    else:
        released, held, alone = _other_images(splits, person, random)
        notes += (
            [f"{alone} people with one private image are left out: there is no other image of them"] if alone else []
        )
    pairs = _pairs(released, held, person, same_image=known.same_image)
    told = splits.attributes.get("private")
    candidates = Candidates(private.take(held), pairs, None if told is None else told.take(held))
    attributes = {name: each.take(released) if name == "private" else each for name, each in splits.attributes.items()}
    changed = replace(
        splits,
        private=private.take(released),
        candidates=candidates,
        natural=None if splits.natural is None else splits.natural[released],
        attributes=attributes,
        rows={**splits.rows, "private": splits.rows["private"][released.numpy()]},
    )
    matched = len(torch.unique(pairs[:, 0]))
    return changed, [f"Eve holds {len(held)} raw images, and {matched} of them have a correct pair", *notes]


def _halves(
    person: torch.Tensor, name: str, profile: str, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Released and held rows: all, and those of half of the people."""
    people = int(person.max()) + 1
    if people < 2:
        raise DataError(f"--eve {profile} needs at least two people, and {name} has {people} among its private rows")
    half = torch.zeros(people, dtype=torch.bool)
    half[torch.randperm(people, generator=random)[: people // 2]] = True
    some, every = half[person].nonzero()[:, 0], torch.arange(len(person))
    return (some, every) if profile == "superset" else (every, some)


def _other_images(
    splits: Splits, person: torch.Tensor, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Released rows, a held row of each person, people left out."""
    private, images = splits.private, torch.bincount(person)
    several = images > 1
    if private.subjects is None or int(several.sum()) < FEWEST_PEOPLE:
        who = (
            "does not say who is who"
            if private.subjects is None
            else f"has {int(several.sum())} of them among its private rows"
        )
        raise DataError(
            f"--eve other-study needs at least {FEWEST_PEOPLE} people with several images, and {private.name} {who}: "
            f"choose another data set or a larger preset, or leave --eve out"
        )
    order = torch.randperm(len(private), generator=random)
    first = torch.empty(len(images), dtype=torch.int64)
    first[person[order].flip(0)] = order.flip(0)
    held = first[several].sort().values
    released = several[person]
    released[held] = False
    return released.nonzero()[:, 0], held, int((~several).sum())


def _pairs(released: torch.Tensor, held: torch.Tensor, person: torch.Tensor, *, same_image: bool) -> torch.Tensor:
    """Places (p, 2) in `held` and `released` of one image or person."""
    names = torch.arange(len(person)) if same_image else person
    place = torch.full((int(names.max()) + 1,), -1)
    place[names[held]] = torch.arange(len(held))
    pairs = torch.stack((place[names[released]], torch.arange(len(released))), dim=1)
    return pairs[pairs[:, 0] >= 0]
