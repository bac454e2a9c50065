"""A sealed public challenge: releases under secret keys, and scored entries.

Everyone gets releases of people whom a secret draws, and knows the methods that made them. Only the organiser has the
keys, and the links of released rows to people. Four tasks stand for four kinds of knowledge (`TASKS`). The first and
the third are those of the NeuraCrypt challenge (Yala et al. 2021, github.com/yala/NeuraCrypt-Challenge), whose limits
of 5 % and 20 % are the bands here. Unlike there, what is left out counts as wrong, and a band rests on a lower bound.

The organiser commits to the answers by their SHA-256 before anybody sees the releases. Before the end, an entry gets a
band and no number, from a third of the rows that the last scores leave out, and from another half of that third for
other answers: so no entry tells which of its rows are right. After the end the answers are published, and everyone can
score.
"""

from __future__ import annotations

__figures__ = False

import csv
import fcntl
import hashlib
import io
import json
import math
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors.torch import load, save

from bench.contract.source import DataError
from bench.data.array_files import read_array
from bench.disk.atomic_file import make_folder, read_plain, write_atomically, write_new
from bench.plugins.configured import Configured, configure
from bench.plugins.spec import UsageError, expected, parse
from bench.randomness import Secret
from bench.runs.release_files import SUMS, table_text
from bench.seeds import derive
from bench.statistics.confidence_intervals import lower_proportion
from bench.statistics.structural_similarity import ssim
from bench.types import Dataset, Method, NotApplicable, Scheme
from bench.wire.text import shown

Task = Literal["known-set", "known-pairs", "encode", "reconstruct"]
TASKS: Mapping[Task, str] = {
    "known-set": "Given the films of all released people in another order: which film is each released row of?",
    "known-pairs": "The same of other people under another key, of whom some pairs are given.",
    "encode": "Given released rows and none of their films: what would the key make of films of other people?",
    "reconstruct": "From the same rows: what did their films look like?",
}
BANDS = {0.2: "above 20 %", 0.05: "above 5 %"}
"""The limits of the NeuraCrypt challenge: "bad" privacy above 20 % of people found, "moderate" above 5 %."""
ABOVE, CHANCE = "above chance", "chance"
LEVEL = 0.95
MOST_BYTES = 20_000_000
MOST_ENTRY = 1 << 30
ABOUT, ANSWERS, ENTRIES, ENDED = "challenge.json", "answers.safetensors", "entries.jsonl", "ended"
STATE = "scheme.safetensors"
MATCHES = "matches.csv"
COLUMNS = ("scheme", "task", "released", "raw")
SUBMITTED: Mapping[Task, str] = {"encode": "encodings.npy", "reconstruct": "reconstructions.npy"}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SchemeAbout(_Model):
    """A scheme of a challenge.

    Args:
        name: Its folder.
        method: The method with its parameters; capitals stand for confidential ones.
        compare: How encodings are compared: number by number, or their numbers in rising order where the key draws an
            order for every row.
        with_key: Share of the task `encode` that the key itself gets right, by a second encoding. Below 1 where noise
            is drawn for every row.
    """

    name: str
    method: str
    compare: Literal["as they stand", "sorted"]
    with_key: float


class About(_Model):
    """The public facts of a challenge (`challenge.json`).

    Args:
        schema_version: 1.
        made, closes: Days (UTC). Full scores are given from the latter on.
        data: The data set that the people are drawn of; `public`: that the methods were fitted on.
        side: Pixels of a side.
        preset: The preset that sizes the methods.
        rows: People of each release. `known`: of those, pairs that are given in the task `known-pairs`.
        films: Films to be encoded.
        entries: Most entries that are scored before the end.
        commitment: SHA-256 of the file of answers.
        schemes: The schemes.
    """

    schema_version: Literal[1] = 1
    made: date
    closes: date
    data: str
    public: str
    side: int
    preset: str
    rows: int
    known: int
    films: int
    entries: int
    commitment: str = Field(pattern="^[0-9a-f]{64}$")
    schemes: tuple[SchemeAbout, ...]

    def asked(self, task: Task) -> int:
        """Rows of a task that are to be answered."""
        return {"known-pairs": self.rows - self.known, "encode": self.films}.get(task, self.rows)

    @property
    def cells(self) -> list[tuple[str, Task]]:
        """Every scheme's name with every task."""
        return [(scheme.name, task) for scheme in self.schemes for task in TASKS]

    @property
    def unlikely(self) -> float:
        """The significance level of one task, so that all together have `LEVEL`."""
        return (1 - LEVEL) / len(self.cells)


