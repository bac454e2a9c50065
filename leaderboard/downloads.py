"""The board's files of numbers, badges, feed and citations."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import yaml
from pydantic import JsonValue

from bench.results import croissant
from leaderboard.api import INDEX, MANIFEST, SCHEMAS, index, row_file, schemas
from leaderboard.edition import Edition
from leaderboard.escapes import tex, xml
from leaderboard.names import shortened, slug, slugs
from leaderboard.panel import Word
from leaderboard.row_schema import GOOD, BoardRow, shown
from leaderboard.sections import Section
from leaderboard.tables import TablePart, can_write_parquet, latex_table, parquet_bytes

FEED = "feed.xml"
WITHOUT_PARQUET = "results.parquet and board.parquet are left out: pip install 'veil-bench[parquet]'"
LABEL = "Veil Bench"
PUBLISHER = "The Veil Bench developers"
LETTER, MARGIN, HEIGHT = 6.6, 6, 20  # of a badge: pixels at a letter height of 11
COLOURS: Mapping[Word, str] = {
    "broken": "#a1202c", "membership leaks": "#94420a", "leaks": "#94420a", "no leak above a bound": "#1c6b45",
    "no membership leak above a bound": "#1c6b45",
}  # fmt: skip
GREY = "#5b636b"  # of verdicts without a finding
MOST_ENTRIES = 100
LICENCE = "Apache-2.0"  # of figures; images have their owners'
SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "veil-bench")
NEVER = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Link:
    """A file of numbers as pages name it: address and content."""

    path: str
    meaning: str


@dataclass(frozen=True)
class Download:
    """A file of numbers: its name, its row (None: all), its content."""

    name: str
    row: BoardRow | None
    make: Callable[[], str | bytes]


def links(edition: Edition) -> list[Link]:
    """The links to downloads, in order; the index lists single rows' files."""
    return [
        *_table_links(edition.board_table, "one line a row: figure, interval and source of every metric", "as parquet"),
        *_table_links(
            edition.results_table,
            "every figure on a line of its own, parts included, and every place without one (pandas, R and polars read "
            "it compressed as it is)",
            "every figure as parquet",
        ),
        Link(INDEX, "the static API: rows, columns, and where the file of each row stands; records with replicates"),
        *(Link(f"{SCHEMAS}{name}.json", f"the JSON Schema of {name} files") for name in schemas()),
        Link(MANIFEST, "every row and every file that was left out, with the decision and its reason"),
        Link(FEED, "an Atom feed of new rows"),
        Link("citations.bib", "BibTeX of this snapshot and of the papers behind it"),
        Link("CITATION.cff", "how to cite this snapshot"),
        Link("croissant.json", "the tables described for machines (Croissant, with its fields for responsible AI)"),
        Link("zenodo.json", "metadata to deposit this snapshot in an archive; the authors' line is yours"),
        *(Link(name, "a table for LaTeX") for name, *_ in _latex_tables(edition)),
    ]


def badges(row: BoardRow) -> tuple[str, str]:
    """Addresses of a row's badge, as a picture and as JSON."""
    return f"badges/{row.id}.svg", f"badges/{row.id}.json"


def files(edition: Edition) -> Iterator[Download]:
    """Every file of numbers of a board, without the manifest."""
    for part in (*edition.board_table, *edition.results_table):
        yield Download(part.name, None, partial(bytes, part.content))
        if can_write_parquet():
            yield Download(f"{part.stem}.parquet", None, partial(parquet_bytes, part.table))
    yield Download(INDEX, None, partial(index, edition))
    for name, schema in schemas().items():
        yield Download(f"{SCHEMAS}{name}.json", None, partial(str, schema))
    yield Download(FEED, None, partial(atom, edition))
    yield Download("citations.bib", None, partial(bibtex, edition))
    yield Download("CITATION.cff", None, partial(citation_cff, edition))
    yield Download("croissant.json", None, partial(croissant_card, edition))
    yield Download("zenodo.json", None, partial(deposit, edition))
    for name, section, preset, seed in _latex_tables(edition):
        yield Download(name, None, partial(_latex_text, edition, section, preset, seed))
    for row in edition.rows:
        picture, badge = badges(row)
        yield Download(row.file, row, partial(row_file, row))
        yield Download(picture, row, partial(badge_svg, row))
        yield Download(badge, row, partial(badge_json, row))
        for record in edition.row_of(row).records:
            yield Download(row.records[record.evaluator], row, partial(edition.taken.text, edition.as_measured(record)))


