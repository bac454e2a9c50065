import gzip
from pathlib import Path

import pytest

from bench.contract.source import DataError
from bench.data.csv_tables import read_table


def write(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return tmp_path / name


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_cells_stay_text_blanks_stay_blank_and_rows_know_their_line(tmp_path: Path, name: str) -> None:
    table = read_table(write(tmp_path, "\ufeffid, x\n007,1.0\nNA,\n", name), ("id", "x"))
    assert table["id"].to_list() == ["007", "NA"]
    assert table["x"].to_list() == ["1.0", ""]
    assert table.index.to_list() == [2, 3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<!DOCTYPE html><html></html>", "expected a CSV table, found an HTML page"),
        ("", "found an empty file"),
        ("id,y\n1,2\n", "x not found among id, y"),
        ("id,x,x\n1,2,3\n", "each column once"),
        ("a\0b,x\n1,2\n", "line 1 holds the control character"),
    ],
)
def test_files_that_are_not_the_table_are_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"{reason}.*Ask Ann"):
        read_table(write(tmp_path, text), ("id", "x"), obtain="Ask Ann.")


@pytest.mark.parametrize(
    ("text", "line", "cells"), [("1,2\n3\n", 3, 1), ("1,2\n\n1,2,3\n", 4, 3), ('"a\nb",2\n3\n', 4, 1)]
)
def test_row_with_too_few_or_too_many_cells_is_refused_by_its_line(
    tmp_path: Path, text: str, line: int, cells: int
) -> None:
    with pytest.raises(DataError, match=f"line {line} has {cells} cells, expected 2"):
        read_table(write(tmp_path, "id,x\n" + text), ("id", "x"))


def test_other_columns_are_kept_only_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, "id,x,y\n1,2,3\n")
    assert list(read_table(path, ("y", "id")).columns) == ["id", "y"]
    assert list(read_table(path, ("id",), rest=True).columns) == ["id", "x", "y"]


def test_truncated_gzip_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "id,x\n" + "".join(f"{row},{row * row}\n" for row in range(500)), "t.csv.gz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="not a readable CSV table"):
        read_table(path, ("id", "x"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("b;c\n1;2\n", "a not found among b, c"),
        ("aa\tb\n1\t2\n", r"a not found among aa, b .did you mean 'aa'\? Rename it"),
        ("a,b,b\n1,2,3\n", "b found more than once"),
        ("\n", "a not found among"),
        ("a,b\n1,\x85\n", "line 2 holds the control character"),
    ],
)
def test_the_reason_names_what_is_wrong_with_the_columns(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_table(write(tmp_path, text), ("a",))


@pytest.mark.parametrize("text", [
    "id;x;class\r\n007;1,5;a\r\n8;;b, c\r\n", "id\tx\tclass\n007\t1,5\ta\n8\t\tb, c\n",
    "id|x|class\n007|1,5|a\n8||b, c\n", 'sep=;\nid;x;class\n007;1,5;a\n8;;b, c\n',
    'id,x,class\r007,"1,5",a\r8,,"b, c"\r',
])  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_spreadsheets_write_is_read_with_leading_zeros(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "t.csv", ("id",), optional=("class",), rest=True)
    assert table.to_dict("list") == {"id": ["007", "8"], "x": ["1,5", ""], "class": ["a", "b, c"]}


def test_lines_are_counted_after_a_line_that_states_the_separator(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 4 has 1 cells"):
        read_table(write(tmp_path, "sep=;\nid;x\n1;2\n3\n"), ("id",))


def test_columns_without_a_name_are_passed_over_where_others_are_not_read(tmp_path: Path) -> None:
    assert list(read_table(write(tmp_path, ",a,\n1,2,3\n"), ("a",))["a"]) == ["2"]


def test_a_quote_is_no_separator(tmp_path: Path) -> None:
    """The reader of CSV cannot take one, and would end in an error without a remedy."""
    table = tmp_path / "labels.csv"
    table.write_text('sep="\npath"class\n')
    with pytest.raises(DataError, match="expected the columns path, class"):
        read_table(table, ["path", "class"])
