"""Profiles of Eve: the raw images that she holds.

The medical literature attacks by another image of a person (Packhäuser et al. 2022, "Deep learning-based patient
re-identification is able to exploit the biometric nature of medical chest X-ray data"); the papers of keyed encoders by
the very image that was released (Yala et al. 2022, "Syfer", section 5). Both are measured, and never mixed.
"""

from __future__ import annotations

__figures__ = True

from collections.abc import Mapping
from dataclasses import dataclass

SAME_IMAGE = "same-image"


@dataclass(frozen=True)
class Profile:
    """One Eve.

    Args:
        name: As records and the command line write it.
        holds: Her raw images, in words that end a sentence "Eve holds ...".
        pair: A correct pair, in words.
        same_image: True if a correct pair is an image and the row released of it; False if it is a person.
        everyone: True if she holds the released images, all of them and no other.
    """

    name: str
    holds: str
    pair: str
    same_image: bool
    everyone: bool


PROFILES: Mapping[str, Profile] = {
    SAME_IMAGE: Profile(
        SAME_IMAGE, "the very images that were released", "an image and the row released of it",
        True, True,
    ),
    "other-study": Profile(
        "other-study", "one other image of each person, which was not released",
        "an image and a row released of another image of the same person", False, False,
    ),
    "superset": Profile(
        "superset", "the released images among as many of other people", "an image and the row released of it",
        True, False,
    ),
    "subset": Profile(
        "subset", "the images of half of the released people", "an image and the row released of it",
        True, False,
    ),
}  # fmt: skip
"""Every profile by name."""


def profile_of(name: object) -> Profile:
    """The profile of that name; an unknown one has no correct image.

    >>> profile_of(None).name, profile_of("other-study").same_image, profile_of("x").same_image
    ('same-image', False, False)
    """
    if name is None:
        return PROFILES[SAME_IMAGE]
    unknown = Profile("unknown", "images that this version does not know", "unknown", False, False)
    return PROFILES.get(str(name), unknown)