def _table_links(parts: Sequence[TablePart], meaning: str, as_parquet: str) -> Iterator[Link]:
    """The files of a table; only the first is described in full."""
    for ending, text in (("", meaning), *([(".parquet", as_parquet)] if can_write_parquet() else [])):
        for number, part in enumerate(parts):
            names = part.values("dataset")
            of = f"of {', '.join(names) if len(names) <= 3 else f'{names[0]} to {names[-1]}'}" * (len(parts) > 1)
            yield Link(part.stem + ending if ending else part.name, "; ".join(filter(None, (text * (not number), of))))


def _latex_tables(edition: Edition) -> Iterator[tuple[str, Section, str, int]]:
    """Addresses of LaTeX tables, one a data set, preset and seed."""
    for part in edition.parts:
        for preset, seed in sorted({(row.preset, row.seed) for row in part.rows}):
            yield f"latex/{part.slug}-{slug(preset)}-{slug(str(seed))}.tex", part, preset, seed


def _latex_text(edition: Edition, part: Section, preset: str, seed: int) -> str:
    rows = [row for row in edition.rows if (row.section, row.preset, row.seed) == (part.slug, preset, seed)]
    caption = f"{part.title}, preset {preset}, seed {seed}; 95 % intervals in parentheses"
    snapshot = f"Veil Bench, protocol {edition.protocol}, snapshot {edition.snapshot[:12]}."
    return latex_table(rows, edition.columns, f"{caption}. {snapshot}")


def message(row: BoardRow) -> str:
    """A badge's text: verdict, data set, preset and tier."""
    place = shortened(f"{row.data_name} {row.preset}", 32)
    return f"{'reference' if row.reference else row.label} · {place} · {row.tier}"


def colour(row: BoardRow) -> str:
    """The colour of the verdict; grey for bounds of incomplete panels."""
    return GREY if row.reference or (row.verdict in GOOD and not row.complete) else COLOURS.get(row.verdict, GREY)


def badge_svg(row: BoardRow) -> str:
    """The badge as an SVG that loads and runs nothing."""
    text = message(row)
    left, right = (round(len(part) * LETTER + 2 * MARGIN) for part in (LABEL, text))
    title, label = xml(f"{LABEL}: {text}"), xml(LABEL)
    fit = 'lengthAdjust="spacingAndGlyphs"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" '
        f'aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{left}" height="{HEIGHT}" fill="#24292e"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{colour(row)}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{MARGIN}" y="14" textLength="{left - 2 * MARGIN}" {fit}>{label}</text>'
        f'<text x="{left + MARGIN}" y="14" textLength="{right - 2 * MARGIN}" {fit}>{xml(text)}'
        "</text></g></svg>\n"
    )


def badge_json(row: BoardRow) -> str:
    """The endpoint schema of shields.io, version 1."""
    content = {"schemaVersion": 1, "label": LABEL, "message": message(row), "color": colour(row).lstrip("#")}
    return json.dumps(content, sort_keys=True) + "\n"


def atom(edition: Edition) -> str:
    """An Atom feed of the newest rows, with relative addresses."""
    newest = sorted(edition.rows, key=lambda row: (row.created, row.id), reverse=True)[:MOST_ENTRIES]
    title = f"Veil Bench: new rows, protocol {edition.protocol}"
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{xml(title)}</title>\n<id>{_urn(title)}</id>\n<updated>{_time(edition.date) or NEVER}</updated>\n"
        f"<author><name>{PUBLISHER}</name></author>\n"
        '<link rel="alternate" type="text/html" href="index.html"/>\n'
        f"{''.join(map(_feed_entry, newest))}</feed>\n"
    )


