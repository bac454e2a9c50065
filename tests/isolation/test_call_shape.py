"""Owner and attacker call another author's method in one form, and each gets back what it asked for."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from made import cheats
from made.cells import cell as made_cell
from made.cells import place

from bench.contract.seal import ContractError
from bench.isolation.call_shape import CallShape, CellRows, Labels, UnlinkedError, columns, digests
from bench.isolation.method_proxy import MethodProxy
from bench.isolation.remote_method import RemoteScheme
from bench.isolation.rpc_codec import Handle, Value
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable, Release, paired
from bench.workbench.workbench import Workbench

N, D, K = 40, 6, 2
SECRET = Secret.of_seed(0, "shape")
SEEN = [name for name in cheats.TELLS if name != "second call"]  # tells that a call itself holds
USES: list[Labels] = ["none", "read", "encoded"]


def rows(count: int, seed: int, name: str = "private") -> Dataset:
    random = torch.Generator().manual_seed(seed)
    classes = torch.arange(count) * K // count
    samples = torch.rand(count, D, generator=random) + classes[:, None]  # by class, as data sets list them
    labels = torch.stack([(classes == k).float() for k in range(K)], dim=1)
    subjects = cheats.FIRST_SUBJECT + torch.arange(count) // 2
    return Dataset(name, samples, labels, subjects, ("first", "second"), True, True)


PRIVATE, CONTROL = rows(N, 0), rows(16, 1, "control")


def shape(labels: Labels = "none", *, subjects: bool = False) -> CallShape:
    return CallShape(SECRET, labels, subjects)


def cell(private: Dataset = PRIVATE) -> CellRows:
    return CellRows(private, [CONTROL], SECRET, len(private), 2)


def eves(count: int = N, *, labels: bool = False) -> Dataset:
    """Candidates as Eve has them: shuffled, nameless, under another name."""
    order = torch.randperm(N, generator=torch.Generator().manual_seed(2))[:count]
    taken = PRIVATE.take(order)
    return replace(taken, name="eve", labels=taken.labels if labels else None, subjects=None)


def same(a: Dataset, b: Dataset) -> bool:
    parts = [(getattr(a, part), getattr(b, part)) for part in ("samples", "labels", "subjects")]
    equal = all((x is None and y is None) or (x is not None and torch.equal(x, y)) for x, y in parts)
    return equal and (a.name, a.findings, a.exclusive, a.shareable) == (b.name, b.findings, b.exclusive, b.shareable)


@pytest.mark.parametrize("count", [N, 7, 1])
@pytest.mark.parametrize("subjects", [False, True])
@pytest.mark.parametrize("labels", USES)
def test_a_call_with_some_private_rows_is_the_owners(labels: Labels, subjects: bool, count: int) -> None:
    made = shape(labels, subjects=subjects)
    owner = made.call(PRIVATE)
    eve = shape(labels, subjects=subjects).call(eves(count), cell())
    assert same(owner.shown, eve.shown)
    assert (owner.shown.labels is None, owner.shown.subjects is None) == (labels == "none", not subjects)
    assert eve.added == N - count


@pytest.mark.parametrize("count", [N, 7])
@pytest.mark.parametrize("kind", ["float64", "negative zeros", "strides", "gradient"])
def test_no_form_of_numbers_shows_an_attacker(kind: str, count: int) -> None:
    private = replace(PRIVATE, samples=PRIVATE.samples.round())
    taken = private.take(torch.arange(N).flip(0)[:count]).samples
    samples = {
        "float64": taken.double(), "negative zeros": torch.where(taken == 0, -taken, taken),
        "strides": taken.T.contiguous().T, "gradient": taken.clone().requires_grad_(),
    }[kind]  # fmt: skip
    given = Dataset("eve", samples, None, None, (), False, True)
    eve, owner = shape().call(given, cell(private)).shown.samples, shape().call(private).shown.samples
    assert torch.equal(eve.view(torch.int32), owner.view(torch.int32))  # to the bit, signs of zeros too
    assert not eve.requires_grad


def test_rows_stand_in_a_secret_order() -> None:
    shown = shape().call(PRIVATE).shown.samples
    assert not torch.equal(shown, PRIVATE.samples)
    assert torch.equal(shown.sort(dim=0).values, PRIVATE.samples.sort(dim=0).values)
    other = CallShape(Secret.of_seed(1), "none", False).call(PRIVATE).shown.samples
    assert not torch.equal(shown, other)


def encoded(shown: Dataset) -> Release:
    return paired(shown.samples * 2, shown.labels)


@pytest.mark.parametrize("labels", USES)
def test_a_caller_gets_its_rows_in_its_order(labels: Labels) -> None:
    for given in (PRIVATE, eves(9), eves(9, labels=True)):
        call = shape(labels).call(given, None if given is PRIVATE else cell())
        found = call.returned(encoded(call.shown))
        assert torch.equal(found.samples, 2 * given.samples)
        assert found.links is not None
        assert torch.equal(found.links, torch.arange(len(given))[:, None].expand(-1, 2))
        if given.labels is None:
            assert found.labels is None
        else:
            assert found.labels is not None
            assert torch.equal(found.labels, given.labels)


def test_mixed_rows_keep_the_links_of_their_caller() -> None:
    """Each released row is made of two; the owner's of the first of them."""
    given = eves(9, labels=True)
    call = shape("none").call(given, cell())
    n = len(call.shown)
    own = torch.arange(n)
    links = torch.cat((torch.stack((own, own), dim=1), torch.stack((own.roll(1), own), dim=1)))
    primary = torch.arange(2 * n) < n
    found = call.returned(Release(call.shown.samples, None, links, primary))
    assert len(found) == 9
    assert found.links is not None
    assert found.primary is not None
    assert torch.equal(found.links[found.primary], torch.arange(9)[:, None].expand(-1, 2))
    assert torch.equal(found.labels, given.labels)  # type: ignore[arg-type]
    assert torch.equal(found.samples, given.samples)


