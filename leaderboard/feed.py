"""An Atom feed of the newest rows, with relative addresses."""

from __future__ import annotations

import uuid

from leaderboard.edition import Edition
from leaderboard.escapes import xml
from leaderboard.row_schema import BoardRow

MOST = 100
SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "veil-bench")
NEVER = "1970-01-01T00:00:00Z"


def atom(edition: Edition, page: str) -> str:
    """The feed; an entry's id changes with its records."""
    newest = sorted(edition.rows, key=lambda row: (row.created, row.id), reverse=True)[:MOST]
    title = f"Veil Bench: new rows, protocol {edition.protocol}"
    updated = xml(_stamp(edition.date) or NEVER)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{xml(title)}</title>\n<id>{_name(title)}</id>\n<updated>{updated}</updated>\n"
        "<author><name>The Veil Bench developers</name></author>\n"
        f'<link rel="alternate" type="text/html" href="{xml(page)}"/>\n'
        f"{''.join(_entry(row) for row in newest)}</feed>\n"
    )


def _entry(row: BoardRow) -> str:
    name = " ".join([row.id, *sorted(row.digests.values())])
    summary = f"{row.sentence}. Preset {row.preset}, seed {row.seed}; tier: {row.tier}."
    said = f"{summary} Not rated: {row.unrated}." if row.unrated else summary
    return (
        f"<entry><title>{xml(f'{row.asked} on {row.dataset}')}</title><id>{_name(name)}</id>"
        f"<updated>{xml(_stamp(row.created))}</updated>"
        f'<link rel="alternate" type="text/html" href="cells/{row.id}.html"/>'
        f'<link rel="related" type="application/json" href="{xml(row.file)}"/>'
        f"<summary>{xml(f'{said} {row.caveat}'.rstrip())}</summary></entry>\n"
    )


def _name(text: str) -> str:
    return f"urn:uuid:{uuid.uuid5(SPACE, text)}"


def _stamp(when: str) -> str:
    return when.replace("+00:00", "Z")
