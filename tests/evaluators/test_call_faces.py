"""Releases in which the form of the call shows are told from those of honest methods."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made import cheats

from bench.leak_search import call_faces
from bench.leak_search.call_faces import Asked, Form, Trace, ask, ask_again, trace
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme, paired

N = 48


def rows() -> Dataset:
    """By class, as data sets list them."""
    classes = torch.arange(N) * 4 // N
    samples = torch.rand(N, 12, generator=generator(0)) + 2 * classes[:, None]
    labels = torch.nn.functional.one_hot(classes, 4).float()
    names = ("first", "second", "third", "fourth")
    return Dataset("private", samples, labels, cheats.FIRST_SUBJECT + torch.arange(N) // 2, names, True, True)


def found(scheme: Scheme, seed: int = 0, form: Form | None = None, keys: int = call_faces.KEYS) -> Trace:
    private = rows()
    secrets = [Secret.of_seed(seed, "faces", number) for number in range(keys)]
    asked = list(ask(scheme, scheme, private, secrets, form or Form(labels=False, subjects=False)))
    return trace([private.samples], [asked], seed)


@pytest.mark.parametrize("tells", ["labels", "subjects", "order", "labels+order", "subjects+table+mean"])
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


class FreeKey(cheats.CheatKey):
    """Rows without links, drawn by what came."""

    def release(self, private: Dataset) -> Release:
        return Release(self.noise(private.samples) * private.samples.std(), None, None)


@pytest.mark.parametrize("kind", [NoisyKey, MixedKey, BatchKey, FreeKey, cheats.HonestKey])
def test_an_honest_method_shows_one_face(kind: type[cheats.CheatKey]) -> None:
    scheme = cheats.CheatScheme(kind)
    assert min(found(scheme, seed, keys=10).p for seed in range(2)) > 0.01


@pytest.mark.parametrize(("kind", "fixed"), [(cheats.HonestKey, True), (NoisyKey, False)])
def test_the_key_alone_decides_the_rows_of_some_methods(kind: type[cheats.CheatKey], fixed: bool) -> None:
    """Then both forms must give the same, and one row that differs is seen."""
    scheme, private, secret = cheats.CheatScheme(kind), rows(), Secret.of_seed(3)
    (pair,) = ask(scheme, scheme, private, [secret], Form(labels=False, subjects=False))
    assert call_faces.same_rows(pair) == fixed
    assert call_faces.same_rows(Asked(pair.owner, ask_again(scheme, private, secret))) == fixed
    assert isinstance(pair.eve, Release)
    changed = pair.eve.samples.clone()
    changed[int(derive(0, "row") % N)] += 1
    assert not call_faces.same_rows(Asked(pair.owner, replace(pair.eve, samples=changed)))
