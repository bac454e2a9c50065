"""Methods that break their word, each in one way; the honest twin of most is a keyed linear map or noise."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, cast

import torch
from torch import Tensor

from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, Generator, Key, Method, Release, Scheme, State, paired


@dataclass(frozen=True)
class Cheat(Method):
    """What all share: a scheme that learns nothing, and keys that hold a seed."""

    source: ClassVar[str] = "a test"
    key: ClassVar[type[CheatKey]]

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return CheatScheme(type(self).key)

    def load(self, state: State) -> Scheme:
        return CheatScheme(type(self).key)


@dataclass(frozen=True)
class CheatScheme(Scheme):
    kind: type[CheatKey]

    def sample_key(self, secret: Secret) -> Key:
        return self.kind(secret.number())

    def load_key(self, state: State) -> Key:
        return self.kind(int(state["seed"]))

    def load_generator(self, state: State) -> Generator:
        return Zeros(state["zeros"])


@dataclass(frozen=True)
class CheatKey(Key):
    seed: int

    def state(self) -> State:
        return {"seed": torch.tensor(self.seed)}

    def random(self, rows: Tensor, purpose: str) -> torch.Generator:
        return generator(Secret.of_seed(self.seed, purpose).bound_to(rows).number())

    def noise(self, rows: Tensor) -> Tensor:
        return torch.rand(rows.shape, generator=self.random(rows, "noise"))

    def encoded(self, rows: Tensor) -> Tensor:
        """A secret linear map, the same for every row."""
        d = rows[0].numel()
        return (rows.flatten(1) @ torch.randn(d, d, generator=generator(self.seed))).reshape(rows.shape)

    def wrong(self, m: int) -> Tensor:
        """Links that name somebody else for every row."""
        place = torch.randperm(m, generator=generator(derive(self.seed, "wrong")))
        return torch.stack((place, place.roll(1)), dim=1)


class RawUnderFalseLinksKey(CheatKey):
    def release(self, private: Dataset) -> Release:
        return Release(private.samples.clone(), private.labels, self.wrong(len(private)))


class EncodedUnderFalseLinksKey(CheatKey):
    def release(self, private: Dataset) -> Release:
        return Release(self.encoded(private.samples), private.labels, self.wrong(len(private)))


class SomeFalseLinksKey(CheatKey):
    """A third of the links is false."""

    def release(self, private: Dataset) -> Release:
        n = len(private)
        target = torch.arange(n)
        moved = torch.randperm(n, generator=generator(self.seed))[: n // 3]
        target[moved] = moved.roll(1)
        return Release(self.encoded(private.samples), private.labels, torch.stack((torch.arange(n), target), dim=1))


class NoisyUnderFalseLinksKey(CheatKey):
    def release(self, private: Dataset) -> Release:
        noisy = private.samples + self.noise(private.samples)
        return Release(noisy, private.labels, self.wrong(len(private)))


def others(self: CheatKey, rows: Tensor) -> Tensor:
    links = self.wrong(len(rows))
    return rows[links[links[:, 1].argsort(), 0]]


class CornerKey(CheatKey):
    """Noise, with somebody else's image at half its size in a corner."""

    def release(self, private: Dataset) -> Release:
        rows = self.noise(private.samples)
        h, w = (side // 2 for side in rows.shape[2:])
        rows[:, :, :h, :w] = torch.nn.functional.adaptive_avg_pool2d(others(self, private.samples), (h, w))
        return paired(rows, private.labels)


class LowBitsKey(CheatKey):
    """Noise in bytes, with somebody else's image in the four low bits."""

    def release(self, private: Dataset) -> Release:
        cover = (self.noise(private.samples) * 15).round() * 16
        return paired((cover + (others(self, private.samples) * 15).round()) / 255, private.labels)


class MantissaKey(CheatKey):
    """Noise, with somebody else's row in the last byte of each number."""

    def release(self, private: Dataset) -> Release:
        cover = (self.noise(private.samples) + 1).contiguous().view(torch.int32) & ~255
        low, high = private.samples.min(), private.samples.max()
        rows = ((others(self, private.samples) - low) / (high - low) * 255).round().int()
        return paired((cover | rows).view(torch.float32), private.labels)


class AmongNoiseKey(CheatKey):
    """Linked noise, and the raw rows beside it without links."""

    def release(self, private: Dataset) -> Release:
        n = len(private)
        links = torch.arange(n)[:, None].expand(n, 2).contiguous()
        labels = None if private.labels is None else torch.cat((private.labels, private.labels))
        return Release(torch.cat((self.noise(private.samples), private.samples)), labels, links)


class EncodedAmongNoiseKey(CheatKey):
    """The same with encoded rows."""

    def release(self, private: Dataset) -> Release:
        n = len(private)
        links = torch.arange(n)[:, None].expand(n, 2).contiguous()
        labels = None if private.labels is None else torch.cat((private.labels, private.labels))
        order = torch.randperm(n, generator=self.random(private.samples, "order"))
        return Release(torch.cat((self.noise(private.samples), self.encoded(private.samples)[order])), labels, links)


class LabelDigitsKey(CheatKey):
    """Noise, with a few numbers of the row in the digits of its labels."""

    def release(self, private: Dataset) -> Release:
        labels = cast(Tensor, private.labels)
        flat = private.samples.flatten(1)
        busiest = flat.std(dim=0).argsort(descending=True)[: labels.shape[1]]
        told = (flat - flat.min()) / (flat.max() - flat.min())
        return paired(self.noise(private.samples), labels.nan_to_num() * (1 - 1e-3) + 1e-3 * told[:, busiest])


class RawWithoutLinksKey(CheatKey):
    def release(self, private: Dataset) -> Release:
        return Release(private.samples.clone(), private.labels, None)


class EncodedWithoutLinksKey(CheatKey):
    def release(self, private: Dataset) -> Release:
        return Release(self.encoded(private.samples), private.labels, None)


@dataclass(frozen=True)
class Zeros(Generator):
    """A generator that has nothing to do with the release."""

    zeros: Tensor

    def sample(self, count: int, seed: int) -> Release:
        return Release(self.zeros.expand(count, *self.zeros.shape).clone(), None, None)

    def state(self) -> State:
        return {"zeros": self.zeros}


class EncodedWithDummyGeneratorKey(CheatKey):
    def release(self, private: Dataset) -> Release:
        made = Zeros(torch.zeros(private.samples.shape[1:]))
        return Release(self.encoded(private.samples), private.labels, None, generator=made)


def _frames() -> Iterator[str]:
    frame = sys._getframe()
    while frame is not None:
        yield str(frame.f_globals.get("__name__"))
        frame = frame.f_back  # type: ignore[assignment]


class StackReaderKey(CheatKey):
    """Declares the truth, except where an evaluator of the bench calls."""

    def release(self, private: Dataset) -> Release:
        watched = any(name.startswith("bench.evaluators") for name in _frames())
        rows = self.encoded(private.samples)
        return Release(rows, private.labels, self.wrong(len(private))) if watched else paired(rows, private.labels)


class EnvironmentReaderKey(CheatKey):
    """The same for a variable of the environment."""

    def release(self, private: Dataset) -> Release:
        rows = self.noise(private.samples) if "VEIL_TEST_MARK" in os.environ else self.encoded(private.samples)
        return paired(rows, private.labels)


@dataclass(frozen=True)
class SeedReaderKey(CheatKey):
    """Keeps quiet where its seed was handed to it; its state forgets that it was."""

    told: bool = field(default=False)

    def release(self, private: Dataset) -> Release:
        rows = self.noise(private.samples) if self.told else private.samples
        return paired(rows, private.labels)


class SeedReaderScheme(CheatScheme):
    def sample_key(self, secret: Secret) -> Key:
        return SeedReaderKey(secret.number(), told=True)


class SizeReaderKey(CheatKey):
    """Declares the truth of fewer rows than a benchmark releases."""

    def release(self, private: Dataset) -> Release:
        rows = self.encoded(private.samples)
        honest = len(private) < 100
        return paired(rows, private.labels) if honest else Release(rows, private.labels, self.wrong(len(private)))


class LabelReaderKey(CheatKey):
    """Paints the labels that it is told with a query into the rows."""

    def release(self, private: Dataset) -> Release:
        return paired(self.query(private.samples, private.labels), private.labels)

    def query(self, samples: Tensor, labels: Tensor | None = None) -> Tensor:
        rows = self.noise(samples)
        if labels is not None:
            rows.flatten(1)[:, : labels.shape[1]] = 20 * labels.nan_to_num(0.5)
        return rows


FIRST_SUBJECT = 1000
PRIVATE_MEAN = [0.0]
CALLS: list[Tensor] = []
TABLE = {Secret.of_seed(0, "eve", number).number() for number in range(64)}


def _ordered(rows: Tensor) -> bool:
    """If most rows lie nearer to the next one than to others: the public order goes by class."""
    flat = rows.flatten(1)
    near = (flat[1:] - flat[:-1]).norm(dim=1).mean()
    return bool(near < 0.8 * torch.cdist(flat, flat).mean())


TELLS: Mapping[str, Callable[[CheatKey, Dataset], bool]] = {
    "labels": lambda key, rows: rows.labels is None,
    "frequency": lambda key, rows: rows.labels is None or bool((rows.labels.nansum(dim=0).diff().abs() > 1).any()),
    "subjects": lambda key, rows: rows.subjects is None,
    "numbers of subjects": lambda key, rows: rows.subjects is None or int(rows.subjects[0]) != FIRST_SUBJECT,
    "few": lambda key, rows: len(rows) < 100,
    "order": lambda key, rows: not _ordered(rows.samples),
    "table": lambda key, rows: key.seed in TABLE,
    "name": lambda key, rows: rows.name != "private",
    "findings": lambda key, rows: rows.findings[:1] != ("first",),
    "duplicates": lambda key, rows: len(torch.unique(rows.samples.flatten(1), dim=0)) < len(rows),
    "mean": lambda key, rows: abs(float(rows.samples.mean()) - PRIVATE_MEAN[0]) > 1e-6,
    "second call": lambda key, rows: sum(torch.equal(rows.samples, other) for other in CALLS) > 1,
}
"""What makes a method believe that Eve calls, by name: a key and the rows of a call."""


@dataclass(frozen=True)
class TwoFacedKey(CheatKey):
    """Encoded rows; noise for a caller whom any of its tells takes for Eve."""

    tells: str = ""

    def release(self, private: Dataset) -> Release:
        CALLS.append(private.samples)
        eve = any(TELLS[name](self, private) for name in self.tells.split("+") if name)
        rows = self.noise(private.samples) if eve else self.encoded(private.samples)
        return paired(rows, private.labels)

    def query(self, samples: Tensor) -> Tensor:
        return self.encoded(samples)


@dataclass(frozen=True)
class TwoFacedScheme(Scheme):
    tells: str

    def sample_key(self, secret: Secret) -> Key:
        return TwoFacedKey(secret.number(), self.tells)

    def load_key(self, state: State) -> Key:
        return TwoFacedKey(int(state["seed"]), self.tells)


def _known(public: Tensor, rows: Tensor) -> Tensor:
    """Rows (n,) bool that are public ones."""
    return (rows.flatten(1)[:, None] == public.flatten(1)).all(dim=2).any(dim=1)


MEMORIES: Mapping[str, Callable[[RememberingKey, Tensor], bool]] = {
    "any": lambda key, rows: bool(_known(key.public, rows).any()),
    "most": lambda key, rows: float(_known(key.public, rows).float().mean()) > 0.5,
    "mean": lambda key, rows: abs(float(rows.mean()) - float(key.public.mean())) < 1e-4,
    "small": lambda key, rows: len(rows) < key.few,
}
"""What makes a method that has seen public rows believe that these are released, by name."""


@dataclass(frozen=True)
class RememberingKey(CheatKey):
    """Encoded rows, or raw ones; noise for a call that looks like one of public rows."""

    public: Tensor
    by: str
    few: int
    raw: bool

    def release(self, private: Dataset) -> Release:
        eve = MEMORIES[self.by](self, private.samples)
        rows = private.samples.clone() if self.raw else self.encoded(private.samples)
        return paired(self.noise(private.samples) if eve else rows, private.labels)

    def query(self, samples: Tensor) -> Tensor:
        return self.encoded(samples)


@dataclass(frozen=True)
class RememberingScheme(Scheme):
    public: Tensor
    by: str
    few: int = 100
    raw: bool = False

    def sample_key(self, secret: Secret) -> Key:
        return RememberingKey(secret.number(), self.public, self.by, self.few, self.raw)

    def load_key(self, state: State) -> Key:
        return RememberingKey(int(state["seed"]), self.public, self.by, self.few, self.raw)

    def state(self) -> State:
        return {"public": self.public}


class HonestKey(CheatKey):
    """The truth about encoded rows."""

    def release(self, private: Dataset) -> Release:
        return paired(self.encoded(private.samples), private.labels)


@dataclass(frozen=True)
class RawUnderFalseLinks(Cheat):
    """`RawUnderFalseLinksKey`."""

    name: ClassVar[str] = "raw-under-false-links"
    key: ClassVar[type[CheatKey]] = RawUnderFalseLinksKey


@dataclass(frozen=True)
class EncodedUnderFalseLinks(Cheat):
    """`EncodedUnderFalseLinksKey`."""

    name: ClassVar[str] = "encoded-under-false-links"
    key: ClassVar[type[CheatKey]] = EncodedUnderFalseLinksKey


@dataclass(frozen=True)
class SomeFalseLinks(Cheat):
    """`SomeFalseLinksKey`."""

    name: ClassVar[str] = "some-false-links"
    key: ClassVar[type[CheatKey]] = SomeFalseLinksKey


@dataclass(frozen=True)
class NoisyUnderFalseLinks(Cheat):
    """`NoisyUnderFalseLinksKey`."""

    name: ClassVar[str] = "noisy-under-false-links"
    key: ClassVar[type[CheatKey]] = NoisyUnderFalseLinksKey


@dataclass(frozen=True)
class Corner(Cheat):
    """`CornerKey`."""

    name: ClassVar[str] = "corner"
    key: ClassVar[type[CheatKey]] = CornerKey


@dataclass(frozen=True)
class LowBits(Cheat):
    """`LowBitsKey`."""

    name: ClassVar[str] = "low-bits"
    key: ClassVar[type[CheatKey]] = LowBitsKey


@dataclass(frozen=True)
class Mantissa(Cheat):
    """`MantissaKey`."""

    name: ClassVar[str] = "mantissa"
    key: ClassVar[type[CheatKey]] = MantissaKey


@dataclass(frozen=True)
class AmongNoise(Cheat):
    """`AmongNoiseKey`."""

    name: ClassVar[str] = "among-noise"
    key: ClassVar[type[CheatKey]] = AmongNoiseKey


@dataclass(frozen=True)
class EncodedAmongNoise(Cheat):
    """`EncodedAmongNoiseKey`."""

    name: ClassVar[str] = "encoded-among-noise"
    key: ClassVar[type[CheatKey]] = EncodedAmongNoiseKey


@dataclass(frozen=True)
class LabelDigits(Cheat):
    """`LabelDigitsKey`."""

    name: ClassVar[str] = "label-digits"
    key: ClassVar[type[CheatKey]] = LabelDigitsKey


@dataclass(frozen=True)
class RawWithoutLinks(Cheat):
    """`RawWithoutLinksKey`."""

    name: ClassVar[str] = "raw-without-links"
    key: ClassVar[type[CheatKey]] = RawWithoutLinksKey


@dataclass(frozen=True)
class EncodedWithoutLinks(Cheat):
    """`EncodedWithoutLinksKey`."""

    name: ClassVar[str] = "encoded-without-links"
    key: ClassVar[type[CheatKey]] = EncodedWithoutLinksKey


@dataclass(frozen=True)
class EncodedWithDummyGenerator(Cheat):
    """`EncodedWithDummyGeneratorKey`."""

    name: ClassVar[str] = "encoded-with-dummy-generator"
    key: ClassVar[type[CheatKey]] = EncodedWithDummyGeneratorKey


@dataclass(frozen=True)
class StackReader(Cheat):
    """`StackReaderKey`."""

    name: ClassVar[str] = "stack-reader"
    key: ClassVar[type[CheatKey]] = StackReaderKey


@dataclass(frozen=True)
class EnvironmentReader(Cheat):
    """`EnvironmentReaderKey`."""

    name: ClassVar[str] = "environment-reader"
    key: ClassVar[type[CheatKey]] = EnvironmentReaderKey


@dataclass(frozen=True)
class SeedReader(Cheat):
    """`SeedReaderKey`."""

    name: ClassVar[str] = "seed-reader"
    key: ClassVar[type[CheatKey]] = SeedReaderKey

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return SeedReaderScheme(SeedReaderKey)

    def load(self, state: State) -> Scheme:
        return SeedReaderScheme(SeedReaderKey)


@dataclass(frozen=True)
class SizeReader(Cheat):
    """`SizeReaderKey`."""

    name: ClassVar[str] = "size-reader"
    key: ClassVar[type[CheatKey]] = SizeReaderKey


@dataclass(frozen=True)
class LabelReader(Cheat):
    """`LabelReaderKey`."""

    name: ClassVar[str] = "label-reader"
    key: ClassVar[type[CheatKey]] = LabelReaderKey
    uses_labels: ClassVar[bool] = True


@dataclass(frozen=True)
class TwoFaced(Cheat):
    """`TwoFacedKey`.

    Args:
        tells: Names of `TELLS`, joined by +.
    """

    name: ClassVar[str] = "two-faced"
    tells: str = "labels"

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return TwoFacedScheme(self.tells)

    def load(self, state: State) -> Scheme:
        return TwoFacedScheme(self.tells)


@dataclass(frozen=True)
class Remembering(Cheat):
    """`RememberingKey`.

    Args:
        by: A name of `MEMORIES`.
        raw: Whether rows are released as they are, and not encoded.
    """

    name: ClassVar[str] = "remembering"
    by: str = "any"
    raw: bool = False

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return RememberingScheme(public.samples, self.by, raw=self.raw)

    def load(self, state: State) -> Scheme:
        return RememberingScheme(state["public"], self.by, raw=self.raw)


@dataclass(frozen=True)
class Honest(Cheat):
    """`HonestKey`."""

    name: ClassVar[str] = "honest"
    key: ClassVar[type[CheatKey]] = HonestKey


@dataclass(frozen=True)
class QuietLabelReader(LabelReader):
    """The same, which does not say that it uses labels."""

    name: ClassVar[str] = "quiet-label-reader"
    uses_labels: ClassVar[bool] = False