def _feed_entry(row: BoardRow) -> str:
    fields = ", ".join(f"{mark.title.lower()} {getattr(row, name)}" for name, mark in shown("feed"))
    unrated = f" Not rated: {row.unrated}." if row.unrated else ""
    summary = f"{row.sentence}. {fields[:1].upper()}{fields[1:]}.{unrated} {row.caveat}".rstrip()
    return (
        f"<entry><title>{xml(f'{row.written} on {row.data_name}')}</title>"
        f"<id>{_urn(' '.join([row.id, *sorted(row.digests.values())]))}</id>"
        f"<updated>{_time(row.created)}</updated>"
        f'<link rel="alternate" type="text/html" href="cells/{row.id}.html"/>'
        f'<link rel="related" type="application/json" href="{xml(row.file)}"/>'
        f"<summary>{xml(summary)}</summary></entry>\n"
    )


def _urn(text: str) -> str:
    return f"urn:uuid:{uuid.uuid5(SPACE, text)}"


def _time(created: str) -> str:
    return xml(created.replace("+00:00", "Z"))


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
    date = {"date-released": edition.date[:10]} if edition.date else {}
    return yaml.safe_dump({**content, **date}, sort_keys=False, allow_unicode=True, width=120)


def croissant_card(edition: Edition) -> str:
    """The snapshot's tables in Croissant 1.0 with RAI fields."""
    parts = (*edition.board_table, *edition.results_table)
    media = {"csv": "text/csv", "csv.gz": "application/gzip"}
    types = {str: "sc:Text", int: "sc:Integer", float: "sc:Float"}
    files: list[JsonValue] = [
        {
            "@type": "cr:FileObject", "@id": part.name, "name": part.name, "contentUrl": part.name,
            "encodingFormat": media[part.ending], "sha256": hashlib.sha256(part.content).hexdigest(),
        }
        for part in parts
    ]  # fmt: skip
    tables: list[JsonValue] = [
        {
            "@type": "cr:RecordSet", "@id": part.stem, "name": part.stem, "field": [
                {
                    "@type": "cr:Field", "@id": f"{part.stem}/{number}", "name": f"{part.stem}/{number}",
                    "description": name, "dataType": types[kind],
                    "source": {"fileObject": {"@id": part.name}, "extract": {"column": name}},
                }
                for number, (name, kind) in enumerate(part.table.kinds.items())
            ],
        }
        for part in edition.board_table if part.ending == "csv"
    ]  # fmt: skip
    content: dict[str, JsonValue] = {
        **croissant.head(),
        "name": f"veil-bench-board-{edition.snapshot[:12]}",
        "description": _described(edition),
        "version": f"{edition.protocol}.0.0",
        "license": f"https://spdx.org/licenses/{LICENCE}.html",
        "citeAs": bibtex_of_snapshot(edition),
        "creator": {"@type": "sc:Organization", "name": PUBLISHER},
        "distribution": files,
        "recordSet": tables,
        "rai:dataCollection": [
            "Every figure was computed by the benchmark from the images of the data set in its line; its record names "
            "code, versions, machine and data by hashes."
        ],
        "rai:dataLimitations": [
            "Intervals are at 95 %. A method that no attack broke is not shown to be safe: a bound stands only where "
            "attacks ran to their end and found known leaks. Figures of different protocols, presets or data sets do "
            "not compare."
        ],
        "rai:dataUseCases": ["Compare obfuscation methods and attacks; check published figures."],
        "rai:personalSensitiveInformation": [*_pixels(edition)],
        "rai:dataSocialImpact": ["A verdict on one data set is no permission to release another."],
    }
    if edition.date:
        content["datePublished"] = edition.date[:10]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def deposit(edition: Edition) -> str:
    """Metadata for a deposit of this snapshot, as Zenodo's interface takes it."""
    metadata: dict[str, JsonValue] = {
        "title": _title(edition),
        "upload_type": "dataset",
        "description": _described(edition),
        "creators": [{"name": PUBLISHER}],
        "version": edition.snapshot[:12],
        "access_right": "open",
        "license": LICENCE.lower(),
        "keywords": ["privacy", "medical imaging", "re-identification", "benchmark"],
        "notes": " ".join([f"Snapshot sha256:{edition.snapshot}.", *_pixels(edition)]),
    }
    if edition.date:
        metadata["publication_date"] = edition.date[:10]
    return json.dumps({"metadata": metadata}, indent=1, ensure_ascii=False) + "\n"


