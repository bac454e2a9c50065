import os
from pathlib import Path

import pytest

from bench.contract.source import DataError
from bench.data.raw_files import locate, resolve, stamp_files, stamp_folder


def test_roots_come_from_the_command_line_then_the_environment_then_the_config_file(tmp_path: Path) -> None:
    named = [tmp_path / name for name in "abcd"]
    config = tmp_path / "config.yaml"
    config.write_text(f"data_roots: [{named[3]}, {named[0]}]\n")
    environment = {"BENCH_DATA": os.pathsep.join([str(named[1]), str(named[2])])}
    assert resolve([named[0]], environment=environment, config=config) == tuple(named)


def test_no_root_is_set_without_any_of_the_three(tmp_path: Path) -> None:
    assert resolve(environment={}, config=tmp_path / "none.yaml") == ()


@pytest.mark.parametrize("text", ["data_roots: 3", "- a\n- b", "data_roots: [1, 2]"])
def test_config_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(DataError, match="data_roots must be a list of folders"):
        resolve(environment={}, config=tmp_path / "config.yaml")


def test_an_unknown_key_of_the_config_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data_root: [/somewhere]")
    with pytest.raises(DataError, match="unknown key 'data_root'; the file has one key, data_roots"):
        resolve(environment={}, config=tmp_path / "config.yaml")


def test_broken_config_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data_roots: [")
    with pytest.raises(DataError, match="not valid YAML"):
        resolve(environment={}, config=tmp_path / "config.yaml")


@pytest.mark.parametrize("inside", ["", "thing", "usual/place"])
def test_data_are_found_in_the_root_its_namesake_and_usual_folders(tmp_path: Path, inside: str) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / inside / "mark.csv").write_text("a")
    found = locate([tmp_path], name="thing", folders=("usual/place",), markers=("mark.csv",), obtain="")
    assert found == (tmp_path / inside).resolve()


def test_unfound_data_name_every_place_the_marker_and_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        locate([tmp_path, tmp_path / "no"], name="thing", folders=("x",), markers=("a.csv", "b.csv"), obtain="Ask Ann.")
    text = str(caught.value)
    for part in (
        f"  {tmp_path}, there or in thing, x\n",
        f"  {tmp_path / 'no'}  (no such folder)\n",
    ):
        assert part in text
    assert "a.csv or b.csv" in text
    assert "--data-root, BENCH_DATA" in text
    assert text.endswith("Ask Ann.")


def test_unfound_data_say_that_no_root_is_set() -> None:
    with pytest.raises(DataError, match="no data root is set"):
        locate([], name="thing", folders=(), markers=("a",), obtain="")


def test_stamps_change_with_content_and_with_names(tmp_path: Path) -> None:
    first = tmp_path / "a"
    first.write_text("1")
    before = stamp_files([first]), stamp_folder(tmp_path), stamp_folder(tmp_path, sizes=True)
    assert before == (stamp_files([first]), stamp_folder(tmp_path), stamp_folder(tmp_path, sizes=True))
    first.write_text("12")
    assert stamp_files([first]) != before[0]
    assert stamp_folder(tmp_path) == before[1]
    assert stamp_folder(tmp_path, sizes=True) != before[2]
    first.rename(tmp_path / "b")
    assert stamp_folder(tmp_path) != before[1]
