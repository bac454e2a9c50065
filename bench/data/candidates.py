"""The owner's rows and Eve's candidates, by profile."""

from __future__ import annotations

from dataclasses import replace

import torch

from bench.contract.attributes import UNKNOWN_GROUP
from bench.contract.eve_profile import KnownPairs, OtherStudy, Profile, Sameness, Subset, Superset
from bench.contract.source import DataError
from bench.data.splits import Candidates, Splits
from bench.rows.grouping import persons_of
from bench.seeds import derive, generator
from bench.types import Attributes, Dataset

FEWEST_PEOPLE = 10
"""Smallest number of people that a profile can judge by."""
SEVERAL = f"at least {FEWEST_PEOPLE} people with several images"
"""What `other-study` needs, in the words of its refusal."""


def seen_by(profile: Profile, splits: Splits, seed: int) -> tuple[Splits, list[str]]:
    """The owner's rows and Eve's candidates of a profile, and notes.

    People are drawn by `seed`, the same for every method. Those of `known-pairs` are drawn anew by a secret, as many
    and with as many images (`with_known`).

    Raises:
        DataError: Too few people, or with too few images.
    """
    private, random = splits.private, generator(derive(seed, "profile", profile.name))
    person, every = persons_of(private), torch.arange(len(private))
    if isinstance(profile, OtherStudy):
        released, held, notes = _other_images(splits, person, profile, random)
    elif isinstance(profile, Superset | Subset):
        people = int(person.max()) + 1
        some = _half(person, people, private.name, profile, random)
        released, held, notes = (some, every, []) if isinstance(profile, Superset) else (every, some, [])
    elif isinstance(profile, KnownPairs):
        order = torch.randperm(int(person.max()) + 1, generator=random)
        candidates = with_known(private, splits.attributes.get("private"), profile, order)
        aside = len(private) - len(candidates.rows)
        note = f"Eve knows {profile.k} pairs; {aside} raw images of these people are scored in no figure"
        return replace(splits, candidates=candidates), [note]
    elif not profile.images and not profile.relinks:
        none = every[:0]
        candidates = Candidates(private.take(none), torch.zeros(0, 2, dtype=torch.int64))
        return replace(splits, candidates=candidates), ["Eve holds no raw image of the released people"]
    else:
        return splits, []
    pairs = _pairs(released, held, person, same_image=profile.same_image)
    told = splits.attributes.get("private")
    attributes = {name: each.take(released) if name == "private" else each for name, each in splits.attributes.items()}
    changed = replace(
        splits,
        private=private.take(released),
        candidates=Candidates(private.take(held), pairs, None if told is None else told.take(held)),
        natural=None if splits.natural is None else splits.natural[released],
        attributes=attributes,
        rows={**splits.rows, "private": splits.rows["private"][released.numpy()]},
    )
    matched = len(torch.unique(pairs[:, 0]))
    return changed, [f"Eve holds {len(held)} raw images, and {matched} of them have a correct pair", *notes]


def with_known(private: Dataset, attributes: Attributes | None, profile: KnownPairs, order: torch.Tensor) -> Candidates:
    """Eve's candidates, and the private rows whose released rows she knows.

    The first people of `order` (a permutation, int64) are known by one image each; of those with one image, with two
    and so on as many as is their share. So the number of candidates does not depend on the order.

    Raises:
        DataError: Too few people.
    """
    person = persons_of(private)
    images = torch.bincount(person)
    if len(images) < profile.k + FEWEST_PEOPLE:
        raise DataError(
            f"--eve {profile} needs at least {profile.k + FEWEST_PEOPLE} people, of whom {FEWEST_PEOPLE} are scored, "
            f"and {private.name} has {len(images)} among its private rows: choose a smaller k, another data set or a "
            f"larger preset"
        )
    numbers, counts = torch.unique(images, return_counts=True)
    shares = profile.k * counts // len(images)
    most = (profile.k * counts % len(images)).argsort(descending=True, stable=True)
    shares[most[: profile.k - int(shares.sum())]] += 1
    chosen = [order[images[order] == number][:share] for number, share in zip(numbers, shares.tolist(), strict=True)]
    people = torch.cat(chosen)
    left = ~torch.isin(person, people)
    rows = left.nonzero()[:, 0]
    first = torch.full((len(images),), len(person)).scatter_reduce(0, person, torch.arange(len(person)), "amin")
    pairs = torch.stack((torch.arange(len(rows)), rows), dim=1)
    told = None if attributes is None else attributes.take(rows)
    return Candidates(private.take(rows.to(private.samples.device)), pairs, told, first[people])


