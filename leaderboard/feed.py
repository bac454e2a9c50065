"""An Atom feed of the newest rows; its addresses are relative, for the site does not know where it stands."""

from __future__ import annotations

import uuid

from leaderboard.api import row_address
from leaderboard.board import Row
from leaderboard.decisions import created
from leaderboard.edition import Shown
from leaderboard.escapes import xml
from leaderboard.standing import standing

MOST = 100
SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "veil-bench")
NEVER = "1970-01-01T00:00:00Z"


def atom(shown: Shown, page: str) -> str:
    """The feed; an entry's name changes when one of its records does. `page` is where the rows are shown."""
    newest = sorted(shown.taken.rows, key=lambda row: (created(row), row.id), reverse=True)[:MOST]
    title = f"Veil Bench: new rows, protocol {shown.protocol}"
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{xml(title)}</title>\n<id>{_name(title)}</id>\n<updated>{xml(_stamp(shown.date) or NEVER)}</updated>\n"
        "<author><name>The Veil Bench developers</name></author>\n"
        f'<link rel="alternate" type="text/html" href="{xml(page)}"/>\n'
        f"{''.join(_entry(row, shown, page) for row in newest)}</feed>\n"
    )


def _entry(row: Row, shown: Shown, page: str) -> str:
    name = " ".join([row.id, *sorted(str(record.digest) for record in row.records)])
    summary = f"{standing(row).sentence}. Preset {row.preset}, seed {row.seed}; tier: {shown.taken.tier(row).word}."
    said = f"{summary} Not rated: {row.unrated}." if row.unrated else summary
    return (
        f"<entry><title>{xml(f'{row.records[0].method.written} on {row.dataset}')}</title><id>{_name(name)}</id>"
        f"<updated>{xml(_stamp(created(row)))}</updated>"
        f'<link rel="alternate" type="text/html" href="cells/{row.id}.html"/>'
        f'<link rel="related" type="application/json" href="{xml(row_address(row))}"/>'
        f"<summary>{xml(f'{said} {row.caveat}'.rstrip())}</summary></entry>\n"
    )


def _name(text: str) -> str:
    return f"urn:uuid:{uuid.uuid5(SPACE, text)}"


def _stamp(when: str) -> str:
    return when.replace("+00:00", "Z")
