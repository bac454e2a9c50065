"""Releases in which the form of the call shows are told from those of honest methods."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made import cheats

from bench.leak_search import call_faces
from bench.leak_search.call_faces import Asked, Form, Trace, ask, ask_again, released, trace
from bench.leak_search.other_calls import Lost, OtherCall, lost
from bench.randomness import Secret
from bench.rows.row_sets import joined
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme, paired

N = 48


def rows(seed: int = 0) -> Dataset:
    """By class, as data sets list them."""
    classes = torch.arange(N) * 4 // N
    samples = torch.rand(N, 12, generator=generator(seed)) + 2 * classes[:, None]
    labels = torch.nn.functional.one_hot(classes, 4).float()
    names = ("first", "second", "third", "fourth")
    return Dataset("private", samples, labels, cheats.FIRST_SUBJECT + torch.arange(N) // 2, names, True, True)


def found(scheme: Scheme, seed: int = 0, form: Form | None = None, keys: int = call_faces.KEYS) -> Trace:
    private = rows()
    secrets = [Secret.of_seed(seed, "faces", number) for number in range(keys)]
    asked = list(ask(scheme, scheme, private, secrets, form or Form(labels=False, subjects=False)))
    return trace([private.samples], [asked], seed)


def lacking(scheme: Scheme, calls: list[OtherCall], keys: int = call_faces.KEYS, seed: int = 0) -> Lost:
    """What calls keep less of than the owner's, and than her rows in another order."""
    private = rows()
    secrets = [Secret.of_seed(seed, "faces", number) for number in range(keys)]
    plain = [released(scheme, secret, private) for secret in secrets]
    shuffled = [pair.owner for pair in ask(scheme, scheme, private, secrets, Form(labels=True, subjects=True))]
    others = [(call, [released(scheme, secret, call.rows) for secret in secrets]) for call in calls]
    every = torch.arange(N)
    return lost(
        private.samples, plain, [(OtherCall("its rows in another order", private, every, every), shuffled), *others], 0
    )


def beside() -> list[OtherCall]:
    """Fewer rows, public rows, and a mixture."""
    private, other = rows(), rows(seed=1)
    place, every = torch.arange(N // 2), torch.arange(N)
    some = private.take(place)
    return [
        OtherCall("fewer rows", some, place, place), OtherCall("public rows", other, every, every),
        OtherCall("private and public rows", joined(some, other.take(place)), place, place),
    ]  # fmt: skip


@pytest.mark.parametrize("tells", ["order", "labels+order"])
def test_a_face_for_another_order_is_found(tells: str) -> None:
    made = lacking(cheats.TwoFacedScheme(tells), [])
    assert (made.p < 0.001, made.call) == (True, "its rows in another order")


@pytest.mark.parametrize(
    ("by", "call"),
    [
        ("any", "private and public rows"), ("any", "public rows"), ("most", "public rows"),
        ("mean", "public rows"), ("small", "fewer rows"),
    ],
)  # fmt: skip
def test_a_face_for_other_rows_is_found(by: str, call: str) -> None:
    scheme = cheats.RememberingScheme(rows(seed=1).samples, by, few=N)
    made = lacking(scheme, [each for each in beside() if each.name == call])
    assert (made.p < 0.001, made.call) == (True, call)
    assert made.other < 0.25 * made.owner


@pytest.mark.parametrize("tells", ["labels", "subjects", "subjects+table+mean"])
def test_a_face_for_eve_is_found(tells: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheats, "CALLS", [])
    monkeypatch.setattr(cheats, "PRIVATE_MEAN", [float(rows().samples.mean())])
    made = found(cheats.TwoFacedScheme(tells))
    assert made.p < 0.001
    assert made.differing == call_faces.KEYS


def test_a_declared_tell_is_none() -> None:
    """Labels come with both calls where the method reads them."""
    scheme = cheats.TwoFacedScheme("labels+subjects")
    assert found(scheme, form=Form(labels=True, subjects=True)) == Trace(1.0, "", 32, 0)


def test_a_method_that_refuses_eve_is_found() -> None:
    class Choosy(cheats.CheatKey):
        def release(self, private: Dataset) -> Release:
            if private.labels is None:
                raise NotApplicable("not for you")
            return paired(self.encoded(private.samples), private.labels)

    made = found(cheats.CheatScheme(Choosy))
    assert (made.p < 0.001, made.figure) == (True, f"refusals, {N} rows")


class NoisyKey(cheats.CheatKey):
    """Noise that its rows draw, in their order."""

    def release(self, private: Dataset) -> Release:
        return paired(self.encoded(private.samples) + 3 * self.noise(private.samples), private.labels)


FRESH = generator(5)


class FreshKey(cheats.CheatKey):
    """New noise in every call, as of an operating system."""

    def release(self, private: Dataset) -> Release:
        return paired(self.encoded(private.samples) + 3 * torch.rand(private.samples.shape, generator=FRESH), None)


class MixedKey(cheats.CheatKey):
    """Sums of two rows, whose places the key draws."""

    def release(self, private: Dataset) -> Release:
        other = torch.randperm(len(private), generator=self.random(private.samples, "mix"))
        return paired(private.samples + private.samples[other], None)


class BatchKey(cheats.CheatKey):
    """Rows in units of their batch."""

    def release(self, private: Dataset) -> Release:
        made = self.encoded(private.samples)
        return paired((made - made.mean(dim=0)) / made.std(dim=0), private.labels)


class PlaceKey(cheats.CheatKey):
    """Rows multiplied by a number of their place."""

    def release(self, private: Dataset) -> Release:
        scale = 1 + torch.rand(len(private), generator=generator(self.seed))
        return paired(self.encoded(private.samples) * scale[:, None], private.labels)


class FreeKey(cheats.CheatKey):
    """Rows without links, drawn by what came."""

    def release(self, private: Dataset) -> Release:
        return Release(self.noise(private.samples) * private.samples.std(), None, None)


@pytest.mark.parametrize("kind", [NoisyKey, FreshKey, MixedKey, BatchKey, PlaceKey, FreeKey, cheats.HonestKey])
def test_an_honest_method_shows_one_face(kind: type[cheats.CheatKey]) -> None:
    scheme = cheats.CheatScheme(kind)
    assert min(found(scheme, seed, keys=10).p for seed in range(2)) > 0.01
    made = lacking(scheme, beside(), keys=10)
    assert (made.p, made.call) == (1.0, "")
    assert len(made.calls) == (0 if kind is FreeKey else 4)


@pytest.mark.parametrize(("kind", "fixed"), [(cheats.HonestKey, True), (NoisyKey, False)])
def test_the_key_alone_decides_the_rows_of_some_methods(kind: type[cheats.CheatKey], fixed: bool) -> None:
    """Then both orders must give the same, and one row that differs is seen."""
    scheme, private, secret = cheats.CheatScheme(kind), rows(), Secret.of_seed(3)
    (pair,) = ask(scheme, scheme, private, [secret], Form(labels=False, subjects=False))
    assert call_faces.same_rows(pair)
    assert call_faces.same_rows(Asked(pair.owner, ask_again(scheme, private, secret))) == fixed
    assert isinstance(pair.eve, Release)
    changed = pair.eve.samples.clone()
    changed[int(derive(0, "row") % N)] += 1
    assert not call_faces.same_rows(Asked(pair.owner, replace(pair.eve, samples=changed)))