@dataclass(frozen=True)
class Order:
    """A challenge to be made.

    Args:
        methods: The methods, of this project.
        out: A new folder, to be published.
        sealed: A new folder, to be kept until the end.
        closes: The day (UTC) from which full scores are given.
        data: A generator of people that takes a secret.
        side, preset, rows, known, films, entries: As in `About`.
    """

    methods: Sequence[Configured[Method]]
    out: Path
    sealed: Path
    closes: date
    data: str
    side: int
    preset: str
    rows: int
    known: int
    films: int
    entries: int


@dataclass(frozen=True)
class Made:
    """A challenge that was written.

    Args:
        about: Its public facts.
        size: Bytes to download.
        digest: SHA-256 of the list of its hashes.
    """

    about: About
    size: int
    digest: str


@dataclass
class _Parts:
    """Files by name for everyone, and tensors of the answers."""

    files: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, torch.Tensor] = field(default_factory=dict)

    def array(self, name: str, values: torch.Tensor) -> None:
        held = io.BytesIO()
        np.save(held, values.numpy(), allow_pickle=False)
        self.files[name] = held.getvalue()


def make(
    order: Order, secret: Secret, report: Callable[[str, int, int], None] = lambda stage, done, total: None
) -> Made:
    """Write a challenge and its answers.

    Args:
        order: What is made.
        secret: Draws people, keys, and the order of rows.
        report: Told of each scheme.

    Raises:
        UsageError: A method is another author's or does not release a row for each image; the folders are there; the
            download has more than 20 MB.
    """
    _check(order)
    names = _names(order.methods)
    need = 3 * order.rows + order.films
    public, people = _public(order), _people(order, secret, need * len(names))
    parts, schemes = _Parts(), []
    for number, (name, method) in enumerate(zip(names, order.methods, strict=True)):
        report(f"release by {name}", number, len(names))
        own = people.take(torch.arange(number * need, (number + 1) * need))
        try:
            schemes.append(_scheme(order, name, method, public, own, secret.derive("scheme", name), parts))
        except NotApplicable as error:
            raise UsageError(f"{method.shown} does not apply to these films: {error}") from error
        _check_size(parts, ahead=len(names) - number - 1)
    parts.answers["secret"] = secret.tensor()
    sealed = save(parts.answers)
    about = About(
        made=datetime.now(UTC).date(), closes=order.closes, data=order.data, public=public.name, side=order.side,
        preset=order.preset, rows=order.rows, known=order.known, films=order.films, entries=order.entries,
        commitment=hashlib.sha256(sealed).hexdigest(), schemes=tuple(schemes),
    )  # fmt: skip
    written = about.model_dump_json(indent=2).encode() + b"\n"
    parts.files |= {ABOUT: written, "README.md": _rules(about).encode(), "example_entry.py": EXAMPLE.encode()}
    hashes = "".join(f"{hashlib.sha256(parts.files[name]).hexdigest()}  {name}\n" for name in sorted(parts.files))
    parts.files[SUMS] = hashes.encode()
    size = _check_size(parts)
    try:
        make_folder(order.sealed, mode=0o700)
        write_new(order.sealed / ANSWERS, sealed, mode=0o600)
        write_new(order.sealed / ABOUT, written, mode=0o600)
        for name, content in parts.files.items():
            make_folder((order.out / name).parent)
            write_new(order.out / name, content, mode=0o644)
    except BaseException:  # neither folder was there before
        for folder in (order.out, order.sealed):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return Made(about, size, hashlib.sha256(hashes.encode()).hexdigest())