def _half(person: torch.Tensor, people: int, name: str, profile: Profile, random: torch.Generator) -> torch.Tensor:
    """Rows of half of the people."""
    if people < 2:
        raise DataError(f"--eve {profile} needs at least two people, and {name} has {people} among its private rows")
    half = torch.zeros(people, dtype=torch.bool)
    half[torch.randperm(people, generator=random)[: people // 2]] = True
    return half[person].nonzero()[:, 0]


def _other_images(
    splits: Splits, person: torch.Tensor, profile: OtherStudy, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Released rows, a held row of each person, and notes."""
    private = splits.private
    kind, shown = _alike(splits, person, profile) if profile.same is not None else (torch.ones_like(person).bool(), "")
    images = torch.bincount(person[kind], minlength=int(person.max()) + 1)
    several = images > 1
    if private.subjects is None or int(several.sum()) < FEWEST_PEOPLE:
        who = (
            "does not say who is who"
            if private.subjects is None
            else f"has {int(several.sum())} of them among its private rows{shown}"
        )
        raise DataError(
            f"--eve {profile} needs {SEVERAL}, and {private.name} {who}: choose another data set or a larger preset, "
            f"or leave --eve out"
        )
    order = torch.randperm(len(private), generator=random)
    order = order[kind[order]]
    first = torch.empty(len(images), dtype=torch.int64)
    first[person[order].flip(0)] = order.flip(0)
    held = first[several].sort().values
    released = several[person] & kind
    released[held] = False
    alone = int((~several).sum())
    notes = [f"all images are alike{shown}"] if shown else []
    if alone:
        few = "with one private image" if not shown else "with fewer than two such private images"
        other = "there is no other image of them"
        notes.append(f"{alone} people {few} are left out: {other}")
    return released.nonzero()[:, 0], held, notes


def _alike(splits: Splits, person: torch.Tensor, profile: OtherStudy) -> tuple[torch.Tensor, str]:
    """Rows (n,) bool of the commonest view and finding; its name.

    The most people have two images of it.

    Raises:
        DataError: The data set names no view, or no finding.
    """
    same: Sameness | None = profile.same
    private, told = splits.private, splits.attributes.get("private")
    columns, words = [], []
    if same != "finding":
        if told is None or "view" not in told.names:
            raise DataError(f"--eve {profile} compares views, and {private.name} names none: choose another data set")
        place = told.names.index("view")
        columns.append(told.codes[:, place, None].double())
        views = (*told.groups[place], "unknown")  # which code -1 names
    labels = private.labels if splits.natural is None else splits.natural
    if same != "view":
        if labels is None or not private.findings:
            raise DataError(f"--eve {profile} compares findings, and {private.name} has none: choose another data set")
        columns.append(labels.double().cpu().nan_to_num(-1))
    kinds, of = torch.unique(torch.cat(columns, dim=1), dim=0, return_inverse=True)
    known = kinds[:, 0] != UNKNOWN_GROUP if same != "finding" else torch.ones(len(kinds)).bool()
    twice = [
        int((torch.bincount(person[of == number]) > 1).sum()) if known[number] else -1 for number in range(len(kinds))
    ]
    best = max(range(len(kinds)), key=twice.__getitem__)
    values = kinds[best].tolist()
    if same != "finding":
        words.append(f"view {views[int(values.pop(0))]}")
    if same != "view":
        yes = [name for name, value in zip(private.findings, values, strict=True) if value == 1]
        words.append(f"finding {', '.join(yes) or 'none'}")
    return (of == best) & known[best], f" ({', '.join(words)})"


def _pairs(released: torch.Tensor, held: torch.Tensor, person: torch.Tensor, *, same_image: bool) -> torch.Tensor:
    """Places (p, 2) in `held` and `released` of one image or person."""
    names = torch.arange(len(person)) if same_image else person
    place = torch.full((int(names.max()) + 1,), -1)
    place[names[held]] = torch.arange(len(held))
    pairs = torch.stack((place[names[released]], torch.arange(len(released))), dim=1)
    return pairs[pairs[:, 0] >= 0]
