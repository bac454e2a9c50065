"""Citations of a snapshot of the board, and of its papers."""

from __future__ import annotations

import yaml

from leaderboard.edition import Edition
from leaderboard.escapes import tex
from leaderboard.names import slugs

PUBLISHER = "The Veil Bench developers"


def citation_cff(edition: Edition) -> str:
    """CITATION.cff of this snapshot: another set of records has another version."""
    content = {
        "cff-version": "1.2.0",
        "message": "If you use these figures, please cite this snapshot, and the papers of the methods you report.",
        "title": _title(edition),
        "type": "dataset",
        "authors": [{"name": PUBLISHER}],
        "version": edition.snapshot[:12],
        "identifiers": [
            {"type": "other", "value": f"sha256:{edition.snapshot}", "description": "of the records' digests"}
        ],
    }
    dated = {"date-released": edition.date[:10]} if edition.date else {}
    return yaml.safe_dump({**content, **dated}, sort_keys=False, allow_unicode=True, width=120)


def bibtex(edition: Edition) -> str:
    """BibTeX of the snapshot, and of each method's and attack's source."""
    snapshot = {"title": f"{{{tex(_title(edition))}}}", "author": f"{{{PUBLISHER}}}",
                "note": tex(f"Snapshot sha256:{edition.snapshot}")}  # fmt: skip
    if edition.date:
        snapshot |= {"year": tex(edition.date[:4]), "date": edition.date[:10] if edition.date[:10].isascii() else ""}
    entries = [_entry(f"veil-bench-{edition.snapshot[:12]}", snapshot)]
    sources: dict[str, str] = {}
    for record in edition.taken.records:
        for kind, plugin in (("method", record.method), ("attack", record.attack)):
            if plugin is not None:
                sources[f"{kind}-{plugin.name}"] = plugin.source
    keys = slugs(sources)
    for name, source in sorted(sources.items()):
        what, _, title = name.partition("-")
        entries.append(
            _entry(
                keys[name],
                {"key": tex(title), "title": f"{{{tex(title)}}}", "note": tex(f"{what} of Veil Bench after: {source}")},
            )
        )
    return "\n".join(entries)


def _title(edition: Edition) -> str:
    return f"Veil Bench board, protocol {edition.protocol}, snapshot {edition.snapshot[:12]}"


def _entry(key: str, fields: dict[str, str]) -> str:
    told = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key},\n{told}\n}}\n"