def _rules(about: About) -> str:
    """The page with the rules."""
    tasks = "\n".join(
        f"| `{task}` | {words} | {about.asked(task)} | {1 / (about.films if task == 'encode' else about.rows):.1%} |"
        for task, words in TASKS.items()
    )
    schemes = "\n".join(
        f"| `{scheme.name}` | `{scheme.method}` | {scheme.compare} | {scheme.with_key:.0%} |"
        for scheme in about.schemes
    )
    spelled = [parse(scheme.method).parameters for scheme in about.schemes]
    given = "" if not any(value == name.upper() for each in spelled for name, value in each) else (
        "A word in capitals stands for the full path of your copy of the file whose SHA-256 follows it.\n\n"
    )  # fmt: skip
    days = f"Until {about.closes} (UTC), the first {about.entries} different entries get"
    early = f"{days} a band for each task" if about.entries else "Before the end no entry is scored"
    return f"""# Whose films are these?

Films of people whom a secret draws were released by {len(about.schemes)} methods, each under secret keys. The methods
are public; find the people. No patient's data are in here: the films are simulated (`{about.data}`, {about.side} x
{about.side} pixels, one film of each person), and no person or key stands in two releases.

## Tasks

| task | question | answers | right by chance |
| --- | --- | ---: | ---: |
{tasks}

| scheme | method (sizes: `{about.preset}`) | encodings are compared | right with the key itself |
| --- | --- | --- | ---: |
{schemes}

## Files

All arrays are read by `numpy.load`: films are 8-bit grey values (n, 1, {about.side}, {about.side}), released rows are
in half precision.

- `SCHEME/known-set/released.npy` and `raw.npy`: released rows, and the films of the same people in another order.
- `SCHEME/known-pairs/`: the same of other people; `known.csv` names {about.known} pairs.
- `SCHEME/unseen/released.npy`: rows for the tasks `encode` and `reconstruct`; `films.npy`: films of other people, to be
  encoded under the key of these rows.
- `SCHEME/{STATE}`, if a method learned something public, on `{about.public}` unless it was given weights. All may
  draw keys of it: `bench.exchange.challenge.scheme_of` reads it. Numbers that bfloat16 holds exactly are stored so.
- `example_entry.py` writes an entry that guesses, and needs numpy alone.

## An entry

A folder with any of these; what is left out counts as wrong.

- `{MATCHES}` with the columns `{",".join(COLUMNS)}`: for the tasks `known-set` and `known-pairs`, the row of `raw.npy`
  that shows the person of a row of `released.npy`, counted from 0.
- `SCHEME/{SUBMITTED["encode"]}`: an array like `released.npy`, a row for each of `films.npy`. An encoding is right if
  the key's encoding of that film is nearer to it (squared error) than those of all other films.
- `SCHEME/{SUBMITTED["reconstruct"]}`: films (n, 1, {about.side}, {about.side}), a row for each of `released.npy`. One
  is right if its correlation with the person's film is higher than with those of all other released people.

Rows of NaN are no answers.

## Scores

A score is the share of people found. It has a lower bound at a joint level of {LEVEL:.0%} over all tasks of all schemes
(Clopper and Pearson, after Bonferroni), and a band: *{CHANCE}* unless as many right answers have a probability below
{about.unlikely:.2g} for an entry that knows nothing, else *{ABOVE}*, *{BANDS[0.05]}*
or *{BANDS[0.2]}*, by the lower bound. 5 % and 20 % are the limits of moderate and bad privacy of the NeuraCrypt
challenge.

{early}. It counts a sixth of the rows, other ones for other answers, and none that count in the end.
From {about.closes} on, the sealed answers are published, and everyone can score every entry:

```sh
bench challenge score ENTRY --sealed ANSWERS --final
```

The file `{ANSWERS}` holds answers and keys. Its SHA-256 is `{about.commitment}`.

To practise, make a challenge of your own, with people and keys that you know:

{given}```sh
bench challenge make {" ".join(f"--method '{scheme.method}'" for scheme in about.schemes)} \\
  --dataset {about.data} --preset {about.preset} --size {about.side} \\
  --rows {about.rows} --known {about.known} --films {about.films} \\
  --out mine --sealed mine-sealed
```
"""


EXAMPLE = '''"""Write an entry that guesses: python example_entry.py CHALLENGE ENTRY"""

import csv
import json
import sys
from pathlib import Path

import numpy as np

challenge, entry = Path(sys.argv[1]), Path(sys.argv[2])
random = np.random.default_rng()
entry.mkdir()
with open(entry / "matches.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["scheme", "task", "released", "raw"])
    for scheme in json.loads((challenge / "challenge.json").read_text())["schemes"]:
        folder = challenge / scheme["name"]
        for task in ("known-set", "known-pairs"):
            raw = np.load(folder / task / "raw.npy")
            for row, guess in enumerate(random.permutation(len(raw))):
                table.writerow([scheme["name"], task, row, guess])
        released = np.load(folder / "unseen" / "released.npy").astype("float32")
        films = np.load(folder / "unseen" / "films.npy")
        (entry / scheme["name"]).mkdir()
        encoded = released[random.integers(len(released), size=len(films))]
        np.save(entry / scheme["name"] / "encodings.npy", encoded)
        made = films[random.integers(len(films), size=len(released))] / 255
        np.save(entry / scheme["name"] / "reconstructions.npy", made.astype("float32"))
'''


