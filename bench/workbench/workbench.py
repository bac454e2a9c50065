"""A cell at work: split data, scheme, sealed releases, through the store."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar, cast

import torch
from pydantic import JsonValue

from bench.checkpoint import save_checkpoints, training_seconds
from bench.contract.eve_profile import KnownPairs
from bench.contract.preset import Preset
from bench.contract.seal import ContractError, Sealed, check, fingerprint, seal
from bench.data.candidates import with_known
from bench.data.recorded_rows import RecordedRows
from bench.data.scorable import balance, balanced_rows, of_equal_classes
from bench.data.splits import Candidates
from bench.determinism import exact
from bench.features.feature_space import Space
from bench.isolation import (
    CallShape,
    CellRows,
    OutsideError,
    RemoteAttacker,
    RemoteKey,
    RemoteMethod,
    RemoteScheme,
    Simulations,
    tenant,
)
from bench.plugins.code_digest import plugin_digest
from bench.plugins.configured import Configured, to_fit
from bench.plugins.profile_spec import read_profile
from bench.plugins.spec import UsageError, parameters, told_parameters
from bench.plugins.third_party import StandIn, is_outside
from bench.progress import stage
from bench.randomness import Secret
from bench.results.records import DatasetRecord
from bench.results.results import Results
from bench.results.store import Artefact, Inputs, Store
from bench.rows.grouping import labelled, persons_of
from bench.rows.row_sets import renumbered
from bench.sandbox import Isolation
from bench.seeds import derive
from bench.types import (
    Attacker,
    Attributes,
    Dataset,
    Key,
    Method,
    NotApplicable,
    Profile,
    Release,
    Scheme,
    State,
    rows_at,
)
from bench.workbench.cell import Cell
from bench.workbench.choice import given_scheme
from bench.workbench.inputs import cell_secret, fit_inputs, release_inputs
from bench.workbench.open_data import open_data
from bench.workbench.place import Place

T = TypeVar("T")
AnyScheme = TypeVar("AnyScheme", bound=Scheme)
FEWEST_SIMULATIONS = 16


def drop_releases(cell: Cell, data: DatasetRecord, results: Results, keys: int, *, apart: bool) -> None:
    """Delete a cell's stored releases under the first `keys` keys.

    They can be made again from the scheme.
    """
    commitment = cell_secret(results, cell, data).commitment()
    cells = [each for each in (cell, cell.earlier) if each is not None]
    for number in range(2 * keys if read_profile(cell.choice.eve).relinks else keys):
        for drawn in (False, True):
            for made in cells:
                results.store.drop("releases", release_inputs(made, data, number, commitment, apart=apart, drawn=drawn))
    if is_outside("methods", cell.method.spec):
        for number in range(simulated_keys(cell.choice.sizes)):
            results.store.drop("releases", release_inputs(cell, data, number, commitment, apart=apart, simulated=True))


def is_reference(method: Configured[Method]) -> bool:
    """True for a method that is there to check attacks.

    A release, or a scheme, that a user names is none of its own.
    """
    return vars(type(method.plugin)).get("role") is not None


def simulated_keys(preset: Preset) -> int:
    """Keys of simulations in the owner's form."""
    return max(FEWEST_SIMULATIONS, 4 * preset.keys)


def _apart(cell: Cell, place: Place, isolation: Isolation, secret: Secret) -> Method:
    """The cell's method, in another process if it is isolated."""
    if isolation == "none":
        return cell.method.plugin
    rooms = tenant(
        cell.method, device=cell.device, sandbox=isolation == "sandbox", folder=place.results.rooms, memory=place.memory
    )
    plugin = cell.method.plugin
    outside = is_outside("methods", cell.method.spec)
    return RemoteMethod(plugin, rooms, CallShape.of(plugin, secret) if outside else None)


