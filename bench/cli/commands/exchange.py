"""`bench leaderboard submit | verify | merge | export`: results carried to other machines and to the leaderboard."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Sequence

from bench.cli.options import place
from bench.cli.terminal import to_stderr
from bench.exchange.check import summary
from bench.exchange.export import export
from bench.exchange.merge import merge
from bench.exchange.outcomes import Outcomes
from bench.exchange.submit import submit
from bench.exchange.verify import Verification, verify
from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.results.run_secret import given
from bench.results.signing_key import SigningKey, read_public
from bench.wire.text import plain
from leaderboard.site import altered

MOST_SHOWN = 20


def main(options: argparse.Namespace) -> int:
    """Do one of the verbs; 1 if anything is refused."""
    verbs = {"submit": _submit, "merge": _merge, "export": _export}
    if options.leaderboard_verb == "verify":
        return _verify_folder(options) if options.bundle is None else _verify(options)
    return verbs[options.leaderboard_verb](options)


def _submit(options: argparse.Namespace) -> int:
    signer = SigningKey.read(options.sign) if options.sign else None
    path, findings = submit(Results(options.results.resolve()), options.out, signer=signer, disclose=options.disclose)
    if findings:
        to_stderr(summary(findings), MOST_SHOWN)
        print(f"nothing was packed: {len(findings)} {'fault' if len(findings) == 1 else 'faults'}", file=sys.stderr)
        return 1
    print(f"{path} ({path.stat().st_size / 2**20:.1f} MiB{'' if signer else ', unsigned'})")
    if not options.disclose:
        print("Without its run secret its keys cannot be derived: it stays self-reported (--disclose adds it)")
    print(f"Try it: bench leaderboard verify {shlex.quote(str(path))}")
    print("Submit it: a pull request that adds it to leaderboard/submissions/, whose README says how")
    return 0


def _export(options: argparse.Namespace) -> int:
    outcomes = export(place(options).results, options.folder, restricted=options.restricted)
    code = _print_outcomes(outcomes, f"exported to {options.folder}")
    print(
        "run secret, logs, plans, pages and prepared data stay here; carry the folder by rsync, rclone or aws s3 sync"
    )
    return code


def _merge(options: argparse.Namespace) -> int:
    trusted = frozenset(read_public(path) for path in options.trusted) if options.trusted else None
    sources, into = ([Results(path.resolve(), trusted=trusted) for path in dict.fromkeys(paths)] for paths in
                     (options.source, [options.into]))  # fmt: skip
    secret_of = None if options.secret_of is None else Results(options.secret_of.resolve(), trusted=trusted)
    outcomes = merge(sources, into[0], prefer=options.prefer, secret_of=secret_of)
    return _print_outcomes(outcomes, f"merged into {into[0].root}")


def _print_outcomes(outcomes: Outcomes, done: str) -> int:
    for fate in ("refused", "stays"):
        to_stderr((f"{fate}: {reason}" for reason in outcomes.reasons(fate)), MOST_SHOWN)
    to_stderr((f"note: {note}" for note in outcomes.notes), MOST_SHOWN)
    print(f"{done}: {outcomes.summary('copied')}; there before: {outcomes.summary('present')}")
    if outcomes.count("refused"):
        print(f"refused: {outcomes.summary('refused')}")
    return 1 if outcomes.count("refused") else 0


def _verify_folder(options: argparse.Namespace) -> int:
    results = place(options).results
    if not results.root.is_dir():
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    problems = [*results.problems(), *((f"site/{name}", reason) for name, reason in altered(results.root / "site"))]
    for name, reason in problems:
        print(plain(f"{name}: {results.bare(name, reason)}"), file=sys.stderr)
    if not problems and next(results.records(), None) is None:
        raise UsageError(f"no records in {results.root}: run something first, or name the folder with --results")
    known = "" if results.trusted is not None else "; signatures were not checked (--trusted names public keys)"
    print(f"{len(problems)} files are not what was written" if problems else f"all files are what was written{known}")
    return 1 if problems else 0


def _verify(options: argparse.Namespace) -> int:
    if options.seal and options.results is None:
        raise UsageError("--seal writes records of your own: name their folder with --results")
    signer = SigningKey.read(options.sign) if options.sign else None
    done = verify(
        options.bundle, place(options), secret=given(options.secret) if options.secret else None, rerun=options.rerun,
        sealed=options.seal, signer=signer, out=options.verdict,
    )  # fmt: skip
    _print_notes(done)
    if done.verified.verdict is None:
        print("refused")
        return 1
    print(f"Signed by {done.signer}" if done.signer else "Unsigned")
    for cell, row in done.verified.verdict.rows.items():
        counts = Counter(judged.tier for judged in row.records.values())
        print(plain(f"{row.tier.word}: {cell} ({', '.join(f'{counts[tier]} {tier.word}' for tier in sorted(counts))})"))
        reasons = dict.fromkeys(f"{judged.tier.word}: {judged.reason}" for judged in row.records.values())
        for reason in [*reasons][:MOST_SHOWN]:
            print(f"  {plain(reason)}")
        if row.said:
            print(f"  stated by the author only: {', '.join(row.said)}")
    print(f"Verdict: {done.path}{'' if signer else ' (unsigned, so the board of others does not count it; --sign)'}")
    print(f"Tier: {done.verified.verdict.tier.word}")
    return 0


def _print_notes(done: Verification) -> None:
    lines: Sequence[tuple[str, Sequence[str]]] = (
        ("apart", done.differences),
        ("note: not fitted again", done.unfitted),
        ("refused", summary(done.verified.refused)),
        ("note", summary(done.verified.notes)),
    )
    for title, texts in lines:
        to_stderr((f"{title}: {text}" for text in texts), MOST_SHOWN)