def _check(order: Order) -> None:
    for folder in (order.out, order.sealed):
        if folder.exists():
            raise UsageError(f"{shown(folder)} is there: expected a new folder")
    if order.out.resolve() in (order.sealed.resolve(), *order.sealed.resolve().parents):
        raise UsageError("the sealed folder would lie in the one to be published: give it another place")
    if not order.methods:
        raise UsageError("expected at least one --method, got none")
    for method in order.methods:
        if not method.ours:
            raise UsageError(f"{method.shown} is no method of this project: a challenge runs no code of other authors")
    if order.closes < (today := datetime.now(UTC).date()):
        raise UsageError(f"expected --closes from today ({today}, UTC) on, got {order.closes}")
    if not 0 < order.known < order.rows:
        raise UsageError(f"expected --known from 1 to {order.rows - 1} (fewer than --rows), got {order.known}")


def _check_size(parts: _Parts, *, ahead: int = 0) -> int:
    """The bytes to download.

    So many schemes are still `ahead`, each with arrays of the smallest scheme so far.
    """
    arrays: dict[str, int] = {}
    for name, content in parts.files.items():
        if name.endswith(".npy"):
            scheme = name.partition("/")[0]
            arrays[scheme] = arrays.get(scheme, 0) + len(content)
    size = sum(map(len, parts.files.values()))
    whole = size + ahead * min(arrays.values())
    if whole > MOST_BYTES:
        raise UsageError(
            f"expected at most {MOST_BYTES / 1e6:.0f} MB to download, got about {whole / 1e6:.1f} MB: take fewer "
            "methods, --rows or --films, or a smaller --size"
        )
    return size


def _names(methods: Sequence[Configured[Method]]) -> list[str]:
    names: list[str] = []
    for method in methods:
        alike = sum(other.name == method.name for other in methods[: len(names)])
        names.append(method.name if not alike else f"{method.name}-{alike + 1}")
    return names


def films_of(name: str, samples: NDArray[np.uint8]) -> Dataset:
    """8-bit films (n, 1, h, w) without labels, a person each."""
    count = len(samples)
    return Dataset(name, torch.from_numpy(samples).float() / 255, torch.zeros(count, 0), torch.arange(count), (),
                   exclusive=False, shareable=True)  # fmt: skip


def _public(order: Order) -> Dataset:
    name = configure("datasets", order.data, order.preset).plugin.public
    found = configure("datasets", name, order.preset).plugin.scan((), order.side)
    assert found.samples is not None
    return films_of(name, found.samples)


def _people(order: Order, secret: Secret, count: int) -> Dataset:
    """A film of each of `count` people, all drawn by the secret."""
    known = configure("datasets", order.data, order.preset).plugin
    if not known.secret_people:
        raise UsageError(f"{order.data} cannot draw people under a secret: expected a generator such as synth-cxr")
    options = "".join(f",{name}={value}" for name, value in known.secret_people.items())
    images, population = count, secret.derive("people")
    while True:
        source = configure("datasets", f"{order.data}[images={images}{options}]", order.preset).plugin.under(population)
        found = source.scan((), order.side)
        assert found.samples is not None
        assert found.subjects is not None
        first: dict[str, int] = {}
        for row, person in enumerate(found.subjects):
            first.setdefault(person, row)
        if len(first) > count:  # the last person may lack films
            order_of = secret.stream("people").permutation(count).numpy()
            return films_of(order.data, found.samples[list(first.values())[:count]][order_of])
        images = math.ceil(images * 1.1 * (count + 1) / len(first))


