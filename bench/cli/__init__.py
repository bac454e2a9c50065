"""The command line: arguments in, an exit code out. Everything heavy is imported by the verb that needs it.

Exit codes: 0 all is well, 1 something failed (a cell, a check), 2 wrong usage or data that are not there; stopped by a
signal, 128 and its number: 130 (Ctrl-C), 143 (TERM), 129 (HUP).
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

from bench import shadowing
from bench.cli.argument_parser import ArgumentParser, sentence
from bench.cli.arguments import count, port, positive, resource_class, results_folder, seconds, trusted
from bench.cli.letters import SPELLED
from bench.cli.run_arguments import audit, release, run, show, sources
from bench.cli.stop import code, heeded
from bench.contract.preset import PRESETS
from bench.plugins.groups import GROUPS, Kind

VERBS = {
    "run": "score methods on data sets and write records",
    "worker": "do jobs of a planned run (`bench run --executor none`) until none is left; any number, anywhere",
    "audit": "try to refute what methods claim of differential privacy",
    "release": "release private rows as files to publish, and put the key apart from them",
    "show": "draw raw rows beside their released forms, a column a method, as one PNG",
    "compare": "compare methods on the same people and keys: two of them, or all with intervals of their ranks",
    "status": "say what is done, missing, failed or out of date, and why",
    "list": "list plug-ins: methods, attacks, data sets, metrics, feature extractors, evaluators",
    "info": "show a plug-in's parameters, paper, claim and requirements",
    "new": "write a plug-in to begin with, which works, beside a test; or a package around a method",
    "check": "run the contract suite over a plug-in, up to the first cause of a failure",
    "gpu-check": "try every plug-in on this machine's GPU: contract, figures beside the CPU's, speed",
    "data": "list, describe, prepare or verify data sets",
    "reach": "show how far up the ladder of breakable encoders each attack gets",
    "leaderboard": "build and serve the pages; submit, verify, merge, export and publish records",
    "keys": "make a key pair to sign records with, or show the public half of one",
    "clean": "list what can be made again, with sizes, and remove it with --yes",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SPELLED)
    options = parser().parse_args(arguments)
    try:
        with heeded():
            shadowing.guard()
            command = importlib.import_module(f"bench.cli.commands.{options.verb.replace('-', '_')}")
            return int(command.main(options))
    except KeyboardInterrupt as stop:
        with suppress(OSError):  # the terminal may be what has gone
            print("\nbench: stopped; what was finished is kept", file=sys.stderr)
        return code(stop)
    except BrokenPipeError:
        from bench.cli.terminal import let_go

        let_go()
        return 0
    except Exception as error:
        if type(error).__name__ in ("UsageError", "DataError", "ShadowedError", "BundleError") or isinstance(
            error, OSError
        ):
            from bench.results.disk_errors import OF_WRITING, unread, unwritable, why
            from bench.wire.text import plain

            said = str(error)
            if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
                said = f"{error.filename}: {unread(error)}"
                if error.errno in OF_WRITING:
                    said = unwritable(Path(os.fsdecode(error.filename)), error)
            told = plain(why(error) or said)  # it may quote what a file of others says
            print(f"bench: {told}", file=sys.stderr)
            return 2
        raise


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = ArgumentParser(
        prog="bench",
        description="Score medical-image obfuscation methods: utility, guesswork, re-identification, throughput.",
        epilog="New here? `bench run --suite quickstart` needs no data, no GPU and a few minutes.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and stop")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    made = {name: verbs.add_parser(name, help=text, description=sentence(text)) for name, text in VERBS.items()}
    run(made["run"])
    audit(made["audit"])
    release(made["release"])
    show(made["show"])
    _worker(made["worker"])
    _status(made["status"])
    _compare(made["compare"])
    made["list"].add_argument("group", nargs="?", choices=GROUPS)
    made["info"].add_argument("name", help="a plug-in's name or FILE.py:CLASS")
    made["info"].add_argument("--preset", choices=tuple(PRESETS), default="quick")
    made["new"].add_argument("kind", choices=get_args(Kind))
    made["new"].add_argument("name", help="of a-z, 0-9 and hyphens")
    made["new"].add_argument("--into", type=Path, metavar="DIR", default=Path(), help="where to write (default: here)")
    made["check"].add_argument("name", nargs="+", help="plug-ins' names or FILE.py:CLASS")
    made["check"].add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    made["gpu-check"].add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu is a dry run")
    made["gpu-check"].add_argument("--out", type=Path, metavar="FILE", help="also write the table, as Markdown")
    results_folder(made["reach"])
    made["reach"].add_argument("--preset", choices=tuple(PRESETS), default="quick")
    made["reach"].add_argument("--write", type=Path, metavar="FILE", help="also write what was measured to a JSON file")
    _data(made["data"])
    _leaderboard(made["leaderboard"])
    _keys(made["keys"])
    results_folder(made["clean"])
    only = "artefacts of the results folder, or the cache of prepared data and features (default: both)"
    made["clean"].add_argument("--only", choices=("artefacts", "cache"), help=only)
    made["clean"].add_argument("--yes", action="store_true", help="remove it; without, nothing is touched")
    return top


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        from importlib.metadata import version

        print(f"veil-bench {version('veil-bench')}")
        parser.exit()


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", nargs="*", metavar="METHOD",
                        help="two methods, as 'dp-simple[scale=20]' (default: all, with their ranks)")  # fmt: skip
    parser.add_argument("--metric", action="append", metavar="NAME", help="a figure (repeatable; default: all)")
    parser.add_argument(
        "--attack", metavar="NAME", help="figures of this attack alone (default: of each that both have)"
    )
    results_folder(parser)


def _worker(parser: argparse.ArgumentParser) -> None:
    results_folder(parser)
    parser.add_argument("--data-root", type=Path, action="append", metavar="DIR",
                        help="folder above the data sets (default: BENCH_DATA, or as it was planned)")  # fmt: skip
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto",
                        help="do jobs for this kind of device alone (default: for all that is here)")  # fmt: skip
    parser.add_argument("--alone", action="store_true",
                        help="hold this machine alone, and do timings; waits until no other works here")  # fmt: skip
    parser.add_argument("--limit-minutes", type=seconds, metavar="N", help="stop after so long, and give the job back")
    parser.add_argument("--idle-minutes", type=seconds, metavar="N",
                        help="wait so long where nothing is to do (default: while others are at jobs)")  # fmt: skip
    parser.add_argument("--cores", type=positive, metavar="N", help="threads of a job (default: one a core)")
    parser.add_argument("--memory", type=seconds, metavar="GIB",
                        help="GiB a job may hold where the plan is silent (default: 80 %% of the machine)")  # fmt: skip
    parser.add_argument("--lost-after", type=seconds, default=120.0, metavar="SECONDS",
                        help="others take its job after so long without a sign of life (usual: 120)")  # fmt: skip
    parser.add_argument("--only", type=resource_class, metavar="CLASS",
                        help="do jobs of a resource class alone, as cuda-60m (a plan names its classes)")  # fmt: skip
    parser.add_argument("--prepare", action="store_true",
                        help="open data and fit methods first, and end when that is done")  # fmt: skip
    parser.add_argument(
        "--sign", type=Path, metavar="FILE", help="sign new records with this key (see `bench keys new`)"
    )


def _status(parser: ArgumentParser) -> None:
    results_folder(parser)
    parser.add_argument("--files", action="store_true",
                        help="also run the files that plans name: not in a folder of others")  # fmt: skip
    either = parser.add_mutually_exclusive_group()
    watch = either.add_argument("--watch", action="store_true", help="show how jobs of planned runs stand, from the "
                                "folder alone, until all ended")  # fmt: skip
    cost = either.add_argument(
        "--cost", action="store_true", help="estimate hours at another size from recorded seconds"
    )
    parser.belong([parser.add_argument("--once", action="store_true", help="with --watch: show it once")], watch)
    rows = parser.add_argument("--rows", type=positive, default=50_000, metavar="N",
                               help="with --cost: private rows of each data set (default: 50000)")  # fmt: skip
    workers = parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="with --cost: share it among so many (default: 1)"
    )
    price = parser.add_argument("--price", type=seconds, metavar="P", help="with --cost: of a worker's hour")
    parser.belong([rows, workers, price], cost)


def _data(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="data_verb", required=True, metavar="list | info | prepare | verify")
    sources(verbs.add_parser("list", help="list the data sets, and say whose files are here"))
    for name, text in (
        ("info", "what a data set is, where it comes from, and whether it is here"),
        ("prepare", "decode and resize it once"),
        (
            "verify",
            "check layout, published counts and checksums, files, duplicates, people in parts, fingerprint; "
            "exit with 1 where a checksum differs",
        ),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("name")
        sources(verb)
        if name == "prepare":
            verb.add_argument("--jobs", type=positive, metavar="N", help="decoding processes (default: one a core)")
            verb.add_argument("--download", action="store_true", help="fetch it first, where its terms allow that")


def _leaderboard(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="leaderboard_verb", required=True, metavar="VERB")
    for name, text in (("build", "write the pages"), ("serve", "write the pages and show them on this machine")):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("--results", type=Path, metavar="DIR", help="records (default: those the project publishes)")
        trusted(verb)
        verb.add_argument("--site", type=Path, metavar="DIR",
                          help="folder of the pages (default: RESULTS/site, or board)")  # fmt: skip
        if name == "serve":
            verb.add_argument("--port", type=port, default=8000)
    verb = verbs.add_parser("publish", help="bring records that may be shown among those that the project publishes")
    results_folder(verb)
    trusted(verb)
    verb.add_argument("--to", type=Path, metavar="DIR", help="the published records (default: the project's own)")
    verb = verbs.add_parser("ledger", help="what was reproduced of the papers, and whether its figures are still so")
    verb.add_argument("--renew", action="store_true", help="write the figures anew; verdicts are for people to judge")
    _submit(verbs.add_parser("submit", help="check a results folder and pack it into one bundle"))
    _verify(verbs.add_parser("verify", help="judge a bundle again and give its tier, or read a results folder whole"))
    _merge(verbs.add_parser("merge", help="join results folders"))
    _export(verbs.add_parser("export", help="copy the records and artefacts that may leave into a folder"))


def _submit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="DIR", help="the results folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the bundle (default: DIR.bundle.zip)")
    parser.add_argument("--sign", type=Path, metavar="FILE", help="sign it with this key (see `bench keys new`)")
    parser.add_argument("--disclose", action="store_true", help="add the run secret, so that others can derive the "
                        "keys and judge the evidence again: it undoes the folder's releases")  # fmt: skip


def _verify(parser: ArgumentParser) -> None:
    bundle = parser.add_argument("bundle", nargs="?", type=Path, metavar="BUNDLE",
                                 help="the bundle (default: read the results folder)")  # fmt: skip
    results_folder(parser)
    trusted(parser)
    add = parser.add_argument_group("of a bundle").add_argument
    of_bundle = [
        add("--secret", type=Path, metavar="FILE", help="the run secret, if the bundle has none"),
        add("--rerun", type=count, default=None, metavar="N",
            help="measure N random records of a method again, and those that do not apply"),
        add("--seal", action="store_true",
            help="measure all of it under the secret of your own --results, in a sandbox"),
        add("--sign", type=Path, metavar="FILE", help="sign the verdict with this key"),
        add("--verdict", type=Path, metavar="FILE", help="the verdict's file (default: beside the bundle)"),
        add("--data-root", type=Path, action="append", metavar="DIR",
            help="folder above the data sets (or BENCH_DATA)"),
    ]  # fmt: skip
    parser.belong(of_bundle, bundle)


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, nargs="+", metavar="DIR", help="results folders; they stay as they are")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="the joined one, new or with records")
    trusted(parser)
    parser.add_argument("--prefer", choices=("newest", "first"), help="of different records of one name: the newest, "
                        "or that in --into, else the first (default: both are refused by name)")  # fmt: skip
    parser.add_argument("--secret-of", type=Path, metavar="DIR", help="the folder whose run secret the joined one "
                        "gets, if theirs differ, or with --trusted")  # fmt: skip


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a new folder, or that of an earlier export")
    results_folder(parser)
    parser.add_argument("--restricted", action="store_true", help="also figures and fitted models of data that may "
                        "not be shared, if you may send them where the folder goes; releases of them stay")  # fmt: skip


def _keys(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="keys_verb", required=True, metavar="new | show")
    new = verbs.add_parser("new", help="make a key pair")
    new.add_argument("file", type=Path, metavar="FILE", help="the private key; the public one is FILE.pub")
    show = verbs.add_parser("show", help="print the public key of a private or public key")
    show.add_argument("file", type=Path, metavar="FILE", help="a private key, or a public one")
