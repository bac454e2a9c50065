from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.names import slug, slugs


@given(st.text())
def test_a_slug_never_leaves_its_folder(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug(name))


@given(st.sets(st.text(alphabet="aA-./ é", max_size=4), max_size=20))
def test_no_two_names_share_a_slug(names: set[str]) -> None:
    assert len(set(slugs(names).values())) == len(names)


def test_a_name_that_poses_as_the_slug_of_another_gets_its_own() -> None:
    assert len(set(slugs(["A b", slug("A b")]).values())) == 2
    assert slug("A b") != slug(slug("A b"))


def test_plain_names_keep_their_form() -> None:
    assert slugs(["dp-simple"]) == {"dp-simple": "dp-simple"}
