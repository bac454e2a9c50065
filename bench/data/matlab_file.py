"""Arrays of numbers in a MATLAB file (.mat, level 4 or 5), read by SciPy in a process of its own.

A few wrong bytes in a file end SciPy's reader, and the process that it runs in, with it: here that is an error.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np

from bench.data.array_file import read_array

MOST_BYTES = 1 << 28
"""Of a file, and of the array."""
_SECONDS = 300
_READ = """
import io, resource, sys
import numpy
from scipy.io import loadmat
path, name, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (16 * most,) * 2)
found = loadmat(path, variable_names=[name]).get(name)
if not isinstance(found, numpy.ndarray) or found.dtype.kind not in "iuf" or found.nbytes > most:
    sys.exit(f"no array of numbers called {name!r} of at most {most} bytes")
whole = io.BytesIO()
numpy.save(whole, found, allow_pickle=False)
sys.stdout.buffer.write(whole.getvalue())
"""


def read_matlab(path: Path, name: str) -> np.ndarray:
    """The array of numbers of that name.

    Raises:
        ValueError: It is no such file, is damaged or too large, or holds no such array; the text says which.
        OSError: It cannot be read.
    """
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ValueError(f"expected a MATLAB file of at most {MOST_BYTES} bytes, found {size}")
    command = [sys.executable, "-I", "-c", _READ, str(path.absolute()), name, str(MOST_BYTES)]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"its reader did not end in {_SECONDS} seconds") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"its reader ended with {done.returncode}"]
        raise ValueError(said[-1])
    return read_array(io.BytesIO(done.stdout), len(done.stdout))
