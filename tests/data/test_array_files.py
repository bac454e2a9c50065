import io

import numpy as np
import pytest

from bench.contract.source import DataError
from bench.data.array_files import read_array


def stored(header: str, content: bytes = b"") -> io.BytesIO:
    padded = header.ljust(118) + "\n"
    return io.BytesIO(b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode() + content)


def read(file: io.BytesIO) -> np.ndarray:
    return read_array(file, len(file.getvalue()))


def test_an_array_comes_back_as_it_was() -> None:
    for array in (np.arange(6).reshape(2, 3), np.zeros((0, 3), np.uint8), np.asfortranarray(np.eye(3))):
        file = io.BytesIO()
        np.save(file, array)
        file.seek(0)
        np.testing.assert_array_equal(read(file), array)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects"),
        ("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}", "Python objects"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000)}", "do not hold it"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "do not hold it"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}", "do not hold it"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "do not hold it"),
    ],
)
def test_objects_and_shapes_that_the_bytes_do_not_hold_are_refused(header: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(stored(header, bytes(8)))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"\x93NUMPY\x09\x00\x01\x00{"])
def test_what_is_no_array_is_said_by_its_reader(content: bytes) -> None:
    with pytest.raises((ValueError, EOFError)):
        read(io.BytesIO(content))


def test_more_than_this_machines_memory_is_refused_unread() -> None:
    size = 2**60
    file = stored(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size - 128 - 1},)}}")
    with pytest.raises(DataError, match="of this machine's memory"):
        read_array(file, size - 128 - 1 + len(file.getvalue()))


@pytest.mark.parametrize("header", ["{'descr': '<f8', (", "{'descr': '''<f8", "(" * 117, "\\"])
def test_a_damaged_header_is_said_by_its_reader(header: str) -> None:
    with pytest.raises((ValueError, DataError)):
        read(stored(header, bytes(8)))