@dataclass(frozen=True, eq=False)
class Workbench:
    """One cell ready for its evaluators, all tensors on the cell's device.

    `finding` names the finding whose balanced rows `private` holds; None where it holds the whole private set. `space`
    is that of `Choice.scored_in`; None without one. `natural` holds the labels of the whole private set before a
    surplus was withheld; None where none was. `run_secret` is the cell's own, from which all that Eve must not know is
    derived. `attributes` holds, on the CPU, what is known of the rows of `public`, `private`, `control` and `test`,
    under these names; it is empty where nothing is known. No data set carries it, so that no method and no attack is
    given it.
    `withheld` says what became of labels where the method asks for equal classes; empty where nothing did.
    `candidates` are the raw images that Eve holds; None if she holds the private rows themselves. `places` (n,) int64
    on the CPU are the private rows' numbers in the prepared data set; empty if unknown. `recorded` are their releases
    if another tool made them; None if the method's keys do. `judged` are releases that the method made elsewhere, and
    that stand in the place of those under its first keys; None for none.
    """

    cell: Cell
    preset: Preset
    method: Method
    public: Dataset
    private: Dataset
    control: Dataset
    test: Dataset
    record: DatasetRecord
    store: Store
    run_secret: Secret
    finding: str | None = None
    space: Space | None = None
    natural: torch.Tensor | None = None
    attributes: Mapping[str, Attributes] = field(default_factory=dict)
    withheld: str = ""
    candidates: Candidates | None = None
    places: torch.Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    recorded: RecordedRows | None = None
    judged: RecordedRows | None = None

    @classmethod
    def open(cls, cell: Cell, place: Place, isolation: Isolation = "none") -> Self:
        """Load the cell's needs, and prepare its data. `close` it afterwards."""
        device = exact(cell.device)
        splits, record, space = open_data(cell.choice, place, device)
        secret = cell_secret(place.results, cell, record)
        withheld = ""
        if cell.method.plugin.equal_classes and cell.choice.balanced:
            splits, withheld = of_equal_classes(splits, derive(cell.choice.seed, "data"))
        bench = cls(
            cell=cell, preset=cell.choice.sizes, method=_apart(cell, place, isolation, secret),
            public=splits.public.to(device), private=splits.private.to(device),
            control=splits.control.to(device), test=splits.test.to(device), record=record,
            store=replace(place.results.store, budget=place.budget),
            run_secret=secret, space=space,
            natural=None if splits.natural is None else splits.natural.to(device),
            attributes=splits.attributes, withheld=withheld,
            candidates=None
            if splits.candidates is None
            else replace(splits.candidates, rows=splits.candidates.rows.to(device)),
            places=torch.from_numpy(splits.rows["private"]),
            recorded=splits.recorded if cell.method.plugin.releases is not None else None,
            judged=splits.recorded if cell.choice.this_release and not is_reference(cell.method) else None,
        )  # fmt: skip
        if not isinstance(bench.eve, KnownPairs):
            return bench
        # A method that could tell whom Eve knows would treat these people in another way.
        order = bench.secret("known people").stream().permutation(int(persons_of(bench.private).max()) + 1)
        return replace(bench, candidates=with_known(bench.private, bench.attributes.get("private"), bench.eve, order))

    @property
    def eve(self) -> Profile:
        """The profile that says what Eve holds."""
        return read_profile(self.cell.choice.eve)

    @property
    def held(self) -> Candidates:
        """Eve's raw images, and which of them are in the release."""
        if self.candidates is not None:
            return self.candidates
        every = torch.arange(len(self.private))
        return Candidates(self.private, torch.stack((every, every), dim=1), self.attributes.get("private"))

    @property
    def public_rows(self) -> str:
        """Eve's knowledge of public rows, for the record."""
        return f"{len(self.public)} rows of {self.record.public}, with labels" if len(self.public) else "none"

    def require_public(self, what: str) -> None:
        """Raise NotApplicable without public rows; `what` names their use."""
        if not len(self.public):
            raise NotApplicable(f"{what}, and there are no public rows (--public none)")

    def require_queries(self, key: Key) -> None:
        """Raise NotApplicable if the key encodes no new rows."""
        own = key.own("query") if isinstance(key, RemoteKey) else ["query"] * (type(key).query is not Key.query)
        if "query" not in own:
            raise NotApplicable(
                f"an oracle answers by Key.query, and {self.method.name} has none of its own: new images reach Bob as "
                f"they are"
            )
        if self.method.uses_labels:
            raise NotApplicable(
                f"released rows of {self.method.name} depend on their labels, and a query has none to be encoded by"
            )

    @property
    def apart(self) -> bool:
        """If the method runs in another process."""
        return isinstance(self.method, RemoteMethod)

    @property
    def outside(self) -> bool:
        """If the method is another author's, whose calls all have one form."""
        return isinstance(self.method, RemoteMethod) and self.method.shape is not None

    @property
    def process(self) -> int:
        """The number of the process in which the method works."""
        return self.method.room().process if isinstance(self.method, RemoteMethod) else os.getpid()

    @contextmanager
    def earlier_bench(self) -> Iterator[Workbench]:
        """The cell whose release Eve holds, on the same rows and secret."""
        cell = self.cell.earlier
        if cell is None:
            yield self
            return
        method: Method = cell.method.plugin
        if isinstance(self.method, RemoteMethod):
            held = self.method.tenant
            method = RemoteMethod(
                method,
                tenant(cell.method, device=cell.device, sandbox=held.sandbox, folder=held.folder, memory=held.memory),
            )
        bench = replace(self, cell=cell, method=method)
        try:
            yield bench
        finally:
            bench.close()

    def close(self) -> None:
        """End the method's process, if it has one."""
        if isinstance(self.method, RemoteMethod):
            self.method.close()

    @property
    def device(self) -> torch.device:
        """The device all tensors of this cell are on."""
        return torch.device(self.cell.device)

    def seed(self, *names: str | int) -> int:
        """A public seed of this cell by name; Eve may know it."""
        return derive(self.cell.choice.seed, *names)

    def secret(self, *names: str | int) -> Secret:
        """A secret of this cell by name, which Eve must not know."""
        choice = (self.cell.choice.seed, self.record.fingerprint, self.record.public_fingerprint)
        plugin = self.cell.method.plugin if self.apart else self.method
        method = repr((plugin.name, sorted(told_parameters(plugin).items())))
        if isinstance(plugin, StandIn):  # it chose its name: keys of another author's method are none of its own
            method = repr((self.cell.method.origin, str(self.cell.method), plugin_digest(plugin)))
        return self.run_secret.derive(*choice, method, self.finding or "", *names)

    @property
    def trained(self) -> int:
        """Gradient steps of the method's fit: parameter `steps`, else 0."""
        steps = parameters(self.cell.method.plugin).get("steps")
        return steps if isinstance(steps, int) and not isinstance(steps, bool) else 0

    def scheme(self) -> Scheme:
        """The method fitted on the public data, from the store or fresh."""
        return self.fitted()[0]

    def fitted(self) -> tuple[Scheme, float]:
        """The scheme, and the wall seconds of its fit over all parts."""
        stage("fit")
        self.check_people()
        if self.cell.choice.scheme is not None and not is_reference(self.cell.method):
            return self.loaded(given_scheme(self.cell.choice.scheme)), 0.0
        inputs = fit_inputs(self.cell, self.record, apart=self.apart)

        def fit() -> Artefact:
            training = self.store.training("schemes", inputs)
            start = time.perf_counter() - training_seconds(training)
            method = self.method if self.apart else to_fit(self.method)
            with save_checkpoints(training):
                fitted = self.untouched(method.name, lambda: method.fit(self.public, self.seed("fit")))
            notes: dict[str, JsonValue] = {"seconds": time.perf_counter() - start}
            if isinstance(fitted, RemoteScheme):
                notes["own"] = list(fitted.own())
            return Artefact(fitted.state(), notes)

        artefact = self.store.ensure("schemes", inputs, fit)
        if isinstance(self.method, RemoteMethod):
            self.method.own = cast("list[str] | None", artefact.notes.get("own"))
        scheme = self.method.load({name: tensor.to(self.device) for name, tensor in artefact.tensors.items()})
        return scheme, float(cast(float, artefact.notes["seconds"]))

    def check_people(self) -> None:
        """Raise NotApplicable if the method needs people and none are named."""
        if self.method.needs_subjects and self.private.subjects is None:
            raise NotApplicable(
                f"{self.method.name} counts people, and those of {self.private.name} are not known: name them in a "
                "column `subject` of its table, or choose parameters that count images"
            )

    def loaded(self, given: State) -> Scheme:
        """The scheme of a file that a user named.

        Raises:
            UsageError: It is none of this method.
        """
        if isinstance(self.method, RemoteMethod):
            self.method.own = None
        try:
            scheme = self.method.load({name: tensor.to(self.device) for name, tensor in given.items()})
            scheme.claim()  # in a room a scheme is read when it is first asked
        except (KeyError, RuntimeError, TypeError, ValueError, IndexError, OutsideError) as error:
            raise UsageError(
                f"--scheme holds no scheme of {self.cell.method.shown} for rows of shape {self.record.shape}: give the "
                f"scheme.safetensors of a release by the same method and parameters ({type(error).__name__})"
            ) from error
        return scheme

    def for_eve(self, scheme: AnyScheme, candidates: Dataset | None = None) -> AnyScheme:
        """The scheme as Eve knows it.

        Her calls to another author's method are completed to the owner's number of rows: by private rows, or by
        `candidates` if she must find out the members among those.
        """
        shape = self.method.shape if isinstance(self.method, RemoteMethod) else None
        if shape is None or not isinstance(scheme, RemoteScheme):
            return scheme
        parts = {"control": self.control, "test": self.test, "public": self.public}
        others = [part if name == "control" else self.as_owned(part, name) for name, part in parts.items()]
        owned = self.private if candidates is None else candidates
        return replace(scheme, cell=CellRows(owned, others, shape.secret, len(self.private), self.preset.keys))

    def in_owners_form(self, scheme: Scheme) -> Scheme:
        """The scheme for Eve, whose releases the judge makes as the owner's.

        They are of the private rows, under `simulated_keys` fresh keys, in processes that release as often as hers.
        """
        assert isinstance(scheme, RemoteScheme)
        assert isinstance(self.method, RemoteMethod)
        assert self.method.shape is not None
        count, keys, made = simulated_keys(self.preset), self.preset.keys, list[Release]()
        for start in range(0, count, keys):
            with closing(self.method.again()) as method:
                owner = method.load(scheme.state())
                some = [self._simulated(owner, number) for number in range(start, min(count, start + keys))]
            made += some if self.finding is not None else []  # the others are stored
        release = made.__getitem__ if made else partial(self._simulated, scheme)
        return replace(scheme, simulations=Simulations(self.private, self.method.shape, count, release))

    def _simulated(self, scheme: Scheme, number: int) -> Release:
        """The private rows released under a key of a simulation, with links."""
        sealed = self.sealed(scheme, number, simulated=True)
        return replace(sealed.release, links=sealed.links, primary=sealed.primary)

    def simulates(self, attacker: Attacker) -> bool:
        """True if the attacker has asked another author's method for releases."""
        return isinstance(attacker, RemoteAttacker) and attacker.asked

    def earlier(self, scheme: Scheme, number: int) -> Dataset:
        """The rows of another release, in the order of `held`.

        Row i was made of raw row i. The key is none of those that are scored.

        Raises:
            NotApplicable: A raw row stands in no row of that release.
        """
        sealed, rows = self.sealed(scheme, self.preset.keys + number), self.held.rows
        links = sealed.links
        if links is None:
            raise NotApplicable(f"two releases are linked row by row, and {self.method.name} links no row to a raw one")
        links = links.cpu() if sealed.primary is None else links[sealed.primary].cpu()
        place = torch.full((len(rows),), len(sealed.release)).scatter_reduce(0, links[:, 0], links[:, 1], "amin")
        if bool((place == len(sealed.release)).any()):
            raise NotApplicable(
                f"two releases are linked row by row, and {self.method.name} releases no row of some raw rows"
            )
        samples = rows_at(sealed.release.samples, place.to(sealed.release.samples.device))
        return replace(rows, samples=samples, labels=None)

    def completing(self, key: Key) -> Key:
        """The key with its calls completed as Eve's are."""
        return replace(key, scheme=self.for_eve(key.scheme)) if isinstance(key, RemoteKey) else key

    def findings_apart(self) -> list[Self]:
        """This cell cut to one finding's labelled, balanced rows, in turn.

        The findings with most rows come first, at most `preset.label_findings` of them. What is left is what a data
        owner publishes for that finding (Syfer, section 5).
        """
        whole = self.private
        if whole.labels is None or not whole.findings:
            return []
        if whole.exclusive:
            groups = {"classes": list(range(len(whole.findings)))}
        else:
            groups = {name: [k] for k, name in enumerate(whole.findings)}
        found = []
        for name, columns in groups.items():
            labels = whole.labels[:, columns]
            rows = balanced_rows(labels, self.seed("task", name))
            if len(rows):
                findings = tuple(whole.findings[k] for k in columns)
                part = replace(whole.take(rows), labels=labels[rows], findings=findings)
                told = {
                    kind: each.take(rows.cpu()) if kind == "private" else each for kind, each in self.attributes.items()
                }
                eves = self._held_apart(rows, columns, findings)
                places = self.places[rows.cpu()] if len(self.places) else self.places
                found.append(replace(self, private=part, finding=name, attributes=told, candidates=eves, places=places))
        return sorted(found, key=lambda part: -len(part.private))[: self.preset.label_findings]

    def _held_apart(self, rows: torch.Tensor, columns: list[int], findings: tuple[str, ...]) -> Candidates | None:
        """Eve's labelled images, with the private rows cut to `rows`."""
        if self.candidates is None or self.candidates.rows.labels is None:
            return self.candidates
        labels = self.candidates.rows.labels[:, columns]
        kept = labelled(labels)
        part = replace(self.candidates.rows.take(kept), labels=labels[kept], findings=findings)
        places = [torch.full((size,), -1) for size in (len(labels), len(self.private))]
        for place, stay in zip(places, (kept.cpu(), rows.cpu()), strict=True):
            place[stay] = torch.arange(len(stay))
        pairs = renumbered(self.candidates.pairs, raw=places[0], released=places[1])
        told, known = self.candidates.attributes, self.candidates.known
        if known is not None:
            known = places[1][known]
            known = known[known >= 0]
        return Candidates(part, pairs[(pairs >= 0).all(dim=1)], None if told is None else told.take(kept.cpu()), known)

    def key(self, scheme: Scheme, number: int) -> Key:
        """The data owner's key of that number, for this method and parameters.

        Under one secret, two amounts of noise would be multiples of each other, and cancel between their releases.

        Raises:
            NotApplicable: The release under it was made elsewhere, and its key is not here.
        """
        if self._made_elsewhere(number, whole=True) is not None and self.judged is not None:
            raise NotApplicable("the key of the judged release is with its owner, and encodes nothing here")
        return scheme.sample_key(self.secret("key", number))

    def sealed(self, scheme: Scheme, number: int, drawn: Dataset | None = None, *, simulated: bool = False) -> Sealed:
        """The private rows released under that key, checked and sealed.

        `drawn` are rows in their place, always the same for that number, released under a key of their own. Keys of
        `simulated` releases are none of the owner's.
        """
        stage("release")
        rows, name = (self.private, "simulated " if simulated else "") if drawn is None else (drawn, "drawn ")

        def make() -> Artefact:
            start = time.perf_counter()
            if (elsewhere := self._made_elsewhere(number, whole=drawn is None and not simulated)) is not None:
                release = self._recorded_release(elsewhere, scheme, number)
            else:
                key = scheme.sample_key(self.secret(f"{name}key", number))
                release = self.untouched(self.method.name, lambda: key.release(rows))
            check(release, rows)
            done = seal(release, self.secret(f"{name}seal", number))
            generator = done.release.generator
            published = {} if generator is None else generator.state()
            tensors = {
                "samples": done.release.samples,
                "labels": done.release.labels,
                "links": done.links,
                "primary": done.primary,
                **{f"generator.{name}": tensor for name, tensor in published.items()},
            }
            present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
            return Artefact(present, {"seconds": time.perf_counter() - start})

        if self.finding is None:
            artefact = self.store.ensure(
                "releases",
                release_inputs(
                    self.cell,
                    self.record,
                    number,
                    self.run_secret.commitment(),
                    apart=self.apart,
                    drawn=drawn is not None,
                    simulated=simulated,
                ),
                make,
                copies=max(1, (simulated_keys(self.preset) if simulated else self.preset.keys) - number),
            )
        else:
            artefact = make()  # used once
        found = {name: tensor.to(self.device) for name, tensor in artefact.tensors.items()}
        published = {
            name.removeprefix("generator."): tensor for name, tensor in found.items() if name.startswith("generator.")
        }
        generator = scheme.load_generator(published) if published else None
        release = Release(found["samples"], found.get("labels"), None, generator=generator)
        return Sealed(release, found.get("links"), found.get("primary"))

    def _made_elsewhere(self, number: int, *, whole: bool) -> RecordedRows | None:
        """The folder with a key's release; None if the key makes it."""
        if self.judged is not None and whole and number < len(self.judged.releases):
            return self.judged
        return self.recorded

    def _recorded_release(self, recorded: RecordedRows, scheme: Scheme, number: int) -> Release:
        """A release that another tool made of the private rows."""
        release = recorded.release(number, self.places.numpy(), self.private)
        pool = recorded.pool(number, self.private)
        return release if pool is None else replace(release, generator=scheme.load_generator(pool))

    def as_owned(self, data: Dataset, *names: str | int) -> Dataset:
        """`data` with balanced labels, if those of this cell are."""
        if not self.cell.choice.balanced or data.labels is None:
            return data
        labels = balance(data.labels.cpu(), self.seed("as owned", *names), exclusive=data.exclusive)
        return replace(data, labels=labels.to(data.labels.device))

    def vectors(self, samples: torch.Tensor) -> torch.Tensor:
        """Rows (n, ...) as vectors (n, d) float32.

        Images are read by the extractor of `Choice.scored_in`; without one, they are flattened.

        Raises:
            NotApplicable: Released rows of another shape than the images that the extractor reads.
        """
        return samples.flatten(1) if self.space is None else torch.cat(list(self.space.read(samples)))

    def untouched(self, who: str, work: Callable[[], T]) -> T:
        """The result of `work`, checked not to write into the data."""
        if self.apart:  # a process of its own has rows of its own
            return work()
        watched = (self.public, self.private, self.control, self.test)
        before = [fingerprint(part) for part in watched]
        result = work()
        if [fingerprint(part) for part in watched] != before:
            raise ContractError(f"{who} wrote into the data it was given; it must work on copies")
        return result


