"""False alarms of the test of call forms over methods of this project, which show none.

Run: `python tests/campaigns/false_alarms_of_faces.py [REPEATS] [METHOD@DATASET ...]`. Every method is called as by an
owner and as by an attacker under 20 fresh keys, each with two numbers of rows, and with public rows and a mixture; each
repeat has keys of its own. The
table shows releases, repeats, repeats below the level of 1 %, and the quartiles of p. At the end stands the probability
under chance of as many alarms, and of p as small as these altogether (Kolmogorov and Smirnov, one-sided).
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from scipy.stats import binom, kstest

sys.path.insert(0, str(Path(__file__).parents[1]))

from made.cells import opened

from bench.data.scorable import equal_classes
from bench.evaluators.honesty import FEW, LEVEL, calls_beside
from bench.leak_search.call_faces import KEYS, Form, ask, released, trace
from bench.leak_search.other_calls import lost
from bench.randomness import Secret

METHODS = (
    *(f"{method}@digits" for method in (
        "identity", "noise", "blur", "constant", "dp-simple", "instahide", "hidden-control", "k-same",
        "k-same[variant=paper]", "mosaic[cell=2]", "dauntless[patch_size=4]", "random-layers[patch_size=4]",
        "neuracrypt[patch_size=4]", "syfer-random[patch_size=4]", "syfer-random[patch_size=4,labels=raw]",
        "known-leak", "dp-image", "dp-glow", "cadp",
    )),
    *(f"{method}@diabetes" for method in (
        "identity", "dp-simple", "instahide", "hidden-control", "k-same[k=2]", "cadp", "cvae[epochs=2]",
    )),
)  # fmt: skip
CALLS = (
    7  # of a key: the owner's, hers and Eve's in another order, each of these with two numbers, two with public rows
)


def measured(written: str, repeats: int, folder: Path) -> list[float]:
    """p of each repeat."""
    method, _, dataset = written.partition("@")
    bench = opened(folder, method, dataset)
    scheme, rows = bench.method.fit(bench.public, 0), bench.private
    part = bench.as_owned(rows.take(torch.arange(min(FEW, len(rows) // 2))), "faces")
    if bench.method.equal_classes and part.exclusive and part.labels is not None:
        part = replace(part, labels=equal_classes(part.labels, 0))
    form = Form(labels=bench.method.uses_labels or bench.method.needs_labels, subjects=bench.method.uses_subjects)
    found = list[float]()
    for repeat in range(repeats):
        secrets = [Secret.of_seed(repeat, "campaign", written, key) for key in range(KEYS)]
        asked = [list(ask(scheme, scheme, data, secrets, form)) for data in (rows, part)]
        traced = trace([rows.samples, part.samples], asked, repeat).p
        other_order, fewer, *others = calls_beside(bench, part)
        shuffled, small = ([pair.owner for pair in pairs] for pairs in asked)
        beside = [(other_order, shuffled), (fewer, small)]
        beside += [(call, [released(scheme, secret, call.rows) for secret in secrets]) for call in others]
        plain = [released(scheme, secret, rows) for secret in secrets]
        lacking = lost(rows.samples, plain, beside, repeat)
        found.append(min(1.0, 2 * min(traced, lacking.p)))
        if lacking.call:
            print(f"{written}: {lacking}")
    return found


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    every = list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for written in sys.argv[2:] or METHODS:
            try:
                found = measured(written, repeats, Path(folder))
            except Exception as error:  # the others go on
                print(f"{written:48} {type(error).__name__}: {error}", flush=True)
                continue
            every += found
            quartiles = " ".join(
                f"{value:.3f}" for value in torch.tensor(found).quantile(torch.tensor([0.0, 0.5, 1.0]))
            )
            alarms, releases = sum(p < LEVEL for p in found), CALLS * KEYS * len(found)
            print(
                f"{written:48} {releases:6} releases  {len(found):3} tests  {alarms:2} alarms  p {quartiles}",
                flush=True,
            )
    drawn = [p for p in every if p < 1]  # a method whose releases are equal has p = 1
    alarms = sum(p < LEVEL for p in every)
    print(f"{CALLS * KEYS * len(every)} releases, {len(every)} tests, {len(drawn)} with p below 1, {alarms} alarms")
    print(f"as many alarms by chance: p {binom.sf(alarms - 1, len(every), LEVEL):.3f}")
    if drawn:
        print(f"p smaller than uniform: p {kstest(drawn, 'uniform', alternative='greater').pvalue:.3f}")


if __name__ == "__main__":
    main()
