"""`bench verify [BUNDLE]`: a bundle judged again, with the tier that it bears; or a results folder read whole."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.cli.options import place
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import verdict
from bench.results.bundle import ENDING, Bundle
from bench.results.record_files import cell_and_evaluator
from bench.results.records import Record
from bench.results.results import Results
from bench.results.run_secret import given
from bench.results.signing_key import SigningKey
from bench.results.tier import Tier
from bench.runs.display import Display
from bench.submission.finding import told
from bench.submission.rerun import run_again
from bench.submission.seal import seal
from bench.submission.verify import Verified, verify
from bench.workbench.place import Place
from leaderboard.site import altered

MOST_SHOWN = 10


def main(options: argparse.Namespace) -> int:
    """Verify what was named; 1 if anything is refused."""
    return _folder(options) if options.bundle is None else _bundle(options)


def _folder(options: argparse.Namespace) -> int:
    """Read every file of a results folder."""
    results = place(options).results
    if not results.root.is_dir():
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    problems = [*results.problems(), *((f"site/{name}", reason) for name, reason in altered(results.root / "site"))]
    for name, reason in problems:
        print(f"{name}: {results.bare(name, reason)}", file=sys.stderr)
    known = "" if results.trusted is not None else "; who wrote them is not asked: name public keys with --trusted"
    print(f"{len(problems)} files are not what was written" if problems else f"all files are what was written{known}")
    return 1 if problems else 0


def _bundle(options: argparse.Namespace) -> int:
    """Judge a bundle again, write the verdict, and print the tier of each method."""
    where = place(options)
    signer = SigningKey.read(options.sign) if options.sign else None
    bundle = Bundle.open(options.bundle)
    if where.results.trusted is not None and bundle.signer not in where.results.trusted:
        raise UsageError(
            f"{options.bundle} is signed by {bundle.signer or 'nobody'}, and by none of the --trusted keys"
        )
    if options.seal:
        if options.results is None:
            raise UsageError("--seal writes records of your own: name their folder with --results")
        secret = where.results.keep_secret()
        found, apart = seal(bundle, secret, lambda records, key: _again(records, key, where))
        for line in apart:
            print(f"apart: {line}")
    else:
        known = given(options.secret) if options.secret else None
        with tempfile.TemporaryDirectory(prefix="bench-verify-") as folder:
            apart_place = replace(where, results=Results(Path(folder, "results")))
            found = verify(
                bundle, secret=known, rerun=options.rerun or 0,
                again=None if options.rerun is None else lambda records, key: _again(records, key, apart_place),
            )  # fmt: skip
    return _conclude(found, bundle, options.verdict, signer)


def _again(records: Sequence[Record], secret: Secret, where: Place) -> Mapping[str, Record]:
    with Display() as display:
        return run_again(records, secret, where, display)


def _conclude(found: Verified, bundle: Bundle, out: Path | None, signer: SigningKey | None) -> int:
    for line in told(found.refused)[:MOST_SHOWN]:
        print(f"refused: {line}", file=sys.stderr)
    for line in told(found.notes)[:MOST_SHOWN]:
        print(f"note: {line}", file=sys.stderr)
    if found.verdict is None:
        print("refused")
        return 1
    tiers: dict[str, Counter[Tier]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for judged in found.verdict.records.values():
        cell, _ = cell_and_evaluator(judged.name)
        tiers.setdefault(cell, Counter())[judged.tier] += 1
        reasons.setdefault(cell, {})[f"{judged.tier.word}: {judged.reason}"] = None
    for cell, counts in tiers.items():
        print(f"{min(counts).word}: {cell} ({', '.join(f'{counts[tier]} {tier.word}' for tier in sorted(counts))})")
        for reason in [*reasons[cell]][:MOST_SHOWN]:
            print(f"  {reason}")
    path = out or bundle.path.with_name(f"{bundle.path.name.removesuffix(ENDING)}{verdict.ENDING}")
    verdict.write(found.verdict, path, signer)
    print(f"Verdict: {path}{'' if signer else ' (unsigned: nobody else will count it; --sign)'}")
    print(f"Tier: {min(tier for counts in tiers.values() for tier in counts).word}")
    return 0