def detector(bench: Workbench, inputs: Inputs, make: Callable[[], Artefact]) -> Artefact:
    """The artefact of `make` for these data, seed and device, stored.

    Args:
        bench: The cell; its method counts for nothing.
        inputs: Everything else that it depends on, its code among them.
        make: Trains it, on public and on raw private rows only.
    """
    found = fit_inputs(bench.cell, bench.record, apart=bench.apart)
    data = {name: value for name, value in found.items() if not name.startswith("method")}
    if not bench.eve.everyone:  # the private rows are those that the profile leaves to the owner
        data["profile"] = str(bench.eve)
    return bench.store.ensure("detectors", {**data, **inputs}, make)


@contextmanager
def second_owner(bench: Workbench) -> Iterator[Method]:
    """The cell's method in a second, equally isolated process."""
    chosen = bench.cell.method
    memory = None if bench.store.budget is None else bench.store.budget.memory
    with tempfile.TemporaryDirectory(prefix="owner-") as folder:
        if isinstance(bench.method, RemoteMethod):
            rooms = bench.method.tenant
        else:
            rooms = tenant(chosen, device=bench.cell.device, sandbox=False, folder=Path(folder), memory=memory)
        shape = bench.method.shape if isinstance(bench.method, RemoteMethod) else None
        with closing(RemoteMethod(chosen.plugin, rooms, shape)) as method:
            yield method


@contextmanager
def unshaped(bench: Workbench, scheme: Scheme) -> Iterator[Scheme]:
    """The scheme in its own room, called with rows as they are."""
    assert isinstance(bench.method, RemoteMethod)
    with closing(bench.method.again(shaped=False)) as method:
        yield method.load(scheme.state())


def releases(scheme: Scheme, key: State, parts: Sequence[Dataset]) -> list[Release | NotApplicable]:
    """The releases of a key for each part, or its refusals.

    Raises ContractError for a release that is not well-formed.
    """
    found: list[Release | NotApplicable] = []
    for part in parts:
        try:
            release = scheme.load_key(key).release(part)
        except NotApplicable as reason:
            found.append(reason)
            continue
        check(release, part)
        found.append(release)
    return found
