"""Evidence is kept bit for bit, and what is no evidence is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch
from safetensors.torch import save

from bench.evaluators.reidentification import Reidentification
from bench.evidence import MembershipEvidence, PairEvidence, SetEvidence, UtilityEvidence
from bench.plugins import registry
from bench.results.evidence_file import HEADER, EvidenceError, pack, unpack


def samples() -> Iterator[Any]:
    for name in registry.own("evaluators"):
        cls = cast(Any, registry.load("evaluators", name))
        yield from (pytest.param(cls.evidence, piece, id=f"{name}-{n}") for n, piece in enumerate(cls.samples()))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


@pytest.mark.parametrize(("kind", "evidence"), list(samples()))
def test_every_kind_of_evidence_comes_back_bit_for_bit(kind: type, evidence: object) -> None:
    content = pack({"a finding": evidence})
    found = unpack(content, kind)
    assert list(found) == ["a finding"]
    assert same(evidence, found["a finding"])
    assert pack(found) == content


def test_numbers_that_no_narrower_kind_holds_stay_as_they_are() -> None:
    odd = torch.tensor([0.1, float("nan"), -0.0, float("inf"), 2.0**-1074], dtype=torch.float64)
    evidence = MembershipEvidence([odd], [torch.tensor([True, False, True, False, True])], None, 1, 2**60)
    (found,) = cast("dict[str, MembershipEvidence]", unpack(pack({"": evidence}), MembershipEvidence)).values()
    assert same(evidence, found)


def test_counts_take_a_byte_each() -> None:
    rows = torch.arange(20_000).reshape(100, 200) % 7
    sets = SetEvidence(rows.float(), rows.float(), None, None, 1)
    assert len(pack({"": sets})) < 2 * rows.numel() + 1000


@pytest.mark.parametrize(
    "tree",
    [
        {"": {"scores": []}},
        {"": {"scores": [["float32", [9], "float32", 0]], "members": [], "subjects": None, "seed": 1, "draws": 1,
              "groups": []}},
        {"": {"scores": [["float32", [1], "float32", -1]], "members": [], "subjects": None, "seed": 1, "draws": 1,
              "groups": []}},
        {"": {"scores": [], "members": [], "subjects": None, "seed": "1", "draws": 1, "groups": []}},
        [],
        {"": 3},
    ],
)  # fmt: skip
def test_what_is_no_evidence_of_that_kind_is_refused(tree: object) -> None:
    content = save({"float32": torch.zeros(2)}, metadata={HEADER: json.dumps(tree)})
    with pytest.raises(EvidenceError):
        unpack(content, MembershipEvidence)


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"\x02\0\0\0\0\0\0\0{}", save({"a": torch.zeros(1)})])
def test_what_is_no_file_of_evidence_is_refused(content: bytes) -> None:
    with pytest.raises(EvidenceError):
        unpack(content, UtilityEvidence)


def test_evidence_that_no_file_could_hold_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd:
        work: object

    with pytest.raises(EvidenceError, match="got function"):
        pack({"": Odd(samples)})


def test_evidence_of_an_earlier_version_may_lack_a_field_with_a_default_and_no_other() -> None:
    evidence = next(iter(Reidentification.samples()))
    content = pack({"": evidence})
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    tree = json.loads(head["__metadata__"][HEADER])

    def without(name: str) -> bytes:
        part = {key: value for key, value in tree[""].items() if key != name}
        text = json.dumps({**head, "__metadata__": {HEADER: json.dumps({"": part})}}).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + size :]

    assert unpack(without("trainings"), PairEvidence)[""].trainings == ()  # type: ignore[attr-defined]
    with pytest.raises(EvidenceError, match="must have the fields"):
        unpack(without("draws"), PairEvidence)
