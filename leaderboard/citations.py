"""How to cite a snapshot of the board, and the papers that its rows are after."""

from __future__ import annotations

import yaml

from leaderboard.edition import Shown
from leaderboard.escapes import tex
from leaderboard.names import slugs

PUBLISHER = "The Veil Bench developers"


def citation_cff(shown: Shown) -> str:
    """CITATION.cff of this snapshot: another set of records has another version."""
    content = {
        "cff-version": "1.2.0",
        "message": "If you use these figures, please cite this snapshot, and the papers of the methods you report.",
        "title": _title(shown),
        "type": "dataset",
        "authors": [{"name": PUBLISHER}],
        "version": shown.snapshot[:12],
        "identifiers": [
            {"type": "other", "value": f"sha256:{shown.snapshot}", "description": "of the records' digests"}
        ],
    }
    dated = {"date-released": shown.date[:10]} if shown.date else {}
    return yaml.safe_dump({**content, **dated}, sort_keys=False, allow_unicode=True, width=120)


def bibtex(shown: Shown) -> str:
    """The snapshot, and an entry for the source of every method and attack as its plug-in words it."""
    snapshot = {"title": f"{{{tex(_title(shown))}}}", "author": f"{{{PUBLISHER}}}",
                "note": tex(f"Snapshot sha256:{shown.snapshot}")}  # fmt: skip
    if shown.date:
        snapshot |= {"year": tex(shown.date[:4]), "date": shown.date[:10] if shown.date[:10].isascii() else ""}
    entries = [_entry(f"veil-bench-{shown.snapshot[:12]}", snapshot)]
    sources: dict[str, str] = {}
    for record in shown.taken.records:
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


def _title(shown: Shown) -> str:
    return f"Veil Bench board, protocol {shown.protocol}, snapshot {shown.snapshot[:12]}"


def _entry(key: str, fields: dict[str, str]) -> str:
    told = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key},\n{told}\n}}\n"
