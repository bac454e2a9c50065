"""Every method that states its noise adds that noise, drawn afresh every time; what does not is caught."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import cast

import pytest
import torch
from made.toy_methods import laplace, toy_seed
from torch import Tensor

from bench.audit.noise_checks import check_density, check_reuse, draw_noise
from bench.conformance.outcome import Skip
from bench.contract.mechanism import Mechanism
from bench.contract.seal import ContractError
from bench.plugins import registry
from bench.plugins.configured import to_fit
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, Key, Method, NotApplicable, Release, Scheme, State, paired

SCALE = 0.5


def rows(*shape: int, seed: int = 0) -> Dataset:
    samples = torch.rand(*shape, generator=generator(seed))
    labels = (torch.arange(len(samples))[:, None] // torch.tensor([1, 2]) % 2).float()
    return Dataset("made", samples, labels, None, ("one", "two"), False, True)


# Beside every method by default: noise that is there only on request, or added in another way.
CHOICES = (
    "mosaic[epsilon=10]",
    "cadp[variant=corrected]",
    "cadp[variant=official-code]",
    "dp-glow[variant=corrected]",
)
PUBLIC = {"images": rows(48, 1, 32, 32), "table": rows(48, 8)}


@cache
def learned(method: Method, kind: str) -> State:
    """What a method learns, once for all choices that only its noise depends on."""
    return method.fit(PUBLIC[kind], 0).state()


def check_noise(method: Method, scheme: Scheme, public: Dataset) -> None:
    private, other = (rows(*public.samples.shape, seed=seed) for seed in (1, 2))
    for seed in range(3):
        noise = draw_noise(scheme, private, other, seed=seed)
        queries = type(scheme.sample_key(Secret.of_seed(0))).query is not Key.query
        assert len(noise) == (4 if queries else 3)
        check_density(noise)
        check_reuse(noise)


@pytest.mark.parametrize("text", [*registry.entries("methods"), *CHOICES])
def test_stated_noise_is_what_is_added(text: str) -> None:
    method = cast(Method, registry.build("methods", parse(text), "smoke"))
    skipped = []
    for kind, public in PUBLIC.items():
        try:
            check_noise(method, method.load(learned(to_fit(method), kind)), public)
        except (Skip, NotApplicable) as reason:
            skipped.append(str(reason))
    if len(skipped) == len(PUBLIC):
        pytest.skip("; ".join(skipped))


@pytest.mark.parametrize("text", ["dp-simple", "mosaic[cell=3,epsilon=10]", "cadp", "dp-glow"])
def test_every_channel_of_a_colour_image_has_noise_of_its_own(text: str) -> None:
    method, public = cast(Method, registry.build("methods", parse(text), "smoke")), rows(48, 3, 8, 12)
    check_noise(method, method.fit(public, 0), public)


def test_noise_of_a_single_number_can_be_checked() -> None:
    method, public = (
        cast(Method, registry.build("methods", parse("mosaic[cell=8,epsilon=1]"), "smoke")),
        rows(48, 1, 8, 8),
    )
    check_noise(method, method.fit(public, 0), public)


@dataclass(frozen=True, eq=False)
class Plain(Mechanism):
    """States noise of scale SCALE on the numbers of a row, which a fence may bound."""

    width: int
    bound: float | None

    @property
    def scale(self) -> Tensor:
        return torch.full((self.width,), SCALE, dtype=torch.float64)

    @property
    def fence(self) -> tuple[Tensor, Tensor] | None:
        full = torch.ones(self.width, dtype=torch.float64)
        return None if self.bound is None else (-self.bound * full, (1 + self.bound) * full)

    def locate(self, data: Dataset) -> Tensor:
        return data.samples.flatten(1).double()

    def observe(self, release: Release) -> Tensor:
        return release.samples.flatten(1).double()


@dataclass(frozen=True)
class Noisy(Scheme, Key):
    """Adds noise in a chosen way, some of them wrong."""

    how: str = "sound"
    bound: float | None = None
    seed: int = 0

    def sample_key(self, secret: Secret) -> Key:
        return Noisy(self.how, self.bound, 5 if self.how == "one noise for all keys" else toy_seed(secret))

    def load_key(self, state: State) -> Key:
        return Noisy(self.how, self.bound, int(state["seed"]))

    def state(self) -> State:
        return {"seed": torch.tensor(self.seed)}

    def mechanism(self) -> Mechanism:
        return Plain(64, self.bound)

    def release(self, private: Dataset) -> Release:
        return paired(self._blur(private.samples, "release"), private.labels)

    def query(self, samples: Tensor) -> Tensor:
        return self._blur(samples, "release" if self.how == "one noise for releases and queries" else "query")

    def _blur(self, samples: Tensor, call: str) -> Tensor:
        secret = Secret.of_seed(self.seed, call).bound_to(samples)
        if self.how == "one noise for all data":
            secret = Secret.of_seed(self.seed, call)
        if self.how == "one noise for all keys":
            secret = Secret.of_seed(0, call).bound_to(samples)
        noise = laplace(samples.shape, secret.stream())
        if self.how == "nine tenths":
            noise *= 0.9
        if self.how == "one weak element":
            noise[:, 0, 3, 3] *= 0.4
        if self.how == "normal":
            noise = 2**0.5 * secret.stream().normal(*samples.shape).float()
        if self.how == "one noise for all rows":
            noise = noise[:1].expand_as(noise)
        if self.how == "a part of a row's noise again":
            noise[7, :, :2] = noise[8, :, :2]
        if self.how == "one draw for two elements":
            noise[:, 0, 5] = -noise[:, 0, 2]
        found = samples + SCALE * noise
        return found if self.bound is None else found.clamp(-self.bound, 1 + self.bound)


def drawn(scheme: Scheme, n: int = 200, seed: int = 0):
    private, other = rows(n, 1, 8, 8), rows(n, 1, 8, 8, seed=1)
    return draw_noise(scheme, private, other, seed=seed)


@pytest.mark.parametrize("bound", [None, 0.0, 0.3, 3.0])
def test_a_sound_mechanism_passes_for_every_seed(bound: float | None) -> None:
    for seed in range(5):
        noise = drawn(Noisy(bound=bound), seed=seed)
        assert list(noise) == ["release", "release under another key", "release of other rows", "query"]
        check_density(noise)
        check_reuse(noise)


@pytest.mark.parametrize("bound", [None, 0.3])
def test_nine_tenths_of_the_noise_is_caught(bound: float | None) -> None:
    with pytest.raises(ContractError, match="does not follow the stated density"):
        check_density(drawn(Noisy("nine tenths", bound)))


def test_noise_of_another_shape_is_caught() -> None:
    with pytest.raises(ContractError, match="does not follow the stated density"):
        check_density(drawn(Noisy("normal")))


def test_one_element_with_too_little_noise_is_caught() -> None:
    with pytest.raises(
        ContractError, match=r"1 elements do not have their stated scale: noise of element 27 is 0\.[34]"
    ):
        check_density(drawn(Noisy("one weak element"), n=48))


@pytest.mark.parametrize(
    "how",
    [
        "one noise for all keys",
        "one noise for all data",
        "one noise for releases and queries",
        "one noise for all rows",
        "a part of a row's noise again",
        "one draw for two elements",
    ],
)
def test_noise_that_is_used_again_is_caught(how: str) -> None:
    with pytest.raises(ContractError, match="noise is used again"):
        check_reuse(drawn(Noisy(how)))
