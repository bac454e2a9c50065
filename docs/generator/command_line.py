"""The command line as pages, with an anchor for each option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby

from cyclopts import Argument

import bench.cli
from bench.cli import VERBS
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative

MENU = ("Command line",)
INDEX = "command-line/index.md"


def command_line_pages(targets: Mapping[str, str]) -> list[Page]:
    """The overview and a page for each verb."""
    prose = Prose(INDEX, targets)
    rows = [
        (f"[`bench {name}`]({relative(verb_path(name), INDEX)}{_fragment(name)})", prose.line(verb.help))
        for name, verb in VERBS.items()
    ]
    overview = Page(INDEX, MENU[0], join(
        "# Command line",
        bench.cli.HEADLINE,
        table(("verb", "what it does"), rows),
        "New here? `bench run --suite quickstart` needs no data, no GPU and a few minutes. "
        "`bench --install-completion` has your shell complete verbs, options and names of plug-ins.",
        prose.block((bench.cli.__doc__ or "").partition("\n\n")[2]),
    ), MENU)  # fmt: skip
    return [overview, *(_page(top, [*names], targets) for top, names in groupby(VERBS, _top))]


def verb_path(verb: str) -> str:
    """The page of a verb."""
    return f"command-line/{_top(verb)}.md"


def command_targets() -> dict[str, str]:
    """Links to the verbs, and to the options of `bench run`."""
    run = {option.name: f"{verb_path('run')}#{anchor(option)}" for option in arguments("run")}
    return {**run, **{f"bench {name}": verb_path(name) + _fragment(name) for name in VERBS}}


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


def _page(top: str, names: list[str], targets: Mapping[str, str]) -> Page:
    prose = Prose(verb_path(top), targets)
    body = [text for name in names for text in _verb(name, prose)]
    heading = [] if names == [top] else [f"# bench {top}", prose.line(bench.cli.GROUPS[top])]
    return Page(verb_path(top), f"bench {top}", join(*heading, *body), MENU)


def _verb(name: str, prose: Prose) -> Iterator[str]:
    inner, verb = name.partition(" ")[2], VERBS[name]
    yield f"## bench {name} {{#{inner}}}" if inner else f"# bench {name}"
    yield prose.line(verb.help)
    yield "```sh\n" + "\n".join(verb.examples) + "\n```"
    for group, options in groupby(sorted(arguments(name), key=_order), _group):
        yield f"### {group} {{#{inner}-{group.lower().replace(' ', '-')}}}" if inner else f"## {group}"
        yield from (_option(option, inner, prose) for option in options)


def _group(option: Argument) -> str:
    return str(option.parameter.group[0].name)  # type: ignore[index]


def _order(option: Argument) -> str:
    return f"{option.parameter.group[0].sort_key}"  # type: ignore[index]


def _option(option: Argument, verb: str, prose: Prose) -> str:
    metavar = option.parameter.metavar or ""
    parts = [_sentence(option.parameter.help or "")]
    if choices := option.get_choices():
        parts.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
    default = option.field_info.default
    if default not in (None, False, (), option.field_info.empty):
        parts.append(f"Default: `{default}`.")
    if option.required:
        parts.append("Required.")
    if "tuple" in str(option.hint):
        parts.append("May be repeated.")
    shown = f"{', '.join(option.names)} {metavar if option.name.startswith('--') else ''}".strip()
    return join(f"#### `{shown}` {{#{anchor(option, verb)}}}", prose.line(" ".join(filter(None, parts))))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") or not text else ".")
