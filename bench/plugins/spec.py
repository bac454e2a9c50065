"""Specs of plug-ins, `name:argument[a=1,b=x]`, and options as dataclass fields."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import itertools
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, replace
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Interval

from bench.types import Parameter, Plugin
from bench.validation import nearest

_SPEC = re.compile(r"(?P<name>[^\[\]:]+)(:(?P<argument>\"[^\"]*\"|[^\[\]]*))?(\[(?P<parameters>.*)\])?")
_QUOTED = re.compile(r'(?:^|(?<==))"[^"]*"')
_FILE = re.compile(r"(?P<name>[^\[\]]+\.py:[A-Za-z_]\w*)(\[(?P<parameters>.*)\])?")


class UsageError(Exception):
    """A request that cannot be understood; the text says what was expected."""


@dataclass(frozen=True)
class PluginSpec:
    """A plug-in's name with the user's parameters, without defaults.

    Args:
        name: Registered name, or `path/to/file.py:Class`.
        argument: Text behind the colon (`pneumoniamnist@28` in `medmnist:pneumoniamnist@28`): the first field.
        parameters: Values by field name, as (name, text) or typed values from YAML.
    """

    name: str
    argument: str | None = None
    parameters: tuple[tuple[str, Parameter], ...] = ()

    @property
    def shown(self) -> str:
        """The spec as records show it; files without their folders.

        A folder may name a person.

        >>> parse("/home/me/a.py:Boost[base=../b.py:Base[steps=3],rounds=2]").shown
        'a.py:Boost[base=b.py:Base[steps=3],rounds=2]'
        """
        nested = tuple(
            (key, parse(value).shown if isinstance(value, str) and ".py:" in value else value)
            for key, value in self.parameters
        )
        folder, colon, cls = self.name.rpartition(":")
        name = PurePath(folder).name + colon + cls if ".py:" in self.name else self.name
        return str(replace(self, name=name, parameters=nested))

    def __str__(self) -> str:
        argument = "" if self.argument is None else f":{self.argument}"
        if self.argument is not None and ({*"[]"} & {*self.argument} or self.argument != self.argument.strip()):
            argument = f':"{self.argument}"'
        inside = ",".join(f"{key}={_quoted(text(value))}" for key, value in self.parameters)
        return f"{self.name}{argument}" + (f"[{inside}]" if inside else "")


def parse(text: str) -> PluginSpec:
    """Read `name`, `name:argument`, `name[a=1,b=x]` or `./file.py:Class[a=1]`.

    >>> parse("dp-simple[scale=20]")
    PluginSpec(name='dp-simple', argument=None, parameters=(('scale', '20'),))
    >>> str(parse("medmnist:pneumoniamnist@28"))
    'medmnist:pneumoniamnist@28'
    >>> parse("surrogate[base=contrastive[steps=9,width=8],rounds=3]").parameters
    (('base', 'contrastive[steps=9,width=8]'), ('rounds', '3'))
    >>> parse("a[base=b[rounds=3,base=c[steps=9]]]").parameters
    (('base', 'b[rounds=3,base=c[steps=9]]'),)

    Double quotes hold what would end a value, such as a comma in a path.

    >>> parse('a[path="of May, [1",rounds=3]').parameters
    (('path', 'of May, [1'), ('rounds', '3'))
    """
    match = _FILE.fullmatch(text.strip()) or _SPEC.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"cannot read {text!r}: expected NAME, NAME:ARGUMENT, NAME[a=1,b=x] or FILE.py:CLASS[a=1]; no path may "
            "hold [ or ]"
        )
    groups = match.groupdict()
    parameters = []
    for item in filter(None, (part.strip() for part in _items(groups["parameters"] or ""))):
        key, equals, value = item.partition("=")
        value = value.strip()
        if not equals or _depth(value):
            raise UsageError(
                f"cannot read parameter {item!r} of {text!r}: expected name=value, with double quotes around a path "
                'that holds [, ] or a comma: name="..."'
            )
        whole = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in value[1:-1]
        parameters.append((key.strip(), value[1:-1] if whole else value))
    argument = groups.get("argument")
    argument = None if argument is None else argument.removeprefix('"').removesuffix('"')
    return PluginSpec(groups["name"].strip(), argument, tuple(parameters))


def alternatives(written: str) -> list[str]:
    """Every spec that one with alternatives, `a=1|3`, stands for.

    >>> alternatives("dp-simple[scale=1|3,clip=yes|no]")[:3]
    ['dp-simple[scale=1,clip=yes]', 'dp-simple[scale=1,clip=no]', 'dp-simple[scale=3,clip=yes]']
    >>> alternatives("surrogate[base=contrastive[steps=9|19],rounds=3]")
    ['surrogate[base=contrastive[steps=9],rounds=3]', 'surrogate[base=contrastive[steps=19],rounds=3]']
    >>> alternatives('imported[path="a|b"|"c|d,e"]')
    ['imported[path="a|b"]', 'imported[path="c|d,e"]']
    """
    match = _FILE.fullmatch(written) or _SPEC.fullmatch(written)
    if match is None or "|" not in (match["parameters"] or ""):
        return [written]
    ways: list[list[str]] = []
    for item in _items(match["parameters"]):
        key, equals, first = _items(item, "|")[0].partition("=")
        values = [first, *_items(item, "|")[1:]]
        ways.append([f"{key}{equals}{each}" for value in values for each in alternatives(value)])
    start, end = match.span("parameters")
    return [written[:start] + ",".join(way) + written[end:] for way in itertools.product(*ways)]


def _quoted(value: str) -> str:
    """A value as `parse` reads it back, quoted if needed.

    Raises UsageError if it cannot be written.
    """
    plain = all(len(_items(value, mark)) == 1 for mark in ",|")
    if plain and not _depth(value) and value == value.strip() and value[:1] != '"':
        return value
    if '"' in value:
        raise UsageError(
            f"a value with a comma, a bar or an unpaired bracket cannot hold double quotes too: {value!r:.80}"
        )
    return f'"{value}"'


def _depth(text: str) -> int:
    """Brackets left open outside quotes; below 0 if never opened."""
    plain = _QUOTED.sub("", text)
    depth = lowest = 0
    for letter in plain:
        depth += (letter == "[") - (letter == "]")
        lowest = min(lowest, depth)
    return depth or lowest


def _items(text: str, mark: str = ",") -> list[str]:
    """`text` cut at the marks outside quotes and brackets.

    Quotes begin behind `=`, or behind the bar of an alternative.
    """
    items, depth, quoted, before = [""], 0, False, ""
    for letter in text:
        if letter == '"':
            quoted = not quoted and before in ("=", "|")
        before = letter
        depth += 0 if quoted else (letter == "[") - (letter == "]")
        if letter == mark and not depth and not quoted:
            items.append("")
        else:
            items[-1] += letter
    return items


def plugin_hint(name: str, known: Iterable[str], command: str | None = None) -> str:
    """A suggestion for an unknown plug-in; `command` lists all of them."""
    if name.endswith(".py"):
        return "a file may hold several classes: name one, as FILE.py:CLASS"
    return did_you_mean(name, known, command)


def did_you_mean(name: str, known: Iterable[str], command: str | None = None) -> str:
    """The end of an error about an unknown name, with the nearest.

    >>> did_you_mean("sifer", ["syfer", "noise"])
    "did you mean 'syfer'? Known: noise, syfer"
    """
    known = sorted(set(known))
    rest = f"`{command}` shows all" if command else "Known: " + (", ".join(known) or "none")
    return nearest(name, known) + rest


def construct(
    cls: type,
    spec: PluginSpec,
    defaults: Mapping[str, Parameter] | None = None,
    *,
    nested: Callable[[type, str], object] | None = None,
) -> object:
    """The frozen dataclass `cls` with the spec's parameters over `defaults`.

    `nested` builds a plug-in of the given kind from its spec, for fields that hold one.

    Raises:
        UsageError: Unknown parameter, or a value its field cannot take.
    """
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    given: dict[str, Parameter] = dict(spec.parameters)
    if spec.argument is not None:
        if not names:
            raise UsageError(f"{spec.name} takes no argument, got {spec.argument!r}")
        given[names[0]] = spec.argument
    if unknown := [key for key in given if key not in names]:
        raise UsageError(f"{spec.name} has no parameter {unknown[0]!r}; {did_you_mean(unknown[0], names)}")
    values: dict[str, object] = {}
    for key, value in {**(defaults or {}), **given}.items():
        if nested is not None and holds_plugin(hints[key]):
            values[key] = nested(hints[key], str(value))
        else:
            values[key] = convert(value, hints[key], f"{spec.name}[{key}]") if key in given else value
    required = [field.name for field in dataclasses.fields(cls) if field.init and is_required(field)]
    if missing := [name for name in required if name not in values]:
        first = f"; write {spec.name}:{missing[0].upper()}" if missing[0] == names[0] else ""
        raise UsageError(f"{spec.name} needs {', '.join(missing)}{first}")
    try:
        return cls(**values)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{spec}: {error}") from error


def is_required(field: dataclasses.Field[object]) -> bool:
    """If a field has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def holds_plugin(hint: object) -> bool:
    """If a field of that type holds another plug-in."""
    return isinstance(hint, type) and issubclass(hint, Plugin)


