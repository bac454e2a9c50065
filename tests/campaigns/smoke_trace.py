"""Size of a smoke job: modules, rooms, functions and processes of one small run.

`python tests/campaigns/smoke_trace.py` runs the smallest job in this checkout and prints a table. `--tree DIR` and
`--python FILE` count another checkout alike. A folder on PYTHONPATH with a `sitecustomize` reaches every Python process
of the run, and notes each function of the product at its first call. `--isolation sandbox` counts processes only:
what runs in a sandbox cannot write to the folder of notes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("attacks", "bench", "leaderboard", "methods", "metrics")
JOB = (
    "run", "--method", "dp-simple", "--dataset", "digits", "--preset", "smoke", "--attack", "nearest-neighbour",
    "--no-controls", "--metric", "guesswork", "--no-site",
)  # fmt: skip
LOOK_SECONDS = 0.01
HOOK = """
import os, sys, threading
NOTES, TREE, PACKAGES = {notes!r}, {tree!r}, {packages!r}
ROOTS = tuple(os.path.join(TREE, package) + os.sep for package in PACKAGES)
FUNCTION = 0x1  # CO_OPTIMIZED: no module, no class body
seen = set()

def note(line):
    # Opened anew each time: a worker lets go of all descriptors that it does not know.
    file = os.open(os.path.join(NOTES, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, (line + "\\n").encode())
    os.close(file)

def hook(frame, event, argument):
    code = frame.f_code
    if event != "call" or code in seen:
        return
    seen.add(code)
    if not code.co_filename.startswith(ROOTS):
        return
    if code.co_name == "<module>":
        note("M " + code.co_filename)
    elif code.co_flags & FUNCTION and not code.co_name.startswith("<"):
        note("F " + code.co_filename + ":" + code.co_qualname)

def start():
    seen.clear()
    note("P " + " ".join(sys.orig_argv)[:300])
    threading.setprofile(hook)
    sys.setprofile(hook)

os.register_at_fork(after_in_child=start)
start()
"""


def trace(tree: Path, python: Path, isolation: str) -> tuple[dict[str, set[str]], set[str]]:
    """The notes of each Python process by its id, and the commands of all processes.

    Raises:
        RuntimeError: The job failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        notes, hook, results = (Path(folder) / name for name in ("notes", "hook", "results"))
        for path in (notes, hook):
            path.mkdir()
        traced = isolation != "sandbox"
        text = HOOK.format(notes=str(notes), tree=str(tree), packages=PACKAGES)
        (hook / "sitecustomize.py").write_text(text if traced else "", encoding="utf-8")
        command = [str(python), "-P", "-m", "bench", *JOB, "--isolation", isolation, "--results", str(results)]
        run = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "PYTHONPATH": str(hook)},
        )  # fmt: skip
        commands = set[str]()
        root = psutil.Process(run.pid)
        while run.poll() is None:
            for process in [root, *_below(root)]:
                try:
                    commands.add(f"{process.pid} {' '.join(process.cmdline())[:100]}")
                except psutil.Error:
                    continue
            time.sleep(LOOK_SECONDS)
        output = run.communicate()[0]
        if run.returncode:
            raise RuntimeError(f"the job failed with exit code {run.returncode}:\n{output}")
        found = {path.name: set(path.read_text(encoding="utf-8").splitlines()) for path in notes.iterdir()}
        return found, commands


def _below(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except psutil.Error:
        return []


def room(module: str) -> str:
    """The room of a module's file: a package of `bench`, a module beside them, or another top-level package.

    >>> room("bench/runs/run.py"), room("bench/api.py"), room("methods/dp_simple.py")
    ('bench/runs', 'bench/api.py', 'methods')
    """
    parts = module.split("/")
    return "/".join(parts[:2]) if parts[0] == "bench" else parts[0]


def main() -> int:
    """Print the counts, and with `--list` every function by its module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--isolation", choices=("none", "processes", "sandbox"), default="processes")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    tree = asked.tree.resolve()
    notes, commands = trace(tree, asked.python.absolute(), asked.isolation)
    functions: dict[str, set[str]] = defaultdict(set)
    imported = set[str]()
    for line in set().union(*notes.values()):
        kind, _, text = line.partition(" ")
        if kind == "F":
            file, _, name = text.rpartition(":")
            functions[str(Path(file).relative_to(tree))].add(name)
        elif kind == "M":
            imported.add(str(Path(text).relative_to(tree)))
    working = [name for name, lines in notes.items() if any(line.startswith("F ") for line in lines)]
    if asked.list:
        for module, names in sorted(functions.items()):
            print(f"{len(names):4} {module}: {', '.join(sorted(names))}")
        for module in sorted(imported - functions.keys()):
            print(f"   0 {module}")
        for command in sorted(commands):
            print(command)
        for name, lines in sorted(notes.items()):
            print(name, sum(line.startswith("F ") for line in lines), [line for line in lines if line.startswith("P ")])
    print(f"isolation {asked.isolation}")
    print(f"modules entered    {len(functions)} ({len(imported)} imported)")
    print(f"rooms entered      {len({room(module) for module in functions})}")
    print(f"functions entered  {sum(map(len, functions.values()))}")
    print(f"processes          {len(commands)} ({len(notes)} of Python, {len(working)} with the product's functions)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
