"""Parameters of the verbs: shared ones, and those derived from dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from annotated_types import Interval
from cyclopts import ArgumentCollection, Group, Parameter, Token
from cyclopts.completion import CompletionContext

from bench.plugins.spec import Option, UsageError, expected, flag_of, options
from bench.runs.engine import Executing
from bench.runs.run_spec import RunSpec
from bench.workbench.choice import Choice

if TYPE_CHECKING:  # parameters are laid out for every command, and these are heavy
    from bench.results.signing_key import SigningKey
    from bench.runs.request import Request
    from bench.workbench.place import Place

WHAT = Group("What to run", sort_key=1)
ROWS = Group("Which rows", sort_key=2)
HOW = Group("How to run it", sort_key=3)
WHERE = Group("Files and folders", sort_key=4)
GROUPS: Mapping[Group, Collection[str]] = {
    WHAT: ("methods", "attacks", "metrics", "evaluators", "controls", "dataset", "public"),
    HOW: ("device", "isolation", "jobs", "timeout", "memory", "overwrite", "keep_releases", "skip_absent"),
}
"""The heading of options on a help page; of others it is `ROWS`."""
SCORED = frozenset({"keys", "eve", "this_release"})
"""Options of `Choice` that only attacks read."""


def switch(help: str, **rest: Any) -> Parameter:
    """A parameter without a `--no-` or `--empty-` twin, nor a default."""
    return Parameter(**{"help": help, "negative": "", "show_default": False, **rest})


def read(kind: Any, help: str, **rest: Any) -> Parameter:
    """A parameter whose words pydantic reads as `kind`, in a tuple each."""

    def convert(hint: Any, tokens: Sequence[Token]) -> object:
        values = tuple(_read(kind, token.value) for token in tokens)
        many = tuple in (get_origin(hint), *map(get_origin, get_args(hint)))
        return values if many else values[0]

    return switch(help, converter=convert, **rest)


def _read(kind: Any, word: str) -> object:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(word, strict=False)
    except ValidationError as error:
        raise ValueError(expected(error.errors()[0])) from error


def goes_with(whole: str, *, show: bool = False) -> Group:
    """A group of parameters that need `whole`; `show` gives it a heading."""

    def check(arguments: ArgumentCollection) -> None:
        given = [argument for argument in arguments if argument.tokens]
        if given and not any(whole in argument.names for argument in given):
            raise ValueError(f"{given[0].name} goes with {whole}, which is not given")

    return Group(f"With {whole}", show=show, sort_key=len(GROUPS) + 3, validator=check)


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The written options of dataclasses, a field each (`flags`)."""

    def values(self) -> dict[str, object]:
        """The options that were written, by their names in a configuration file."""
        written = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in written.items()
            if value is not None
        }


SPREAD = Parameter(name="*")
"""Of a parameter that is `Flags`: each field is a flag."""


def flags(name: str, run: Collection[str], choice: Collection[str]) -> type[Flags]:
    """The class of the named options of `RunSpec` and `Choice`, in order."""
    known = {key: option for cls, names in ((RunSpec, run), (Choice, choice)) for key, option in options(cls).items()
             if key in names}  # fmt: skip
    fields: list[tuple[str, Any, Any]] = [
        (option.many or key, _annotation(key, option), None) for key, option in known.items()
    ]
    cls_of_flags = make_dataclass(name, fields, bases=(Flags,), frozen=True, kw_only=True)
    cls_of_flags.__module__ = __name__  # cyclopts takes classes of the standard library for single values
    return cls_of_flags


def _annotation(name: str, known: Option) -> Any:
    group = next((heading for heading, names in GROUPS.items() if name in names), ROWS)
    rest: dict[str, Any] = {"name": flag_of(name, known), "metavar": known.metavar, "group": group}
    if known.group is not None:
        rest["completer"] = completer(known.group, known.words)
    if known.kind is bool:
        return Annotated[bool | None, Parameter(help=known.help, **rest)]
    if get_origin(known.kind) is Literal:
        return Annotated[known.kind | None, switch(known.help, **rest | {"metavar": None})]
    parts = get_args(known.kind)
    plain = known.kind if isinstance(known.kind, type) else str if not parts or str in parts else parts[0]
    plain = plain if isinstance(plain, type) else str
    kind = tuple[plain, ...] if known.many else plain  # type: ignore[valid-type]
    return Annotated[kind | None, read(known.kind, known.help, **rest)]


def completer(group: str, words: Sequence[str] = ()) -> Callable[[CompletionContext], list[str]]:
    """Completes the names of a group's plug-ins, and some words."""

    def complete(context: CompletionContext) -> list[str]:
        from bench.plugins.environments import Environment, known

        added = [
            each for found in known().values() if isinstance(found, Environment) for each in found.manifest.plugins
        ]
        own = [point.name for point in entry_points(group=f"bench.{group}")]
        return sorted({*words, *own, *(each.name for each in added if each.group == group)})

    return complete


