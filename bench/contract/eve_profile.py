"""Profiles of Eve: her raw images, and further knowledge.

The medical literature attacks by another image of a person (Packhäuser et al. 2022, "Deep learning-based patient
re-identification is able to exploit the biometric nature of medical chest X-ray data"); the papers of keyed encoders by
the very image that was released (Yala et al. 2022, "Syfer", section 5). Cryptography also grants known and chosen
plaintexts (Katz and Lindell, "Introduction to Modern Cryptography", section 1.4). Each is measured, and never mixed.
"""

from __future__ import annotations

__figures__ = True

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from bench.validation import at_least

SAME_IMAGE = "same-image"


@dataclass(frozen=True)
class Profile:
    """One Eve.

    Its fields are a user's choices, which None leaves out.

    `same_image` is True if a correct pair is an image and the row released of it; False if it is a person. `everyone`
    says that she holds the released images, all of them and no other, and nothing else of the release; `images` that
    she holds raw images at all; `knows` that she knows pairs under the key that she attacks; `relinks` that two
    releases of the same people are linked, and she holds no image.
    """

    name: ClassVar[str] = "unknown"
    words: ClassVar[str] = "images that this version does not know"
    same_image: ClassVar[bool] = False
    everyone: ClassVar[bool] = False
    images: ClassVar[bool] = True
    knows: ClassVar[bool] = False
    relinks: ClassVar[bool] = False

    @property
    def holds(self) -> str:
        """Her knowledge, in words that end a sentence "Eve holds ..."."""
        return self.words

    @property
    def pair(self) -> str:
        """A correct pair, in words."""
        return "an image and the row released of it" if self.same_image else "unknown"

    def __str__(self) -> str:
        """The profile's one spelling, on the command line and in records."""
        chosen = ((field.name, getattr(self, field.name)) for field in fields(self))
        inside = ",".join(f"{name}={value}" for name, value in chosen if value is not None)
        return f"{self.name}[{inside}]" if inside else self.name


@dataclass(frozen=True)
class SameImage(Profile):
    """Eve holds the released images: the worst case."""

    name: ClassVar[str] = SAME_IMAGE
    words: ClassVar[str] = "the very images that were released"
    same_image: ClassVar[bool] = True
    everyone: ClassVar[bool] = True


Sameness = Literal["view", "finding", "view+finding"]


@dataclass(frozen=True)
class OtherStudy(Profile):
    """Eve holds another image of each person.

    Args:
        same: All images, hers and the released ones, are of one view, of one finding or of both, so that neither names
            people. None takes all images.
    """

    name: ClassVar[str] = "other-study"
    same: Sameness | None = None

    @property
    def holds(self) -> str:
        """Her images."""
        alike = "" if self.same is None else f"; all images are of the same {self.same.replace('+', ' and ')}"
        return f"one other image of each person, which was not released{alike}"

    @property
    def pair(self) -> str:
        """Two images of a person."""
        return "an image and a row released of another image of the same person"


@dataclass(frozen=True)
class Superset(Profile):
    """Eve holds the released images among as many of other people."""

    name: ClassVar[str] = "superset"
    words: ClassVar[str] = "the released images among as many of other people"
    same_image: ClassVar[bool] = True


@dataclass(frozen=True)
class Subset(Profile):
    """Eve holds the images of half of the released people."""

    name: ClassVar[str] = "subset"
    words: ClassVar[str] = "the images of half of the released people"
    same_image: ClassVar[bool] = True


@dataclass(frozen=True)
class KnownPairs(Profile):
    """Eve knows the released rows of some people.

    Args:
        k: How many people she knows, one image of each. They are drawn by a secret, and scored in no figure.
    """

    name: ClassVar[str] = "known-pairs"
    same_image: ClassVar[bool] = True
    knows: ClassVar[bool] = True
    k: int = 5

    def __post_init__(self) -> None:
        at_least(1, k=self.k)

    @property
    def holds(self) -> str:
        """Her images."""
        many = "one person" if self.k == 1 else f"{self.k} people"
        return f"the released images, and knows the released row of an image of {many}, who are not scored"


@dataclass(frozen=True)
class Oracle(Profile):
    """Eve has images of her choice encoded under each key.

    Args:
        queries: How many images, for each key.
    """

    name: ClassVar[str] = "oracle"
    same_image: ClassVar[bool] = True
    knows: ClassVar[bool] = True
    queries: int = 100

    def __post_init__(self) -> None:
        at_least(1, queries=self.queries)

    @property
    def holds(self) -> str:
        """Her images."""
        return f"the released images, and has {self.queries} images of her choice encoded under each key (`Key.query`)"


@dataclass(frozen=True)
class TwoReleases(Profile):
    """Eve links two releases of the same rows, without raw images.

    Args:
        method: Made the release that she holds, such as `dauntless`. None stands for the method that is scored, under
            another key.
    """

    name: ClassVar[str] = "two-releases"
    same_image: ClassVar[bool] = True
    images: ClassVar[bool] = False
    relinks: ClassVar[bool] = True
    method: str | None = None

    @property
    def holds(self) -> str:
        """Her rows."""
        by = "another key" if self.method is None else f"a key of {self.method}"
        return f"another release of the same rows, under {by}, and no raw image of them"

    @property
    def pair(self) -> str:
        """Two released rows."""
        return "the two rows released of an image"


@dataclass(frozen=True)
class PublicOnly(Profile):
    """Eve holds no image of the released people.

    Public and control rows are of the same kind.
    """

    name: ClassVar[str] = "public-only"
    words: ClassVar[str] = "images of other people only"
    images: ClassVar[bool] = False

    @property
    def pair(self) -> str:
        """There is none."""
        return "none: no person can be named"


PROFILES: Mapping[str, type[Profile]] = {
    cls.name: cls
    for cls in (SameImage, OtherStudy, Superset, Subset, KnownPairs, Oracle, TwoReleases, PublicOnly)
}  # fmt: skip
"""Every profile by name."""
