"""Attack a challenge of `bench challenge make` with this project's own attacks, and write an entry.

    python tests/campaigns/challenge_red_team.py CHALLENGE ENTRY [--known-set relational dp-simple=likelihood]

It reads what everybody may read. Films of other people come from the public seed of the simulator; `known-set` and
`known-pairs` are matched by an attack each, one film to a row (Hungarian method). Encodings are those of a key of its
own, and reconstructions the released rows as they are, made blind where they are no images: enough for methods
without a key, and no attack on others.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from bench.contract.attack import View
from bench.exchange.challenge import COLUMNS, MATCHES, SUBMITTED, About, SchemeAbout, films_of, read_about, scheme_of
from bench.plugins.configured import configure
from bench.randomness import Secret
from bench.types import Dataset, Release, Scheme

SEED = 0


def films(path: Path, name: str) -> Dataset:
    """Films of a file, of people whom it does not name."""
    return films_of(name, np.load(path, allow_pickle=False)).nameless()


def released(path: Path) -> Release:
    """Released rows without links."""
    return Release(torch.from_numpy(np.load(path, allow_pickle=False)).float(), None, None)


def simulated(about: About, data: str, images: int) -> Dataset:
    """Films of the simulator's public population."""
    found = configure("datasets", f"{data}[images={images},seed={SEED}]", about.preset).plugin.scan((), about.side)
    assert found.samples is not None
    return films_of(data, found.samples).nameless()


def match(
    attack: str, scheme: Scheme, folder: Path, about: About, others: tuple[Dataset, Dataset]
) -> list[tuple[int, int]]:
    """(released, raw) pairs of a task's folder."""
    public, control = others
    raw, rows = films(folder / "raw.npy", about.data), released(folder / "released.npy")
    given = folder / "known.csv"
    pairs = (
        np.loadtxt(given, delimiter=",", skiprows=1, dtype=int, ndmin=2) if given.exists() else np.zeros((0, 2), int)
    )
    free_raw = torch.tensor(sorted(set(range(len(raw))) - set(pairs[:, 1].tolist())))
    free = torch.tensor(sorted(set(range(len(rows))) - set(pairs[:, 0].tolist())))
    candidates, sealed = raw.take(free_raw), Release(rows.samples[free], None, None)
    known = raw.take(torch.from_numpy(pairs[:, 1])) if len(pairs) else None
    profile = f"known-pairs[k={len(pairs)}]" if len(pairs) else "same-image"
    view = View(public, scheme, candidates, control, profile=profile, known=known)
    attacker = configure("attacks", attack, about.preset).plugin.fit(view, SEED)
    if known is None:
        scores = attacker.score(sealed)
    else:
        scores = attacker.score_knowing(sealed, known, Release(rows.samples[torch.from_numpy(pairs[:, 0])], None, None))
    block = scores.block(slice(0, scores.shape[0]), slice(0, scores.shape[1])).double().numpy()
    person, row = linear_sum_assignment(block, maximize=True)
    return [(int(free[j]), int(free_raw[i])) for i, j in zip(person, row, strict=True)]


def attack_scheme(
    about: About, scheme: SchemeAbout, others: tuple[Dataset, Dataset], options: argparse.Namespace
) -> list[tuple[str, str, int, int]]:
    """Write the arrays of a scheme; return its matches."""
    folder, own = options.challenge / scheme.name, options.entry / scheme.name
    fitted = scheme_of(options.challenge, scheme, about.preset)
    lines: list[tuple[str, str, int, int]] = []
    for task, attacks in (("known-set", options.known_set), ("known-pairs", options.known_pairs)):
        named = dict(each.rpartition("=")[::2] for each in attacks)
        attack = named.get(scheme.name, named.get("", "relational"))
        started = time.monotonic()
        found = match(attack, fitted, folder / task, about, others)
        print(f"{scheme.name}, {task}: {attack}, {time.monotonic() - started:.0f} s", flush=True)
        lines += [(scheme.name, task, *pair) for pair in found]
    own.mkdir(parents=True)
    key = fitted.sample_key(Secret.of_seed(SEED, "red team"))
    asked = films(folder / "unseen" / "films.npy", about.data)
    np.save(own / SUBMITTED["encode"], key.release(asked).samples.numpy())
    rows = released(folder / "unseen" / "released.npy").samples
    if rows.shape[1:] == asked.samples.shape[1:]:
        np.save(own / SUBMITTED["reconstruct"], rows.clamp(0, 1).numpy())
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("challenge", type=Path)
    parser.add_argument("entry", type=Path)
    parser.add_argument(
        "--known-set", nargs="+", default=["relational", "dp-simple=likelihood"], metavar="[SCHEME=]ATTACK"
    )
    parser.add_argument(
        "--known-pairs", nargs="+", default=["anchors", "dp-simple=likelihood"], metavar="[SCHEME=]ATTACK"
    )
    parser.add_argument("--images", type=int, default=600, help="films of each simulated hospital")
    options = parser.parse_args()
    about = read_about(options.challenge)
    others = simulated(about, about.public, options.images), simulated(about, about.data, options.images)
    lines = [line for each in about.schemes for line in attack_scheme(about, each, others, options)]
    with (options.entry / MATCHES).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