def parameters(plugin: object) -> dict[str, Parameter]:
    """Every parameter of a plug-in by name; inner plug-ins as full specs."""
    if not dataclasses.is_dataclass(plugin) or isinstance(plugin, type):
        raise TypeError(f"a plug-in must be an instance of a dataclass, got {plugin!r}")
    values = {field.name: getattr(plugin, field.name) for field in dataclasses.fields(plugin) if field.init}
    return {name: _with(value, parameters) if isinstance(value, Plugin) else value for name, value in values.items()}


def told_parameters(plugin: object) -> dict[str, Parameter]:
    """The parameters as a record shows them, without confidential ones."""
    hidden = getattr(plugin, "confidential", ())
    return {
        name: _with(inner, told_parameters) if isinstance(inner := getattr(plugin, name), Plugin) else value
        for name, value in parameters(plugin).items()
        if name not in hidden
    }


def _with(plugin: Plugin, read: Callable[[object], Mapping[str, Parameter]]) -> str:
    return str(PluginSpec(plugin.name, None, tuple(read(plugin).items())))


def convert(value: Parameter, hint: object, where: str) -> Parameter:
    """`value` as the annotated type; text is parsed, other kinds must match.

    Raises:
        UsageError: It cannot be one; the text says `where` it stands.
    """
    options = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        if typing.get_origin(option) is Literal:
            for choice in typing.get_args(option):
                if str(value) == str(choice):
                    return typing.cast(Parameter, choice)
            continue
        converted = _as(value, option)
        if converted is not _FAILED:
            return typing.cast(Parameter, converted)
    words = [
        str(choice) for option in options if typing.get_origin(option) is Literal for choice in typing.get_args(option)
    ]
    hint = nearest(str(value), words).strip()
    raise UsageError(f"{where} must be {_describe(options)}, got {value!r}{hint and f'; {hint}'}")


