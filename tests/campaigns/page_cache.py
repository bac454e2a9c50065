"""What two sandboxes can still tell each other by the page cache: bits a second.

`python tests/campaigns/page_cache.py [--files 2000]` empties the page cache of so many files of torch's headers, as
after a start of the machine; lets one sandbox read every file for which its bit is 1, and end; and lets another time
the first read of each. The filter of system calls refuses what tells or evicts pages, so that a file serves once, until
the machine drops it from memory. Then the same with names that no folder has, which the kernel remembers once they were
looked up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from math import log2
from pathlib import Path

import torch

from bench.sandbox import confined

TELL = """
import json, sys
for name, bit in zip(*json.load(sys.stdin)):
    if bit:
        open(name, "rb").read(1)
"""
HEAR = """
import json, os, sys, time
times = []
for name in json.load(sys.stdin)[0]:
    file = os.open(name, os.O_RDONLY)
    start = time.perf_counter()
    os.pread(file, 1, 0)
    times.append(time.perf_counter() - start)
    os.close(file)
print(json.dumps(times))
"""

ASK = """
import json, os, sys
folder, names, bits = json.load(sys.stdin)
for name, bit in zip(names, bits):
    for copy in range(9 if bit else 0):
        os.path.exists(f"{folder}/{name}-{copy}")
"""
TIME = """
import json, os, sys, time
folder, names, _ = json.load(sys.stdin)
times = []
for name in names:
    found = []
    for copy in range(9):
        path = f"{folder}/{name}-{copy}"
        start = time.perf_counter()
        os.path.exists(path)
        found.append(time.perf_counter() - start)
    times.append(sorted(found)[4])
print(json.dumps(times))
"""


def files(count: int) -> list[Path]:
    """Files that every sandbox shows and hardly any program reads."""
    return sorted(Path(torch.__file__).with_name("include").rglob("*.h"))[:count]


def dropped(paths: list[Path]) -> None:
    """Drop the files from the page cache, which a sandboxed process cannot."""
    os.sync()
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def inside(code: str, content: object) -> str:
    """What a program of Python prints in a sandbox."""
    line = confined([sys.executable, "-I", "-S", "-c", code], folder=None, files=(), device="cpu")
    done = subprocess.run(line, input=json.dumps(content), capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Print the share of bits that were heard, and the rate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=2000)
    asked = parser.parse_args()
    paths = files(asked.files)
    names, count = [str(path) for path in paths], len(paths)
    bits = torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(0))
    dropped(paths)
    told = (names, bits.tolist())
    measure("first reads of files", TELL, HEAR, told, bits)
    folder, absent = str(Path(torch.__file__).parent), [f"absent-{os.getpid()}-{number}" for number in range(count)]
    measure("names that are not there", ASK, TIME, (folder, absent, bits.tolist()), bits)


def measure(title: str, tell: str, hear: str, content: object, bits: torch.Tensor) -> None:
    """Tell, then hear, and print what came over."""
    start = time.perf_counter()
    inside(tell, content)
    times = torch.tensor(json.loads(inside(hear, content)))
    seconds, count = time.perf_counter() - start, len(bits)
    yes, no = (float(times[bits == bit].median()) for bit in (1, 0))
    right = float(((times < (yes * no) ** 0.5) == (bits == 1)).float().mean())
    lost = 0.0 if right in (0.0, 1.0) else -right * log2(right) - (1 - right) * log2(1 - right)
    print(f"{title}: {1e6 * yes:.1f} us if told, {1e6 * no:.1f} us if not; {right:.4f} of {count} bits heard, which is "
          f"{count * (1 - lost) / seconds:.0f} bits a second with the start of both")  # fmt: skip


if __name__ == "__main__":
    main()
