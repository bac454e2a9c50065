from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from bench.plugins import registry
from bench.plugins.spec import PluginSpec, UsageError, construct, did_you_mean, parameters, parse


@dataclass(frozen=True)
class Sample:
    flag: str = "x"
    scale: float | None = 10.0
    blocks: int = 5
    exact: bool = True
    mode: Literal["paper", "corrected"] = "paper"

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise ValueError(f"blocks must be at least 1, got {self.blocks}")


@pytest.mark.parametrize(
    "text",
    [
        "identity",
        "dp-simple[scale=20]",
        "medmnist:pneumoniamnist@28",
        "./mine.py:Mine[k=2]",
        "folder:/a b/c",
        "s[base=c[a=1,b=2],k=3]",
        "s[base=c[a=1,b=d[e=2],f=3],k=3]",
    ],
)
def test_a_spec_survives_writing_and_reading(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize("text", ["", "a[b", "a[b]", "a]b", "[x=1]", "a[x=1]]", "a[x=b[y=1]"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        parse(text)


def test_values_take_the_type_of_their_field() -> None:
    made = construct(Sample, parse("sample[scale=2,blocks=7,exact=no,mode=corrected]"))
    assert made == Sample(scale=2.0, blocks=7, exact=False, mode="corrected")
    assert construct(Sample, parse("sample[scale=none]")) == Sample(scale=None)


def test_text_behind_the_colon_is_the_first_field() -> None:
    assert construct(Sample, parse("sample:pneumoniamnist@28")) == Sample(flag="pneumoniamnist@28")


def test_the_command_line_wins_over_the_preset() -> None:
    made = construct(Sample, PluginSpec("sample", None, (("blocks", "2"),)), {"blocks": 9, "scale": 1.0})
    assert made == Sample(scale=1.0, blocks=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample[scales=1]", "did you mean 'scale'"),
        ("sample[blocks=two]", "must be int, got 'two'"),
        ("sample[blocks=2.5]", "must be int"),
        ("sample[mode=papre]", "must be 'paper' or 'corrected'"),
        ("sample[exact=maybe]", "must be bool"),
        ("sample[scale=inf]", "must be float or none, got 'inf'"),
        ("sample[blocks=0]", "blocks must be at least 1, got 0"),
    ],
)
def test_bad_parameters_say_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        construct(Sample, parse(text))


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(UsageError, match="folder needs path; write folder:PATH"):
        registry.build("datasets", parse("folder"), "quick")


def test_parameters_lists_every_field() -> None:
    assert parameters(Sample(blocks=3)) == {"flag": "x", "scale": 10.0, "blocks": 3, "exact": True, "mode": "paper"}


def test_a_name_like_no_other_only_lists_the_known_ones() -> None:
    assert did_you_mean("zzz", ["syfer"]) == "Known: syfer"


@pytest.mark.parametrize(
    "path",
    ["/a,b/c", "/a[1]/b", "/a]b", "/a[b", "/a b ", '/a"b', "k=v", "contrastive[steps=9,width=8]", 'a[path="b,c"]'],
)
def test_every_path_can_be_written_as_a_parameter(path: str) -> None:
    written = str(PluginSpec("imported", None, (("path", path), ("releases", "1"))))
    assert parse(written).parameters == (("path", path), ("releases", "1"))
    assert parse(str(PluginSpec("folder", path.replace('"', "")))).argument == path.replace('"', "")


def test_a_path_that_cannot_be_written_is_named() -> None:
    with pytest.raises(UsageError, match="cannot hold double quotes too"):
        str(PluginSpec("imported", None, (("path", 'a,"b'),)))
