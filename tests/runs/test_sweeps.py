"""Alternatives of a parameter, and spans of seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.plugins.spec import PluginSpec, UsageError, alternatives, parse
from bench.runs.request import Request, run_specs


def _swept(**options: object) -> list[tuple[str, str, int]]:
    return [
        (str(method), str(choice.dataset), choice.seed)
        for spec in run_specs(Request(options))
        for choice in spec.choices
        for method in spec.methods
    ]


def test_alternatives_stand_for_a_method_each_and_share_the_default_row() -> None:
    swept = [method for method, _, _ in _swept(methods=["dp-simple[scale=1|10|30]", "dp-simple"])]
    assert swept == ["dp-simple[scale=1.0]", "dp-simple", "dp-simple[scale=30.0]"]


def test_alternatives_of_several_parameters_are_crossed() -> None:
    swept = _swept(methods=["mosaic[cell=4|8,epsilon=1|none]"])
    assert len(swept) == len(set(swept)) == 4


def test_a_list_in_a_configuration_file_holds_alternatives(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("methods:\n  - dp-simple: {scale: [1, 3]}\n  - identity\nseeds: [0-2, 7]\n")
    swept = [
        (str(method), choice.seed)
        for spec in run_specs(Request(config=file))
        for choice in spec.choices
        for method in spec.methods
    ]
    assert {name for name, _ in swept} == {"dp-simple[scale=1.0]", "dp-simple[scale=3.0]", "identity"}
    assert sorted({seed for _, seed in swept}) == [0, 1, 2, 7]


def test_data_sets_have_alternatives_too() -> None:
    assert {data for _, data, _ in _swept(methods=["identity"], datasets=["synth-cxr[images=700|800]"])} == {
        "synth-cxr[images=700]",
        "synth-cxr[images=800]",
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": ["4-2"]}, "a span of seeds goes upwards"),
        ({"seeds": ["0-5000"]}, "at most 1000, got 0-5000"),
        ({"seeds": ["x"]}, "a whole number, or a span such as 0-4, got 'x'"),
        ({"methods": ["dp-simple[scale=1||3]"]}, "dp-simple[scale] must be float or none, got ''"),
        ({"methods": ["dp-simple[scale=1|3,scal=2]"]}, "has no parameter 'scal'; did you mean 'scale'?"),
    ],
)
def test_bad_sweeps_name_the_part_that_cannot_be_read(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        run_specs(Request({"methods": ["dp-simple"], **options}))
    assert words in str(refused.value)


def test_a_path_with_a_bar_is_written_so_that_it_stands_for_itself() -> None:
    spec = PluginSpec("imported", None, (("path", "/data/a|b"), ("links", "/data/c,d|e")))
    assert [parse(each) for each in alternatives(str(spec))] == [spec]
