"""The command line: arguments in, an exit code out.

A verb's module is imported only if the verb is used.

Exit codes: 0 done; 1 something failed (a job, a check, a file); 2 wrong usage, or data that are missing; 3 a release
that needs its owner's reason, or a risk that is not shown to be small enough. A signal gives 128 and its number: 130
(Ctrl-C), 143 (TERM), 129 (HUP).
"""

from __future__ import annotations

__figures__ = False

import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnknownCommandError, UnusedCliTokensError, ValidationError

from bench import shadowing
from bench.cli.stop import code, heeded
from bench.cli.terminal import SPELLED

if TYPE_CHECKING:
    from rich.console import Console

DONE, FAILED, USAGE = 0, 1, 2
HEADLINE = "Score medical-image obfuscation methods: utility, guesswork, re-identification, throughput."
COMMANDS = "bench.cli.commands"


@dataclass(frozen=True)
class Verb:
    """A command's help, two examples, and MODULE:NAME below `COMMANDS`."""

    help: str
    examples: tuple[str, str]
    function: str


VERBS: dict[str, Verb] = {
    "run": Verb(
        "Score methods on data sets: write records, a table and pages.",
        ("bench run --suite quickstart", "bench run --method 'syfer[blocks=5]' --dataset digits --attack contrastive"),
        "run:run",
    ),
    "status": Verb(
        "List every job of a results folder: done, missing, failed or out of date, and why.",
        ("bench status --results results", "bench status --cost --rows 200000 --price 1.2"),
        "status:status",
    ),
    "list": Verb(
        "List plug-ins: methods, attacks, data sets, metrics, feature extractors, evaluators.",
        ("bench list", "bench list attacks"),
        "plugins:list_plugins",
    ),
    "info": Verb(
        "Show the parameters, source, claim and requirements of a plug-in; without a name, this machine.",
        ("bench info", "bench info 'syfer[blocks=5]' --preset paper"),
        "plugins:info",
    ),
    "new": Verb(
        "Write a working example of a plug-in with a test, or a package around a method.",
        ("bench new method my-blur", "bench new package my-blur --into ~/src"),
        "plugins:new",
    ),
    "check": Verb(
        "Check that a plug-in keeps its contract; stop at the first cause of a failure.",
        ("bench check dp-simple", "bench check ./my_blur.py:MyBlur --device cpu"),
        "plugins:check",
    ),
    "debug": Verb(
        "Try a method or an attack in this process, where debugger, prints and profiler work.",
        (
            "bench debug ./my_blur.py:MyBlur --pdb",
            "bench debug contrastive --method blur --dataset synth-cxr --profile contrastive.pstats",
        ),
        "debug:debug",
    ),
    "show": Verb(
        "Draw raw rows beside their released forms, one column for each method, as a PNG.",
        (
            "bench show --method dp-simple --method syfer --dataset digits --out rows.png",
            "bench show --method k-same --dataset diabetes --out table.png",
        ),
        "release:show",
    ),
    "compare": Verb(
        "Compare two methods on the same people and keys, or all methods with intervals of their ranks.",
        ("bench compare dp-simple syfer", "bench compare --metric guesswork"),
        "compare:compare",
    ),
    "table": Verb(
        "Print the board's figures with their intervals as a table for a paper.",
        (
            "bench table --metrics utility-auc reid-auc --format latex --out table.tex",
            "bench table --results leaderboard/published --dataset nih --format csv",
        ),
        "figures:table",
    ),
    "plot": Verb(
        "Draw records for a paper: trade-off, ladder, curve, person-risk or matrix.",
        (
            "bench plot trade-off --out trade-off.pdf",
            "bench plot matrix --metric guesswork --width page --out matrix.svg",
        ),
        "figures:plot",
    ),
    "reach": Verb(
        "Show which encoders of a ladder of breakable ones each attack breaks.",
        ("bench reach", "bench reach --preset standard --write reach.json"),
        "reach:reach",
    ),
    "audit": Verb(
        "Test the claims of differential privacy that methods make.",
        (
            "bench audit --method 'dp-simple[epsilon=1]' --dataset digits",
            "bench audit --method cadp --confidence 0.99",
        ),
        "run:audit",
    ),
    "release": Verb(
        "Release private rows as files to publish, and write their key to a separate file.",
        (
            "bench release --method 'dp-simple[epsilon=8]' --dataset folder:scans --public nih --out public",
            "bench release --method 'k-same[k=5]' --dataset nih --rows mine.csv --out public --dry-run",
        ),
        "release:release",
    ),
    "encode": Verb(
        "Encode new images as queries to a model that was trained on a release.",
        (
            "bench encode new-images --release public --key public-key.safetensors --out queries.safetensors",
            "bench encode new-images --release public --key my.key --passphrase pass.txt --out q.safetensors",
        ),
        "release:encode",
    ),
    "decode": Verb(
        "Decode the predictions of such a model to the real labels.",
        (
            "bench decode predictions.csv --release public --key public-key.safetensors --out decoded.csv",
            "bench decode predictions.csv --release public --names queries-names.csv --out decoded.csv",
        ),
        "release:decode",
    ),
    "report": Verb(
        "Attack a release on its owner's data, and write a report of the risk for its people.",
        (
            "bench report public --dataset folder:scans --preset standard --keys 33",
            "bench report public --dataset nih --declare declaration.yaml --max-risk 0.09",
        ),
        "report:report",
    ),
    "clean": Verb(
        "List artefacts and caches that can be computed again, with sizes; remove them with --yes.",
        ("bench clean", "bench clean --only cache --yes"),
        "status:clean",
    ),
    "data list": Verb(
        "List the data sets, and whether their files are on this machine.",
        ("bench data list", "bench data list --data-root /data"),
        "data:list_datasets",
    ),
    "data info": Verb(
        "Show a data set's content, source and licence, and whether its files are on this machine.",
        ("bench data info nih", "bench data info folder:scans"),
        "data:info",
    ),
    "data prepare": Verb(
        "Decode and resize a data set once, for all later runs.",
        ("bench data prepare nih --data-root /data --jobs 8", "bench data prepare medmnist:pneumoniamnist --download"),
        "data:prepare",
    ),
    "data verify": Verb(
        "Check layout, published counts and checksums, duplicates, people and fingerprint of a data set.",
        ("bench data verify digits", "bench data verify mimic --data-root /data"),
        "data:verify",
    ),
    "leaderboard build": Verb(
        "Write the pages of the published records, or of a results folder.",
        ("bench leaderboard build", "bench leaderboard build --results results --site site"),
        "leaderboard:build",
    ),
    "leaderboard serve": Verb(
        "Write the pages and show them on this machine.",
        ("bench leaderboard serve", "bench leaderboard serve --results results --port 8080"),
        "leaderboard:serve",
    ),
    "leaderboard publish": Verb(
        "Copy records that may be shown to the published ones.",
        ("bench leaderboard publish --results results", "bench leaderboard publish --results results --to published"),
        "leaderboard:publish",
    ),
    "leaderboard ledger": Verb(
        "List the verdicts on the papers' figures, and check our figures against the records.",
        ("bench leaderboard ledger", "bench leaderboard ledger --renew"),
        "leaderboard:ledger",
    ),
    "leaderboard commit": Verb(
        "Commit to the code, parameters and data of a run, before the board draws its run secret.",
        (
            "bench leaderboard commit --method dp-simple --dataset digits --preset first-look --out mine.json",
            "bench leaderboard commit --method syfer --dataset mimic --out mine.json --sign me.key",
        ),
        "leaderboard:commit",
    ),
    "leaderboard draw": Verb(
        "Answer a commitment with a signed run secret, and enter it in the board's register.",
        (
            "bench leaderboard draw mine.json --sign board.key",
            "bench leaderboard draw mine.json --sign board.key --register draws --days 30",
        ),
        "leaderboard:draw",
    ),
    "leaderboard submit": Verb(
        "Check a results folder and pack it into one bundle.",
        ("bench leaderboard submit results", "bench leaderboard submit results --sign me.key --out mine.bundle.zip"),
        "exchange:submit",
    ),
    "leaderboard verify": Verb(
        "Check a bundle again and print its tier, or check every file of a results folder.",
        ("bench leaderboard verify results.bundle.zip --rerun 5", "bench leaderboard verify --results results"),
        "exchange:verify",
    ),
    "leaderboard merge": Verb(
        "Merge results folders into one.",
        (
            "bench leaderboard merge results-1 results-2 --into results",
            "bench leaderboard merge theirs --into results --trusted their.pub --prefer newest",
        ),
        "exchange:merge",
    ),
    "leaderboard export": Verb(
        "Copy the records and artefacts that may leave this machine into a folder.",
        ("bench leaderboard export shared", "bench leaderboard export shared --results results --restricted"),
        "exchange:export",
    ),
    "plugin add": Verb(
        "Add methods and attacks of other authors, in an environment of their own that only sandboxes start.",
        ("bench plugin add ./my-package", "bench plugin add ./old.py 'numpy<1.20' --python python3.8 --name old"),
        "plugins:add",
    ),
    "plugin list": Verb(
        "List the environments of added plug-ins: plug-ins, interpreter, date and state.",
        ("bench plugin list", "bench plugin list my-package"),
        "plugins:list_added",
    ),
    "plugin remove": Verb(
        "Remove an environment and its plug-ins.",
        ("bench plugin remove my-package", "bench plugin remove old"),
        "plugins:remove",
    ),
    "challenge make": Verb(
        "Write a sealed challenge: releases under secret keys to publish, and their answers to keep.",
        (
            "bench challenge make --out challenge --sealed challenge-sealed",
            "bench challenge make --method dauntless --out mine --sealed mine-sealed",
        ),
        "challenge:make",
    ),
    "challenge score": Verb(
        "Score an entry to a challenge by bands, and after its end by lower bounds.",
        (
            "bench challenge score entry --sealed challenge-sealed",
            "bench challenge score entry --sealed challenge-sealed --final --format json",
        ),
        "challenge:score",
    ),
    "keys new": Verb(
        "Make a key pair that signs records.", ("bench keys new me.key", "bench keys new ~/keys/board.key"), "keys:new"
    ),
    "keys show": Verb(
        "Print the public key of a private or public key.",
        ("bench keys show me.key", "bench keys show me.key.pub"),
        "keys:show",
    ),
}
GROUPS = {
    "data": "List, describe, prepare or verify data sets.",
    "leaderboard": "Build the pages, and carry records to other machines or to the board.",
    "plugin": "Add, list or remove plug-ins of other authors.",
    "challenge": "Make a public challenge, or score entries to it.",
    "keys": "Make or show keys that sign records.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SPELLED)
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with heeded():
            shadowing.guard()
            return _run(words)
    except KeyboardInterrupt as stop:
        with suppress(OSError):  # the terminal may be gone
            print("\nbench: stopped; finished results are kept", file=sys.stderr)
        return code(stop)
    except BrokenPipeError:
        from bench.cli.terminal import let_go

        let_go()
        return DONE
    except Exception as error:
        if type(error).__name__ not in ("UsageError", "DataError", "ShadowedError", "BundleError") and not isinstance(
            error, OSError
        ):
            raise
        print(f"bench: {_message(error)}", file=sys.stderr)
        return USAGE


def _run(words: Sequence[str]) -> int:
    app = command_line()
    try:
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        print(_usage_message(error), file=sys.stderr)
        return USAGE
    result = command(*bound.args, **bound.kwargs)
    without_verb = getattr(command, "__func__", None) is App.help_print and not {"--help", "-h"} & set(words)
    return USAGE if without_verb else result if isinstance(result, int) else DONE


def command_line(console: Console | None = None) -> App:
    """The whole command line; `console` shows its help pages."""
    top = App(
        name="bench", help=HEADLINE, help_format="plaintext", version=_version, console=console,
        help_epilogue="New here? `bench run --suite quickstart` needs no data, no GPU and a few minutes.",
    )  # fmt: skip
    top.register_install_completion_command(name="--install-completion")
    top["--install-completion"].help = "Install completion for this shell (bash, zsh, fish, PowerShell)."
    apps = {
        name: App(name=name, help=help, help_format="plaintext", sort_key=len(VERBS)) for name, help in GROUPS.items()
    }
    for name, app in apps.items():
        if any(verb.startswith(f"{name} ") for verb in VERBS):
            top.command(app)
    for number, (name, verb) in enumerate(VERBS.items()):
        group, _, inner = name.rpartition(" ")
        (apps[group] if group else top).command(
            f"{COMMANDS}.{verb.function}", name=inner, help=verb.help, help_format="plaintext",
            help_epilogue="\n".join(("Examples:", *(f"  {example}" for example in verb.examples), "")), sort_key=number,
        )  # fmt: skip
    return top


def _version() -> str:
    from importlib.metadata import version

    return f"veil-bench {version('veil-bench')}"


def _usage_message(error: CycloptsError) -> str:
    """The message of a command that cannot be read, in one line."""
    error.verbose = False
    prog = " ".join(("bench", *(error.command_chain or ())))
    text = " ".join(str(error).split())
    if isinstance(error, UnusedCliTokensError):
        text = f"Unknown: {' '.join(error.unused_tokens or ())}."
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        given = error.keyword or any(token.keyword for token in error.argument.tokens)
        text = f"{error.argument.name} {'needs a value' if given else 'is missing'}."
    elif isinstance(error, UnknownCommandError):
        text = text.partition(" Available")[0].replace("command", "verb")
        asked = (error.unused_tokens or [""])[0]
        if deeper := [f"`bench {verb}`" for verb in VERBS if " " in verb and verb.endswith(f" {asked}")]:
            text = f'Unknown verb "{asked}". Did you mean {" or ".join(deeper)}?'
    elif isinstance(error, ValidationError) and error.group is not None:
        text = error.exception_message
    end = "" if text.endswith((".", "?")) else "."
    return f"{prog}: {text}{end} `{prog} --help` lists what it takes."


def _message(error: Exception) -> str:
    """An error's text, made plain: it may quote files of others."""
    from bench.disk.disk_errors import in_words
    from bench.wire.text import plain

    return plain(in_words(error) if isinstance(error, OSError) else str(error))