def _pixels(edition: Edition) -> list[str]:
    """Images of people in a snapshot, with their licences."""
    sheets = [sheet for some in edition.sheets.values() for sheet in some]
    shown = {owner for sheet in sheets for owner in (sheet.owner, sheet.public) if owner}
    if not shown:
        return ["Figures alone, without pixels, paths or identifiers. Data sets stay with their owners."]
    return [
        "The tables hold figures alone, without pixels, paths or identifiers. Pages of rows show a few images of data "
        "sets that may be shared, beside what methods made of them; these images are not under the licence of the "
        "figures.",
        *(f"Images: {owner}." for owner in sorted(shown)),
    ]


def _described(edition: Edition) -> str:
    sets = ", ".join(part.title for part in edition.parts)
    return (
        f"{len(edition.rows)} rows of methods that are to make medical images safe to release, scored under one "
        f"harness (protocol {edition.protocol}): utility, guesswork, re-identification, dispersion and throughput, on "
        f"{sets or 'no data set yet'}."
    )


def bibtex_of_snapshot(edition: Edition) -> str:
    """BibTeX of the snapshot alone."""
    snapshot = {"title": f"{{{tex(_title(edition))}}}", "author": f"{{{PUBLISHER}}}",
                "note": tex(f"Snapshot sha256:{edition.snapshot}")}  # fmt: skip
    if edition.date:
        snapshot |= {"year": tex(edition.date[:4]), "date": edition.date[:10] if edition.date[:10].isascii() else ""}
    return _bibtex_entry(f"veil-bench-{edition.snapshot[:12]}", snapshot)


def row_bibtex(row: BoardRow) -> str:
    """BibTeX of one row, with a hash of its records' digests."""
    digest = hashlib.sha256(" ".join(sorted(row.digests.values())).encode()).hexdigest()
    title = f"{row.written} on {row.data_name}, preset {row.preset}, seed {row.seed}: a row of Veil Bench"
    fields = {"title": f"{{{tex(title)}}}", "author": f"{{{PUBLISHER}}}", "year": tex(row.created[:4]),
              "note": tex(f"Row {row.id}, {row.label}; records sha256:{digest}")}  # fmt: skip
    return _bibtex_entry(row.id, fields)


def bibtex(edition: Edition) -> str:
    """BibTeX of the snapshot, and of each method's and attack's source."""
    entries = [bibtex_of_snapshot(edition)]
    sources: dict[str, str] = {}
    for record in edition.taken.records:
        for kind, plugin in (("method", record.method), ("attack", record.attack)):
            if plugin is not None:
                sources[f"{kind}-{plugin.name}"] = plugin.source
    keys = slugs(sources)
    for name, source in sorted(sources.items()):
        kind, _, title = name.partition("-")
        note = tex(f"{kind} of Veil Bench after: {source}")
        entries.append(_bibtex_entry(keys[name], {"key": tex(title), "title": f"{{{tex(title)}}}", "note": note}))
    return "\n".join(entries)


def _title(edition: Edition) -> str:
    return f"Veil Bench board, protocol {edition.protocol}, snapshot {edition.snapshot[:12]}"


def _bibtex_entry(key: str, fields: dict[str, str]) -> str:
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}\n}}\n"
