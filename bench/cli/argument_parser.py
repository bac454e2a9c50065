"""The parser of the command line and of its verbs: it names what is not taken, and refuses what would do nothing."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence


def sentence(text: str) -> str:
    """What a verb is said to do, as a sentence; names keep their capitals.

    >>> sentence("try it on a GPU")
    'Try it on a GPU.'
    """
    return f"{text[0].upper()}{text[1:]}."


class ArgumentParser(argparse.ArgumentParser):
    """A parser whose verbs name options that they do not have, with the nearest that they have."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does it; stops where anything is left over, which the outermost would report without the verb.

        It stops, too, where an option is given without what it belongs to: it would be passed over in silence.
        """
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            known = [option for action in self._actions for option in action.option_strings]
            near = difflib.get_close_matches(rest[0].partition("=")[0], known, n=1)
            told = f"did you mean {near[0]}? " if near else ""
            self.exit(2, f"{self.prog}: unknown: {' '.join(rest)}; {told}`{self.prog} --help` lists what it takes\n")
        for part, whole in self._belonging:
            if _is_given(part, found) and not _is_given(whole, found):
                self.error(f"{_shown(part)} goes with {_shown(whole)}, which is not given")
        return found, rest

    def belong(self, parts: Sequence[argparse.Action], whole: argparse.Action) -> None:
        """Say of options that they do something only where `whole` is given, too."""
        self._belonging = [*self._belonging, *((part, whole) for part in parts)]

    _belonging: Sequence[tuple[argparse.Action, argparse.Action]] = ()


def _is_given(action: argparse.Action, found: argparse.Namespace) -> bool:
    return bool(getattr(found, action.dest) != action.default)


def _shown(action: argparse.Action) -> str:
    return action.option_strings[0] if action.option_strings else str(action.metavar)