def _scheme(
    order: Order, name: str, method: Configured[Method], public: Dataset, people: Dataset, secret: Secret, parts: _Parts
) -> SchemeAbout:  # fmt: skip
    """Add a scheme's releases, three under a key each."""
    scheme = method.plugin.fit(public, derive(0, "challenge", name))
    if state := scheme.state():
        parts.files[f"{name}/{STATE}"] = save({key: _short(value).contiguous() for key, value in state.items()})
    cut = [people.take(torch.arange(part * order.rows, (part + 1) * order.rows)) for part in range(3)]
    films = people.take(torch.arange(3 * order.rows, len(people)))
    for task, rows in zip(("known-set", "known-pairs"), cut[:2], strict=True):
        released, links = _released(name, scheme, rows, secret.derive(task))
        raw = secret.stream(task, "raw").permutation(order.rows)
        answers = raw.argsort()[links]
        if task == "known-pairs":
            given = secret.stream(task, "given").permutation(order.rows)[: order.known].sort().values
            known = table_text(COLUMNS[2:], [(int(i), int(answers[i])) for i in given])
            parts.files[f"{name}/{task}/known.csv"] = known.encode()
            parts.answers[f"{name}/{task}/given"] = given
        parts.answers[f"{name}/{task}"] = answers
        parts.array(f"{name}/{task}/released.npy", released)
        parts.array(f"{name}/{task}/raw.npy", _bytes(rows.samples[raw]))
    blind = secret.derive("unseen")
    released, links = _released(name, scheme, cut[2], blind)
    parts.array(f"{name}/unseen/released.npy", released)
    parts.array(f"{name}/unseen/films.npy", _bytes(films.samples))
    parts.answers[f"{name}/reconstruct"] = _bytes(cut[2].samples)[links]
    key = scheme.sample_key(blind.derive("key"))
    parts.answers[f"{name}/encode"] = encodings = _half(name, key.release(films).samples)
    again = blind.stream("again").permutation(order.films)
    second = torch.empty_like(encodings)
    second[again] = _half(name, key.release(films.take(again)).samples)
    shares = {way: float((_nearest(second, encodings, way) == torch.arange(order.films)).double().mean())
              for way in ("as they stand", "sorted")}  # fmt: skip
    compare: Literal["as they stand", "sorted"] = (
        "sorted" if shares["sorted"] > shares["as they stand"] else "as they stand"
    )
    return SchemeAbout(name=name, method=method.shown, compare=compare, with_key=shares[compare])


def _released(name: str, scheme: Scheme, rows: Dataset, secret: Secret) -> tuple[torch.Tensor, torch.Tensor]:
    """Released rows in a secret order, and the raw row of each."""
    made = scheme.sample_key(secret.derive("key")).release(rows)
    each = torch.arange(len(rows))
    if made.links is None or not torch.equal(made.links, torch.stack((each, each), dim=1)):
        raise UsageError(f"{name} does not release a row for each image: there is nothing to match")
    samples = _half(name, made.samples)
    if len({row.tobytes() for row in samples.numpy()}) < len(rows):
        raise UsageError(f"{name} releases equal rows for several people: no answer could be right")
    order = secret.stream("order").permutation(len(rows))
    return samples[order], order


def _half(name: str, samples: torch.Tensor) -> torch.Tensor:
    """Released rows in half precision: the download must be small."""
    found = samples.half()
    if not found.isfinite().all():
        raise UsageError(f"{name} releases numbers beyond 65,504: expected numbers that half precision holds")
    return found


def _short(values: torch.Tensor) -> torch.Tensor:
    """The same numbers, in bfloat16 if it holds them all.

    Published weights are kept so.
    """
    short = values.bfloat16()
    return short if values.dtype == torch.float32 and torch.equal(short.float(), values) else values


def scheme_of(challenge: Path, scheme: SchemeAbout, preset: str) -> Scheme:
    """The fitted scheme of a challenge, from which everyone draws keys.

    Raises:
        UsageError: This version has no such method.
        ValueError: The file is of another one.
    """
    path = challenge / scheme.name / STATE
    state = load(read_plain(path, MOST_BYTES)) if path.exists() else {}
    whole = {name: values.float() if values.dtype == torch.bfloat16 else values for name, values in state.items()}
    return configure("methods", scheme.method, preset).plugin.load(whole)


def _bytes(films: torch.Tensor) -> torch.Tensor:
    return (films * 255).round().to(torch.uint8)


