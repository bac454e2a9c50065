"""The command line as pages, with an anchor for each option."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby

from cyclopts import Argument

import bench.cli
from bench.cli import VERBS
from docs.generator.markdown import Page, escape, join, relative, table

MENU = ("Command line",)
INDEX = "command-line/index.md"


def command_line_pages() -> list[Page]:
    """The overview and a page for each verb."""
    rows = [
        (f"[`bench {name}`]({relative(verb_path(name), INDEX)}{_fragment(name)})", escape(verb.help))
        for name, verb in VERBS.items()
    ]
    overview = Page(INDEX, MENU[0], join(
        "# Command line",
        bench.cli.HEADLINE,
        table(("verb", "what it does"), rows),
        "New here? `bench run --suite quickstart` needs no data, no GPU and a few minutes. "
        "`bench --install-completion` has your shell complete verbs, options and names of plug-ins.",
        (bench.cli.__doc__ or "").partition("\n\n")[2],
    ), MENU)  # fmt: skip
    return [overview, *(_page(top, [*names]) for top, names in groupby(VERBS, _top))]


def verb_path(verb: str) -> str:
    """The page of a verb."""
    return f"command-line/{_top(verb)}.md"


@cache
def arguments(verb: str) -> tuple[Argument, ...]:
    """The options and arguments of a verb."""
    app = bench.cli.command_line()
    for word in verb.split():
        app = app[word]
    return tuple(option for option in app.assemble_argument_collection() if option.show)


def anchor(option: Argument, verb: str = "") -> str:
    """The anchor of an option on its verb's page."""
    name = option.name.lstrip("-").lower()
    return f"{verb}-{name}" if verb else name


def _top(verb: str) -> str:
    return verb.partition(" ")[0]


def _fragment(verb: str) -> str:
    inner = verb.partition(" ")[2]
    return f"#{inner}" if inner else ""


def _page(top: str, names: list[str]) -> Page:
    body = [text for name in names for text in _verb(name)]
    heading = [] if names == [top] else [f"# bench {top}", escape(bench.cli.GROUPS[top])]
    return Page(verb_path(top), f"bench {top}", join(*heading, *body), MENU)


def _verb(name: str) -> Iterator[str]:
    inner, verb = name.partition(" ")[2], VERBS[name]
    yield f"## bench {name} {{#{inner}}}" if inner else f"# bench {name}"
    yield escape(verb.help)
    yield "```sh\n" + "\n".join(verb.examples) + "\n```"
    ordered = sorted(arguments(name), key=lambda option: f"{option.parameter.group[0].sort_key}")  # type: ignore[index]
    for group, options in groupby(ordered, lambda option: str(option.parameter.group[0].name)):  # type: ignore[index]
        yield f"### {group} {{#{inner}-{group.lower().replace(' ', '-')}}}" if inner else f"## {group}"
        yield from (_option(option, inner) for option in options)


def _option(option: Argument, verb: str) -> str:
    metavar, text = option.parameter.metavar or "", option.parameter.help or ""
    parts = [text[:1].upper() + text[1:] + ("" if text.endswith(".") or not text else ".")]
    if choices := option.get_choices():
        parts.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
    default = option.field_info.default
    if default not in (None, False, (), option.field_info.empty):
        parts.append(f"Default: `{default}`.")
    parts += ["Required."] * option.required + ["May be repeated."] * ("tuple" in str(option.hint))
    heading = f"{', '.join(option.names)} {metavar if option.name.startswith('--') else ''}".strip()
    return join(f"#### `{heading}` {{#{anchor(option, verb)}}}", escape(" ".join(filter(None, parts))))
