"""`bench submit DIR`: records, evidence and environment checked and packed into one bundle."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from bench.cli.terminal import to_stderr
from bench.plugins.spec import UsageError
from bench.results.bundle import ENDING
from bench.results.results import Results
from bench.results.signing_key import SigningKey
from bench.submission.finding import told
from bench.submission.pack import submit

MOST_SHOWN = 20


def main(options: argparse.Namespace) -> int:
    """Pack what is in order; 1 and the reasons where anything is not."""
    folder: Path = options.results.resolve()
    if not folder.is_dir():
        raise UsageError(f"expected a results folder, got {folder}; `bench run` makes one")
    out: Path = (options.out or folder.parent / f"{folder.name}{ENDING}").resolve()
    if out.exists():
        raise UsageError(f"{out} is there already: name another with --out, or remove it")
    signer = SigningKey.read(options.sign) if options.sign else None
    findings = submit(Results(folder), out, signer=signer, disclose=options.disclose)
    if findings:
        to_stderr(told(findings), MOST_SHOWN)
        print(f"nothing was packed: {_things(len(findings))} to be mended first", file=sys.stderr)
        return 1
    print(f"{out} ({out.stat().st_size / 2**20:.1f} MiB{'' if signer else ', unsigned'})")
    if not options.disclose:
        print("Without its run secret nobody can derive its keys: it stays self-reported (--disclose puts it in)")
    print(f"Try it: bench verify {shlex.quote(str(out))}")
    print("Hand it in: a pull request that adds it to leaderboard/submissions/, where the README says what to write")
    return 0


def _things(count: int) -> str:
    return "1 thing is" if count == 1 else f"{count} things are"