def _nearest(asked: torch.Tensor, among: torch.Tensor, compare: str) -> torch.Tensor:
    """(n,) int64: the nearest of `among` to each row.

    By squared error; -1 where none is nearest alone.
    """
    a, b = asked.double().flatten(1), among.double().flatten(1)
    if compare == "sorted":
        a, b = a.sort(dim=1).values, b.sort(dim=1).values
    return _alone(-torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"))


def _alone(scores: torch.Tensor) -> torch.Tensor:
    """The place of a row's highest score, or -1.

    -1 where it is not alone, or no number.
    """
    best, where = scores.nan_to_num(-math.inf, -math.inf, -math.inf).max(dim=1)
    alone = (scores == best[:, None]).sum(dim=1) == 1
    return torch.where(alone & best.isfinite(), where, -1)


@dataclass(frozen=True)
class Scored:
    """A task of a scheme, scored.

    Args:
        scheme, task: Which.
        answered: Rows with an answer, of `asked`.
        band: In words, from a lower bound at a joint level of 95 % over all tasks of the challenge.
        rows, right: Rows that counted, and how many of them are right. None before the end.
        low: Lower bound on the share of people that is found so. None before the end.
        p: Upper bound on the probability that an entry that knows nothing has as many right. None before the end.
        similarity: Mean SSIM of reconstructions, and that of the mean film. None for other tasks and before the end.
    """

    scheme: str
    task: Task
    answered: int
    asked: int
    band: str
    rows: int | None = None
    right: int | None = None
    low: float | None = None
    p: float | None = None
    similarity: tuple[float, float] | None = None


@dataclass(frozen=True)
class Score:
    """An entry's scores.

    Args:
        about: The challenge.
        digest: SHA-256 of the entry.
        tasks: Its scores.
        left: Entries that can still be scored before the end; None after it.
    """

    about: About
    digest: str
    tasks: tuple[Scored, ...]
    left: int | None


@dataclass(frozen=True)
class Entry:
    """Answers of an entry, -1 or NaN where there are none.

    Args:
        matches: By scheme and task, the raw film (n,) int64 of each released row.
        arrays: By scheme and task, encodings or reconstructions, float32.
        digest: SHA-256 of all of them.
    """

    matches: Mapping[tuple[str, Task], torch.Tensor]
    arrays: Mapping[tuple[str, Task], torch.Tensor]
    digest: str

    @classmethod
    def read(cls, folder: Path, about: About, shapes: Mapping[tuple[str, Task], tuple[int, ...]]) -> Entry:
        """The entry in a folder.

        Raises:
            UsageError: There is none, a table or an array is not as asked, or a file is of no scheme.
        """
        if not folder.is_dir():
            raise UsageError(
                f"{shown(folder)} is no folder: expected one with {MATCHES} or SCHEME/{SUBMITTED['encode']}"
            )
        known = {f"{scheme}/{SUBMITTED[task]}": (scheme, task) for scheme, task in about.cells if task in SUBMITTED}
        found = sorted(
            str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()
        )
        if links := [name for name in found if (folder / name).is_symlink()]:
            raise UsageError(f"{shown(folder / links[0])} is a link: expected a file")
        if strange := [name for name in found if name not in (MATCHES, *known)]:
            raise UsageError(
                f"{shown(folder)}: expected {MATCHES}, {', '.join(list(known)[:2])}, ..., got also {shown(strange[0])}"
            )
        if not found:
            raise UsageError(f"{shown(folder)} is empty: expected {MATCHES} or SCHEME/{SUBMITTED['encode']}")
        matches = _matches(folder / MATCHES, about) if MATCHES in found else {}
        arrays = {known[name]: _array(folder / name, shapes[known[name]]) for name in found if name != MATCHES}
        digest = hashlib.sha256()
        for cell, tensor in sorted((*matches.items(), *arrays.items())):
            digest.update(f"{'/'.join(cell)} {_digest(tensor)}\n".encode())
        return cls(matches, arrays, digest.hexdigest())

    def digest_of(self, cell: tuple[str, Task]) -> str:
        """SHA-256 of the answers to one task; "" if there are none."""
        found = self.matches.get(cell, self.arrays.get(cell))
        return "" if found is None else _digest(found)


def _digest(answers: torch.Tensor) -> str:
    return hashlib.sha256(json.dumps(list(answers.shape)).encode() + answers.numpy().tobytes()).hexdigest()


def _matches(path: Path, about: About) -> dict[tuple[str, Task], torch.Tensor]:
    cells: dict[tuple[str, str], tuple[str, Task]] = {cell: cell for cell in about.cells if cell[1] not in SUBMITTED}
    found: dict[tuple[str, Task], torch.Tensor] = {}
    table = io.StringIO(read_plain(path).decode("utf-8-sig", errors="replace"), newline="")
    reader = csv.reader(table)
    try:
        head = tuple(next(reader, ()))
        if head != COLUMNS:
            got = shown(",".join(head)[:200]) or "none"
            raise UsageError(f"{shown(path)}: expected the columns {','.join(COLUMNS)}, got {got}")
        for row in filter(None, reader):
            _enter_match(row, cells, about.rows, found, where=f"{shown(path)}, line {reader.line_num}")
    except csv.Error as error:
        raise UsageError(
            f"{shown(path)}, line {reader.line_num}: no table of comma-separated values: {error}"
        ) from None
    return found


def _enter_match(
    row: Sequence[str], cells: Mapping[tuple[str, str], tuple[str, Task]], count: int,
    found: dict[tuple[str, Task], torch.Tensor], *, where: str,
) -> None:  # fmt: skip
    """Enter a line's answer; UsageError says where it is wrong."""
    if len(row) != len(COLUMNS):
        raise UsageError(f"{where}: expected {len(COLUMNS)} cells, {','.join(COLUMNS)}, got {len(row)}")
    cell = cells.get((row[0], row[1]))
    if cell is None:
        raise UsageError(
            f"{where}: expected a scheme and a task of this challenge, such as {','.join(next(iter(cells)))}, got "
            f"{shown(row[0][:200])},{shown(row[1][:200])}"
        )
    released, raw = _number(row[2]), _number(row[3])
    if released is None or raw is None or max(released, raw) >= count:
        raise UsageError(
            f"{where}: expected released and raw from 0 to {count - 1}, got {shown(row[2][:200])} and "
            f"{shown(row[3][:200])}"
        )
    named = found.setdefault(cell, torch.full((count,), -1))
    if named[released] >= 0:
        raise UsageError(f"{where}: a second answer for released row {released} of {shown(cell)}")
    named[released] = raw


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _array(path: Path, shape: tuple[int, ...]) -> torch.Tensor:
    content = read_plain(path, MOST_ENTRY)
    try:
        values = read_array(io.BytesIO(content), len(content))
    except (DataError, ValueError, EOFError) as error:
        got = ", got an archive" if zipfile.is_zipfile(io.BytesIO(content)) else ""
        raise UsageError(f"{shown(path)}: expected an array of numbers as numpy.save writes it{got}") from error
    if values.shape != shape or values.dtype.kind not in "fiu":
        raise UsageError(f"{shown(path)}: expected numbers of shape {shape}, got {values.dtype} {values.shape}")
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, and are no answer
        return torch.from_numpy(values.astype(np.float32))


def score(entry: Path, sealed: Path, *, final: bool = False, today: date | None = None) -> Score:
    """Score an entry.

    Before the end, it gets bands from a part of the rows, and the sealed folder keeps its hash. `final` ends the
    challenge: all other rows count, with numbers.

    Raises:
        UsageError: The entry is not as asked, the answers are others than those that were committed to, the end is not
            reached, or no more entries are scored before it.
    """
    about = read_about(sealed)
    content = read_plain(sealed / ANSWERS, MOST_ENTRY)
    if hashlib.sha256(content).hexdigest() != about.commitment:
        raise UsageError(
            f"{shown(sealed / ANSWERS)} has another SHA-256 than the challenge committed to "
            f"({about.commitment[:12]}...): expected the answers as `bench challenge make` wrote them"
        )
    answers = load(content)
    shapes = {cell: tuple(answers["/".join(cell)].shape) for cell in about.cells}
    given = Entry.read(entry, about, shapes)
    secret = Secret.load(answers["secret"])
    if final:
        if (today or datetime.now(UTC).date()) < about.closes:
            raise UsageError(f"full scores are given from {about.closes} on: leave --final out to get bands")
        write_atomically(sealed / ENDED, b"", mode=0o600)
    elif (sealed / ENDED).exists():
        raise UsageError("this challenge has ended, and its rows are known: expected --final")
    left = None if final else _enter(sealed, about, given.digest)
    return Score(about, given.digest, tuple(_scored(about, answers, given, secret, final=final)), left)


def read_about(folder: Path) -> About:
    """A challenge as its folder, public or sealed, tells it. Raises UsageError."""
    try:
        return About.model_validate_json(read_plain(folder / ABOUT))
    except FileNotFoundError:
        raise UsageError(
            f"{shown(folder)} holds no {ABOUT}: expected the sealed folder of `bench challenge make`"
        ) from None
    except ValidationError as error:
        raise UsageError(f"{shown(folder / ABOUT)}: {expected(error.errors()[0])}") from error


def _enter(sealed: Path, about: About, digest: str) -> int:
    """Count an entry; how many are left."""
    path = sealed / ENTRIES
    with (sealed / ABOUT).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = read_plain(path).decode().splitlines() if path.exists() else []
        known = {json.loads(line)["sha256"] for line in lines}
        if digest not in known:
            if len(known) >= about.entries:
                raise UsageError(f"{about.entries} entries were scored, as many as the challenge scores before its end")
            lines.append(json.dumps({"sha256": digest, "at": datetime.now(UTC).isoformat(timespec="seconds")}))
            write_atomically(path, ("\n".join(lines) + "\n").encode(), mode=0o600)
            known.add(digest)
    return about.entries - len(known)


def _scored(
    about: About, answers: Mapping[str, torch.Tensor], entry: Entry, secret: Secret, *, final: bool
) -> Iterator[Scored]:  # fmt: skip
    compare = {scheme.name: scheme.compare for scheme in about.schemes}
    for name, task in about.cells:
        asked = about.asked(task)
        named, answered = _named(entry, (name, task), answers[f"{name}/{task}"], compare[name])
        truth = answers[f"{name}/{task}"] if task not in SUBMITTED else torch.arange(len(named))
        free = torch.ones(len(named), dtype=torch.bool)
        if task == "known-pairs":
            free[answers[f"{name}/{task}/given"]] = False
        rows = free.nonzero()[:, 0]
        early = rows[secret.stream("early", name, task).permutation(asked)[: asked // 3]]
        if final:
            counted = rows[~torch.isin(rows, early)]
            among = len(counted)
        else:
            mixed = secret.stream("entry", entry.digest_of((name, task)), name, task).permutation(len(early))
            counted, among = early[mixed[: -(-len(early) // 2)]], asked
        right = int((named[counted] == truth[counted]).sum())
        p = by_luck(right, len(counted), among)
        low = float(lower_proportion(right, len(counted), about.unlikely))
        done = int((answered & free).sum())
        band = CHANCE if p >= about.unlikely else next((words for edge, words in BANDS.items() if low > edge), ABOVE)
        if not final:
            yield Scored(name, task, done, asked, band if done else "")
            continue
        alike = None
        if task == "reconstruct" and done:
            alike = _similarity(entry.arrays[name, task][answered], answers[f"{name}/{task}"], answered)
        yield Scored(name, task, done, asked, band if done else "", len(counted), right, low, p, alike)


def _named(
    entry: Entry, cell: tuple[str, Task], truth: torch.Tensor, compare: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """The row that an entry names for each, and its answers.

    -1 stands for none.
    """
    named = torch.full((len(truth),), -1)
    if cell[1] not in SUBMITTED:
        named = entry.matches.get(cell, named)
        return named, named >= 0
    values = entry.arrays.get(cell)
    if values is None:
        return named, named >= 0
    answered = values.flatten(1).isfinite().all(dim=1)
    if cell[1] == "encode":
        named[answered] = _nearest(values[answered], truth, compare)
    else:
        named[answered] = _alone(_standardised(values[answered]) @ _standardised(truth).T)
    return named, answered


def _standardised(films: torch.Tensor) -> torch.Tensor:
    """Rows of mean 0 and length 1: products are correlations.

    NaN for rows without contrast.
    """
    rows = films.double().flatten(1)
    rows = rows - rows.mean(dim=1, keepdim=True)
    length = rows.norm(dim=1, keepdim=True)
    return rows / torch.where(length > 0, length, math.nan)


def _similarity(made: torch.Tensor, truth: torch.Tensor, answered: torch.Tensor) -> tuple[float, float]:
    films = truth.double() / 255
    mean = films.mean(dim=0, keepdim=True).expand_as(films)
    return float(ssim(made.double(), films[answered]).mean()), float(ssim(mean, films).mean())


def by_luck(right: int, rows: int, among: int) -> float:
    """An upper bound on the probability of `right` hits by luck.

    An entry knows nothing. The right answers of `rows` rows are distinct, and in random order among `among` ones. Then
    the expected number of sets of r hits is at most C(rows, r) (among - r)! / among!, which bounds the probability of r
    hits (Markov), whether an entry names everybody once or one film for all rows. For rows = among it is 1 / r!.

    >>> by_luck(0, 10, 10), by_luck(1, 10, 10), round(by_luck(6, 100, 100), 5)
    (1.0, 1.0, 0.00139)
    """
    if right == 0:
        return 1.0
    sets = math.lgamma(rows + 1) - math.lgamma(right + 1) - math.lgamma(rows - right + 1)
    return min(1.0, math.exp(sets + math.lgamma(among - right + 1) - math.lgamma(among + 1)))