def test_labels_of_rows_without_a_main_one_are_means_of_known_ones() -> None:
    given = replace(PRIVATE, labels=torch.where(torch.arange(N)[:, None] == 0, torch.nan, PRIVATE.labels))  # type: ignore[arg-type]
    call = shape("none").call(given)
    links = torch.stack((torch.arange(N), torch.zeros(N, dtype=torch.int64)), dim=1)
    found = call.returned(Release(torch.zeros(2, D), None, links))
    assert found.labels is not None
    assert torch.allclose(found.labels[0], given.labels[1:].mean(dim=0))  # type: ignore[index]
    assert bool(found.labels[1].isnan().all())


def test_labels_that_are_not_declared_are_refused() -> None:
    call = shape("none").call(PRIVATE)
    with pytest.raises(ContractError, match="encodes_labels"):
        call.returned(replace(encoded(call.shown), labels=torch.zeros(N, K)))


def test_added_rows_cannot_be_removed_without_links() -> None:
    call = shape().call(eves(9), cell())
    with pytest.raises(UnlinkedError):
        call.returned(replace(encoded(call.shown), links=None))
    whole = shape().call(eves(), cell())
    assert whole.returned(replace(encoded(whole.shown), links=None)).links is None


def test_a_release_without_the_callers_rows_is_refused() -> None:
    call = shape().call(eves(1), cell())
    other = (call.place > 0).nonzero()[:1]
    with pytest.raises(NotApplicable, match="none of these rows"):
        call.returned(Release(torch.zeros(1, D), None, torch.cat((other, torch.zeros(1, 1, dtype=torch.int64)), dim=1)))


def test_more_rows_than_the_owners_are_asked_with_as_they_are() -> None:
    given = replace(PRIVATE, samples=PRIVATE.samples.repeat(2, 1), labels=None, subjects=None)
    call = shape("encoded").call(given, cell())
    assert (len(call.shown), call.added) == (2 * N, 0)
    assert call.shown.labels is not None


def test_unknown_rows_get_labels_and_people_of_the_nearest() -> None:
    near = replace(PRIVATE.take(torch.tensor([3, 30])), labels=None, subjects=None)
    changed = replace(near, samples=near.samples + 1e-3)
    call = shape("encoded", subjects=True).call(changed, cell())
    at = [int((call.place == number).nonzero()) for number in (0, 1)]
    assert call.shown.labels is not None
    assert torch.equal(call.shown.labels[at], PRIVATE.labels[[3, 30]])  # type: ignore[index]
    assert call.shown.subjects is not None
    assert int(call.shown.subjects[0]) == 0