_FAILED = object()
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "yes": True, "no": False, "none": None, "null": None}


def _as(value: Parameter, kind: object) -> object:
    word = _WORDS.get(value.lower(), _FAILED) if isinstance(value, str) else value
    if kind in (None, type(None)):
        return None if word is None else _FAILED
    if kind is bool:
        return word if isinstance(word, bool) else _FAILED
    if kind is int and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            return int(value)
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            return float(value) if math.isfinite(float(value)) else _FAILED
    if kind in (int, float):
        return _FAILED
    return value if kind is str and isinstance(value, str) else _FAILED


_PLAIN: Mapping[str, Any] = {
    "int": int, "float": float, "str": str, "bool": bool, "None": type(None), "NoneType": type(None),
}  # fmt: skip


def annotated(written: str) -> Any:
    """Type of an annotation of plain types, or None; nothing is run.

    >>> annotated("typing.Optional[int]") == annotated("int | None")
    True
    >>> annotated("Literal['a', 2]")
    typing.Literal['a', 2]
    """
    try:
        return _spelled(ast.parse(written, mode="eval").body)
    except (SyntaxError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        return None


def _spelled(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None):
            return type(None)
        case ast.Constant(value=str(inner)):
            return _spelled(ast.parse(inner, mode="eval").body)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _PLAIN[name]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return Union[_spelled(left), _spelled(right)]  # noqa: UP007  (of values)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inside):
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            if name == "Literal":
                return Literal[tuple(ast.literal_eval(part) for part in parts)]
            if name in ("Optional", "Union"):
                kinds = (*map(_spelled, parts), *([type(None)] if name == "Optional" else []))
                return Union[kinds]  # noqa: UP007  (of values)
            if name == "Annotated":
                return _spelled(parts[0])
    raise ValueError("no plain type")


def _describe(options: Iterable[object]) -> str:
    words = []
    for option in options:
        if typing.get_origin(option) is Literal:
            words += [repr(choice) for choice in typing.get_args(option)]
        else:
            words.append("none" if option in (None, type(None)) else getattr(option, "__name__", str(option)))
    return " or ".join(words)


def text(value: Parameter) -> str:
    """A parameter's value as the command line writes it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


Value = str | int | bool | None
Count = Annotated[int, Ge(1)]
Amount = Annotated[float, Interval(gt=0, lt=math.inf)]
KEY = "option"


@dataclass(frozen=True)
class Option:
    """An option's properties beside its name and default.

    Args:
        help: For the command line and the documentation.
        kind: What pydantic holds a written value to; a `bool` becomes two flags, --name and --no-name.
        flag: On the command line; empty stands for the field's own name.
        many: Its name in a configuration file where it may be given several times; empty where it may not.
        metavar: What stands for the value in the help.
        group: The group of plug-ins that a value names; None for plain values.
        usual: What a missing value stands for, where that is no field's default.
        confidential: What is written never enters a record, a page or a log.
        draws: It sizes or draws the rows: rows that differ in nothing else come from one collection.
        words: Values that name no plug-in, where others do.
        later: It was added after boards were published: at its default, a collection's address goes without it.
        covered: What it does to released rows is in their fingerprints or counts, or it does nothing to them. What an
            option is set to that is not covered is part of every content key.
    """

    help: str
    kind: Any
    flag: str = ""
    many: str = ""
    metavar: str | None = None
    group: str | None = None
    usual: Value = None
    confidential: bool = False
    draws: bool = False
    covered: bool = False
    words: tuple[str, ...] = ()
    later: bool = False


def option(kind: Any, help: str, *, default: Any = MISSING, **rest: Any) -> Any:
    """An option as a dataclass field; `rest` are further fields of `Option`."""
    return dataclasses.field(default=default, metadata={KEY: Option(help, kind, **rest)})


def options(cls: type) -> Mapping[str, Option]:
    """The options of a dataclass by field name, in order."""
    return {field.name: field.metadata[KEY] for field in dataclasses.fields(cls) if KEY in field.metadata}


def defaults(cls: type) -> Mapping[str, Any]:
    """The default of every field of a dataclass; MISSING if none."""
    return {field.name: field.default for field in dataclasses.fields(cls)}


def flag_of(name: str, known: Option) -> str:
    """The flag of an option: --skip-corrupt for `skip_corrupt`."""
    return known.flag or "--" + name.replace("_", "-")


def expected(error: Mapping[str, Any]) -> str:
    """Pydantic's error in this project's words: expected ..., got ..."""
    if error["type"] == "list_type":
        return f"expected a list, such as [{error['input']}], got {error['input']!r}"
    message, _, _ = str(error["msg"]).partition(", unable to parse")  # which says it a second time
    return f"{message}, got {error['input']!r}".replace("Input should be", "expected")


def words(cls: type, values: Mapping[str, Value]) -> list[str]:
    """The command-line words that give a dataclass's options these values.

    None and off are left out.

    What is confidential stands in capitals: WEIGHTS.

    >>> @dataclass(frozen=True)
    ... class Example:
    ...     size: int | None = option(int, "a side", default=None)
    ...     skip_corrupt: bool = option(bool, "leave out", default=False)
    ...     balance: bool | None = option(bool, "withhold", default=None)
    >>> words(Example, {"size": 64, "skip_corrupt": True, "balance": False})
    ['--size', '64', '--skip-corrupt', '--no-balance']
    """
    line: list[str] = []
    usual = defaults(cls)
    for name, known in options(cls).items():
        value, flag = values.get(name), flag_of(name, known)
        if value is None or (known.kind is bool and value == usual[name]):
            continue
        if known.kind is bool:
            line.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            line += [flag, name.upper() if known.confidential else str(value)]
    return line
