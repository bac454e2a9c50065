"""Profiles of Eve by their text, such as `known-pairs[k=5]`."""

from __future__ import annotations

__figures__ = False

from collections.abc import Hashable
from functools import lru_cache
from typing import cast

from bench.contract.eve_profile import PROFILES, SAME_IMAGE, Profile
from bench.plugins.spec import UsageError, construct, did_you_mean, parse


def read_profile(text: str) -> Profile:
    """The profile that a user wrote.

    Raises UsageError for an unknown name or parameter, or a value that it cannot take.

    >>> str(read_profile("known-pairs")), str(read_profile("other-study[same=view]"))
    ('known-pairs[k=5]', 'other-study[same=view]')
    """
    spec = parse(text)
    if spec.name not in PROFILES:
        raise UsageError(f"unknown profile {spec.name!r}; {did_you_mean(spec.name, PROFILES)}")
    return cast(Profile, construct(PROFILES[spec.name], spec))


@lru_cache(maxsize=1 << 10)  # thousands of records say one of a few
def profile_of(text: Hashable) -> Profile:
    """The profile of a record's text.

    One of a later version has no correct image.

    >>> profile_of(None).name, profile_of("other-study").same_image, profile_of("x").same_image
    ('same-image', False, False)
    """
    try:
        return read_profile(SAME_IMAGE if text is None else str(text))
    except UsageError:
        return Profile()
