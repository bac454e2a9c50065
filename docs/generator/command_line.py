"""The command line as pages: one for each verb, with an anchor for each option, read off the parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping

import bench.cli
from bench.cli.argument_parser import sentence
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative

MENU = ("Command line",)
INDEX = "command-line/index.md"


def command_line_pages(targets: Mapping[str, str]) -> list[Page]:
    """The overview and a page for each verb."""
    top = bench.cli.parser()
    verbs = subcommands(top)
    prose = Prose(INDEX, targets)
    rows = [
        (f"[`bench {name}`]({relative(verb_path(name), INDEX)})", prose.line(verb.description or ""))
        for name, verb in verbs.items()
    ]
    overview = Page(INDEX, MENU[0], join(
        "# Command line",
        prose.line(top.description or ""),
        table(("verb", "what it does"), rows),
        prose.line(top.epilog or ""),
        prose.block((bench.cli.__doc__ or "").partition("\n\n")[2]),
        *(_option(option, top, "", prose) for option in options(top)),
    ), MENU)  # fmt: skip
    return [overview, *(_page(name, verb, targets) for name, verb in verbs.items())]


def verb_path(verb: str) -> str:
    """The page of a verb."""
    return f"command-line/{verb}.md"


def command_targets() -> dict[str, str]:
    """Where the verbs lead, and the options of `bench run`."""
    verbs = subcommands(bench.cli.parser())
    run = {option.option_strings[0]: f"{verb_path('run')}#{anchor(option)}" for option in options(verbs["run"])}
    return {**run, **{f"bench {name}": verb_path(name) for name in verbs}}


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The verbs of a parser with their own parsers."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def options(parser: argparse._ActionsContainer) -> Iterator[argparse.Action]:
    """The options and arguments of a parser or group of options; help and verbs are none."""
    for action in getattr(parser, "_group_actions", parser._actions):
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            yield action


def anchor(option: argparse.Action, verb: str = "") -> str:
    """Where an option stands on its verb's page; `verb` is the second word of the command if it has one.

    >>> anchor(argparse.ArgumentParser().add_argument("--dry-run"))
    'dry-run'
    """
    name = option.option_strings[0].lstrip("-") if option.option_strings else option.dest
    return f"{verb}-{name}" if verb else name


def _page(name: str, verb: argparse.ArgumentParser, targets: Mapping[str, str]) -> Page:
    here = verb_path(name)
    prose = Prose(here, targets)
    inner = subcommands(verb)
    helps = _helps(verb)
    return Page(here, f"bench {name}", join(
        f"# bench {name}",
        prose.line(verb.description or ""),
        _usage(verb) if not inner else "",
        *_groups(verb, "", prose),
        *(
            join(f"## bench {name} {second} {{#{second}}}", prose.line(sentence(helps[second])),
                 _usage(parser), *_groups(parser, second, prose))
            for second, parser in inner.items()
        ),
    ), MENU)  # fmt: skip


def _helps(parser: argparse.ArgumentParser) -> dict[str, str]:
    found: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {choice.dest: choice.help or "" for choice in action._choices_actions}
    return found


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [word for option in options(parser) if (word := _in_usage(option))]
    optional = any(option.option_strings and not option.required for option in options(parser))
    return "```sh\n" + " ".join((parser.prog, *words, *(["[options]"] if optional else []))) + "\n```"


def _in_usage(option: argparse.Action) -> str:
    if option.option_strings:
        return f"{option.option_strings[0]} {option.metavar}" if option.required else ""
    shown = str(option.metavar or option.dest).upper()
    return {"?": f"[{shown}]", "+": f"{shown} ...", "*": f"[{shown} ...]"}.get(str(option.nargs), shown)


def _groups(parser: argparse.ArgumentParser, verb: str, prose: Prose) -> Iterator[str]:
    for group in parser._action_groups:
        found = list(options(group))
        # argparse's own two groups hold what was put into none, and their titles say nothing more.
        if found and group.title not in ("positional arguments", "options"):
            title, mark, rest = re.split(r"( \(|; |$)", group.title or "", maxsplit=1)
            yield ("### " if verb else "## ") + prose.line(title[:1].upper() + title[1:])
            if rest:
                said = rest.removesuffix(")") if "(" in mark else rest
                yield prose.line(f"{said[:1].upper()}{said[1:]}.")
        yield from (_option(option, parser, verb, prose) for option in found)


def _option(option: argparse.Action, parser: argparse.ArgumentParser, verb: str, prose: Prose) -> str:
    names = ", ".join(option.option_strings) or str(option.metavar or option.dest).upper()
    wanted = option.metavar if option.option_strings and option.nargs != 0 and not option.choices else ""
    said = [_help(option, parser)]
    if option.choices:
        said.append(f"One of {', '.join(f'`{choice}`' for choice in option.choices)}.")
    if option.default not in (None, False, argparse.SUPPRESS) and "default" not in (option.help or ""):
        said.append(f"Default: `{option.default}`.")
    if option.required and option.option_strings:
        said.append("Required.")
    if isinstance(option, argparse._AppendAction):
        said.append("May be repeated.")
    shown = f"{names} {wanted or ''}".strip()
    return join(f"#### `{shown}` {{#{anchor(option, verb)}}}", prose.line(" ".join(filter(None, said))))


def _help(option: argparse.Action, parser: argparse.ArgumentParser) -> str:
    if not option.help:
        return ""
    text = parser._get_formatter()._expand_help(option)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