def test_labels_come_in_the_owners_columns() -> None:
    given = replace(eves(5), labels=torch.arange(5.0)[:, None], findings=("second",))
    call = shape("read").call(given, cell())
    assert call.shown.findings == PRIVATE.findings
    found = call.returned(encoded(call.shown))
    assert torch.equal(found.labels, given.labels)  # type: ignore[arg-type]
    assert bool(columns(torch.ones(1, 1), ("third",), ("first", "second")).isnan().all())


def test_equal_rows_have_equal_digests_whatever_the_sign_of_zero() -> None:
    rows_ = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]])
    first, second, third = digests(rows_, SECRET)
    assert first == second != third
    assert digests(rows_, Secret.of_seed(9))[0] != first


def test_secrets_of_callers_become_others() -> None:
    made = Secret.of_seed(0, "eve", 1)
    assert made.number() in cheats.TABLE
    assert shape().key_secret(made).number() not in cheats.TABLE
    assert shape().key_secret(made) == shape().key_secret(made)


@pytest.mark.parametrize("labels", USES)
@pytest.mark.parametrize("tells", [*SEEN, "+".join(SEEN)])
def test_no_tell_shows_owner_and_eve_another_face(tells: str, labels: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a method takes for Eve's, the owner's release has the same face."""
    monkeypatch.setattr(cheats, "PRIVATE_MEAN", [float(PRIVATE.samples.mean())])
    made = shape(labels, subjects=labels != "none")
    faces = set()
    callers: list[tuple[Dataset, CellRows | None]] = [
        (PRIVATE, None),
        (eves(), cell()),
        (eves(9), cell()),
        (PRIVATE, None),
    ]
    for number, (given, beside) in enumerate(callers):
        call = made.call(given, beside)
        key = cheats.TwoFacedKey(made.key_secret(Secret.of_seed(0, "eve", number)).number(), tells)
        found = call.returned(key.release(call.shown))
        faces.add(float(found.samples.abs().max()) > 1)
    assert len(faces) == 1


def eves_release(proxy: MethodProxy, rows_: Dataset, number: int) -> Release:
    """A release as Eve's process asks for it: object by object."""

    def ask(target: Value, name: str, *values: Value) -> Handle:
        found = proxy.ask(target.number if isinstance(target, Handle) else None, name, values)
        assert isinstance(found, Handle)
        return found

    key = ask(ask(None, "load", {}), "sample_key", Secret.of_seed(0, "eve", number))
    release = proxy.ask(ask(key, "release", ask(None, "hold", rows_)).number, "fetch", ())
    assert isinstance(release, Release)
    return release


@pytest.mark.isolated
@pytest.mark.usefixtures("quick_rooms")
@pytest.mark.parametrize("tells", ["labels", "order", "few+table+subjects", "findings+name"])
def test_in_rooms_eve_sees_the_face_that_the_owner_releases(tells: str, tmp_path: Path) -> None:
    written = f"{cheats.__file__}:TwoFaced[tells={tells}]"
    with closing(Workbench.open(made_cell(written), place(tmp_path), "processes")) as bench:
        scheme = bench.scheme()
        owner = bench.sealed(scheme, 0).release
        assert owner.labels is not None  # added by links: the method got none
        proxy = MethodProxy(cast(RemoteScheme, bench.for_eve(scheme)), pairs=True)
        with closing(proxy):
            taken = bench.private.nameless().take(torch.randperm(len(bench.private))[:20])
            given = replace(taken, labels=None)
            releases = [eves_release(proxy, given, number) for number in range(3)]
            assert proxy.notes() == {"calls of the method": "3 x 20 rows, completed to 160 if it declares links"}
            with pytest.raises(ContractError, match="was not given"):
                proxy.ask(1, "release", ())
    for found in releases:
        assert (len(found), found.labels) == (20, None)
        assert (float(found.samples.abs().max()) > 1) == (float(owner.samples.abs().max()) > 1)
