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
from bench.cli.terminal import to_stderr
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import verdict
from bench.results.bundle import ENDING, Bundle
from bench.results.records import Record
from bench.results.results import Results
from bench.results.run_secret import given
from bench.results.signing_key import SigningKey
from bench.results.verdict import Tier
from bench.runs.display import Display
from bench.submission.finding import told
from bench.submission.refit import Refitted, refit
from bench.submission.rerun import run_again
from bench.submission.seal import seal
from bench.submission.verify import Verified, verify
from bench.types import DataError
from bench.wire.text import plain
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
        print(plain(f"{name}: {results.bare(name, reason)}"), file=sys.stderr)
    if not problems and next(results.records(), None) is None:
        raise UsageError(f"no records in {results.root}: run something first, or name the folder with --results")
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
    path = options.verdict or bundle.path.with_name(f"{bundle.path.name.removesuffix(ENDING)}{verdict.ENDING}")
    most = Tier.SEALED if options.seal else Tier.RE_RUN if options.rerun else Tier.REPLAYED
    _spare(path, most, signer)
    if options.seal:
        if options.results is None:
            raise UsageError("--seal writes records of your own: name their folder with --results")
        secret = where.results.keep_secret()
        found, apart = seal(bundle, secret, lambda records, key: _again(records, key, where))
        for text in apart:
            print(plain(f"apart: {text}"))
    else:
        absent: set[str] = set()
        known = given(options.secret) if options.secret else None
        with tempfile.TemporaryDirectory(prefix="bench-verify-") as folder:
            # Fitting asks for a run secret of any kind, and measuring for the author's: each has a folder.
            apart_place, fitting_place = (replace(where, results=Results(Path(folder, name))) for name in "mf")
            found = verify(
                bundle, secret=known, rerun=options.rerun or 0,
                again=None if options.rerun is None else lambda records, key: _again(records, key, apart_place),
                refit=None if options.rerun is None else lambda record: _refit(record, fitting_place, absent),
            )  # fmt: skip
        to_stderr((f"note: nothing was fitted again: {text}" for text in sorted(absent)), MOST_SHOWN)
    return _conclude(found, bundle, path, signer)


def _again(records: Sequence[Record], secret: Secret, where: Place) -> Mapping[str, Record]:
    with Display() as display:
        return run_again(records, secret, where, display)


def _refit(record: Record, where: Place, absent: set[str]) -> Refitted | None:
    """The method of a record fitted again; None where its data are not here, which is said once."""
    try:
        return refit(record, where)
    except DataError as error:
        absent.add(str(error))
        return None


def _spare(path: Path, tier: Tier, signer: SigningKey | None) -> None:
    """Raise UsageError where a verdict of this tier would take the place of one that is worth more."""
    try:
        there = verdict.standing(path)
    except verdict.VerdictError as error:
        raise UsageError(f"{error}; write elsewhere with --verdict") from error
    if there is None:
        return
    stands, by = there
    if by is not None and (signer is None or signer.public != by):
        why = f"is signed by the key {by[:16]}, and the new one by {signer.public[:16] if signer else 'nobody'}"
    elif (signer is None or by is not None) and stands > tier:
        why = f"says {stands.word}, and the new one {tier.word} at most"
    else:
        return
    raise UsageError(f"{path} {why}: write elsewhere with --verdict")


def _conclude(found: Verified, bundle: Bundle, path: Path, signer: SigningKey | None) -> int:
    to_stderr((f"refused: {text}" for text in told(found.refused)), MOST_SHOWN)
    to_stderr((f"note: {text}" for text in told(found.notes)), MOST_SHOWN)
    if found.verdict is None:
        print("refused")
        return 1
    print(f"Signed by {bundle.signer}" if bundle.signer else "Signed by nobody")
    rows = found.verdict.rows
    for cell, row in rows.items():
        counts = Counter(judged.tier for judged in row.records.values())
        print(plain(f"{row.tier.word}: {cell} ({', '.join(f'{counts[tier]} {tier.word}' for tier in sorted(counts))})"))
        for reason in [*dict.fromkeys(f"{judged.tier.word}: {judged.reason}" for judged in row.records.values())][
            :MOST_SHOWN
        ]:
            print(f"  {plain(reason)}")
        if row.said:
            print(f"  as the author says: {', '.join(row.said)}")
    _spare(path, found.verdict.tier, signer)
    verdict.write(found.verdict, path, signer)
    print(f"Verdict: {path}{'' if signer else ' (unsigned: nobody else will count it; --sign)'}")
    print(f"Tier: {found.verdict.tier.word}")
    return 0
