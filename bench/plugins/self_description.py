"""A third-party plug-in's own description, printed by another process.

The command is `python -m bench.plugins.self_description`.

Importing a stranger's module runs it. The judge does not: it asks this process, and builds a stand-in from the answer.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, cast

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.groups import SAID, Group
from bench.plugins.spec import PluginSpec, UsageError, defaults, parameters
from bench.room_side import MESSAGE_BYTES
from bench.types import Attack, Method, Plugin
from bench.wire.message import WireError, send


def description(group: Group, spec: str, preset: str) -> dict[str, JsonValue]:
    """A plug-in built here, and its description for the judge.

    Raises:
        UsageError: It cannot be built; the text is for the user.
    """
    configured = configure(cast(Any, group), spec, preset, here=True)
    plugin = configured.plugin
    cls = type(plugin)
    if missing := [name for name in SAID[group] if not hasattr(plugin, name)]:
        raise UsageError(
            f'{spec} must say its {" and its ".join(missing)}: class variables, as in name: ClassVar[str] = "..."'
        )
    variables = {name: getattr(plugin, name) for name in SAID[group]}
    return {
        "spec": str(configured),
        "class": cls.__name__,
        "said": {name: sorted(value) if isinstance(value, frozenset) else value for name, value in variables.items()},
        "confidential": [*sorted(registry.confidential(cls))],
        "parameters": [[name, _shown(getattr(plugin, name))] for name in parameters(plugin)],
        "defaults": {name: _shown(value) for name, value in defaults(cls).items() if value is not MISSING},
    }


def described(task: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The description of a plug-in, for `bench.room_side`."""
    group, name = cast(Group, task["group"]), str(task["name"])
    registry.inhabit({(group, name): str(task["target"])})
    try:
        return {"ok": description(group, str(task.get("spec", name)), str(task["preset"]))}
    except UsageError as error:
        return {"error": f"{name} cannot be used: {error}"}


def _shown(value: object) -> JsonValue:
    """A parameter's value; a plug-in as its group and full spec."""
    if isinstance(value, Method | Attack):
        group = "methods" if isinstance(value, Method) else "attacks"
        return {"plugin": [group, str(PluginSpec(_name(value), None, tuple(parameters(value).items())))]}
    return cast(JsonValue, value)


def _name(plugin: Plugin) -> str:
    """The name of a nested plug-in, or its file."""
    module = sys.modules[type(plugin).__module__]
    own = module.__name__.startswith("bench_plugin_")
    return f"{module.__file__}:{type(plugin).__name__}" if own else plugin.name


def main(arguments: Sequence[str]) -> None:
    """Describe one plug-in: group, spec, preset, and descriptor of the answer."""
    group, spec, preset, answer = arguments
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    send(int(answer), {"began": True}, MESSAGE_BYTES)
    try:
        reply: dict[str, JsonValue] = {"ok": description(cast(Group, group), spec, preset)}
    except UsageError as error:
        reply = {"error": str(error)[:4000].encode(errors="replace").decode()}
    except BaseException as error:  # whatever the author's class does becomes a sentence
        traceback.print_exc()
        reply = {"error": f"{spec} cannot be used: {type(error).__name__}: {str(error)[:2000]}"}
    try:
        send(int(answer), reply, MESSAGE_BYTES)
    except WireError as error:
        message = f"{spec} cannot be used: its parameters and class variables must be plain numbers and text: {error}"
        send(int(answer), {"error": message}, MESSAGE_BYTES)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
