"""The templates of the pages and their functions; all text is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leaderboard.board import FORMAL, Row, apart, epsilon_text, missing, ordered, telling, used
from leaderboard.claims import METRIC
from leaderboard.downloads import badges
from leaderboard.entries import WORDS, against_null, interval, number, reason, short
from leaderboard.escapes import page
from leaderboard.intake import Tier
from leaderboard.lines import usually_hidden
from leaderboard.names import parameters_text
from leaderboard.repeat import command, cost
from leaderboard.row_data import dumped
from leaderboard.row_schema import record_address, row_address
from leaderboard.standing import MEANINGS, SIGNS
from leaderboard.tables import flat


@cache
def environment() -> Environment:
    """The templates; made once, for compiling them takes longer than most pages."""
    env = Environment(
        loader=PackageLoader("leaderboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False, finalize=_harmless,
    )  # fmt: skip
    env.filters |= {
        "flat": flat,
        "ordered": ordered,
        "number": number,
        "json": _json,
        "dumped": dumped,
        "pairs": parameters_text,
        "short": short,
        "soft": soft,
    }
    env.globals |= {"words": WORDS, "number": number, "interval": interval, "against_null": against_null}
    env.globals |= {"reason": reason, "command": command, "cost": cost}
    env.globals |= {"epsilon_text": epsilon_text, "telling": telling}
    env.globals |= {"formal": FORMAL, "audited": METRIC, "apart": apart}
    env.globals |= {"used": used, "shared_null": _shared_null, "missing": missing}
    env.globals |= {"usually_hidden": usually_hidden, "badges": badges}
    env.globals |= {"row_address": row_address, "record_address": record_address}
    env.globals |= {"signs": SIGNS, "meanings": MEANINGS, "tiers": [tier.word for tier in Tier]}
    return env


def drawn(template: str, **told: object) -> Callable[[], str]:
    """A function that renders a template."""
    return lambda: environment().get_template(template).render(**told)


def _shared_null(some: Sequence[Row], metric: str) -> str:
    """The figure of chance if all rows of a table share it."""
    nulls = {row.entries[metric].null for row in some if row.entries[metric].score}
    return nulls.pop() if len(nulls) == 1 else ""


def soft(text: str) -> Markup:
    """Text that may break after _ and commas only.

    >>> str(soft("patch_size=4"))
    'patch_<wbr/>size=4'
    """
    return Markup("<wbr/>").join(re.split(r"(?<=[_,])", text))


def _harmless(value: object) -> object:
    if not isinstance(value, str):
        return value
    return Markup(page(value)) if isinstance(value, Markup) else page(value)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