CHOICE = frozenset(options(Choice))
RELEASED = CHOICE - SCORED
ResultsFolder = Annotated[
    Path, switch("folder of the records", name="--results", metavar="DIR", group=WHERE, show_default=True)
]
DataRoots = Annotated[
    tuple[Path, ...],
    switch(
        "folder above the data sets (or BENCH_DATA, or data_roots in config.yaml)",
        name="--data-root",
        metavar="DIR",
        group=WHERE,
    ),
]
Trusted = Annotated[
    tuple[Path, ...],
    switch("read only records signed by this key (repeatable; default: unsigned ones too)", name="--trusted",
           metavar="FILE.pub"),
]  # fmt: skip
Suite = Annotated[str | None, switch("a suite that ships with the project", group=WHAT, metavar="NAME")]
Format = Annotated[
    Literal["text", "json"], switch("json prints one object for scripts", name="--format", show_default=True)
]
Config = Annotated[
    Path | None,
    switch(
        "a YAML file with these options; the command line overrides it", name="--config", metavar="FILE", group=WHAT
    ),
]
Sign = Annotated[
    Path | None, switch("sign new records with this key (see `bench keys new`)", metavar="FILE", group=WHERE)
]
Site = Annotated[Path | None, switch("folder of the pages (default: RESULTS/site)", metavar="DIR", group=WHERE)]
Preset = Annotated[str, switch("size of a run", metavar="NAME", show_default=True)]
Share = Annotated[float, Interval(gt=0, lt=1)]
RESULTS = Path("results")


@dataclass(frozen=True, kw_only=True)
class Files:
    """Options of commands on methods and data: request and folders."""

    suite: Suite = None
    config: Config = None
    results: ResultsFolder = RESULTS
    data_root: DataRoots = ()

    def place(self) -> Place:
        """The folders of the command. Raises UsageError."""
        from bench.api.running import open_place

        return open_place(self.results, self.data_root)

    def request(self, chosen: Flags | None, verb: str, *, local: bool = True, **fixed: object) -> Request:
        """The written options, with those that the command fixes."""
        from bench.runs.request import Request

        return Request((chosen.values() if chosen else {}) | fixed, self.suite, self.config, verb, local)


USUAL_FILES = Files()


@dataclass(frozen=True, kw_only=True)
class RunFiles(Files):
    """Options of commands that run jobs, beside what they run."""

    dry_run: Annotated[bool, switch("print the jobs with their state, and run nothing", group=HOW)] = False
    executor: Annotated[
        Executing,
        switch("run jobs on this machine (local), a SLURM cluster or a Ray cluster", group=HOW, show_default=True),
    ] = "local"
    engine: Annotated[
        tuple[str, ...],
        switch(
            "an option of SLURM or Ray: partition=gpu, time=24:00:00, alone.constraint=epyc (repeatable; or engine: "
            "in the configuration)",
            name="--engine",
            metavar="NAME=VALUE",
            group=HOW,
        ),
    ] = ()
    secret: Annotated[
        Path | None,
        switch("the run secret: 32 bytes or 64 hex digits (default: RESULTS's own)", metavar="FILE", group=WHERE),
    ] = None
    draw: Annotated[
        Path | None,
        switch(
            "the board's draw (see `bench leaderboard commit`), which gives run secret and seed",
            metavar="FILE",
            group=WHERE,
        ),
    ] = None
    sign: Sign = None
    site: Site = None
    no_site: Annotated[bool, switch("write records only", group=WHERE)] = False

    def request(self, chosen: Flags | None, verb: str, *, local: bool = True, **fixed: object) -> Request:
        """The written options, with the seed of a draw, if any."""
        if self.draw is not None:
            from bench.api.running import seed_of_draw

            if self.secret is not None:
                raise UsageError("--draw gives the run secret: leave --secret out")
            if chosen is not None and chosen.values().get("seeds"):
                raise UsageError("--draw gives the seed: leave --seed out")
            fixed["seeds"] = [seed_of_draw(self.draw)]
        return super().request(chosen, verb, local=local, **fixed)

    @property
    def local(self) -> bool:
        """True if jobs run on this machine."""
        return self.executor == "local"

    def signer(self, request: Request) -> SigningKey | None:
        """The key to sign with.

        Raises UsageError for what a run would refuse, so that a dry run refuses it, too.
        """
        from bench.results.run_secret import given
        from bench.results.signing_key import SigningKey
        from bench.runs.request import engine_options

        if self.local and self.engine:
            raise UsageError("--engine goes with --executor slurm or ray, which is not given")
        if not self.local:
            engine_options(self.engine, request.config)
        if self.secret is not None:
            given(self.secret)
        return SigningKey.read(self.sign) if self.sign else None


USUAL_RUN_FILES = RunFiles()
