"""`bench new KIND NAME`: a plug-in to begin with, which works, beside a test."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from bench.cli.skeleton import files
from bench.plugins.spec import UsageError
from bench.results.atomic_file import make_folder, write_new


def main(options: argparse.Namespace) -> int:
    """Write the files, overwriting none, and say what comes next."""
    into: Path = options.into
    made = {into / path: text for path, text in files(options.kind, options.name).items()}
    if there := [path for path in made if path.exists() or path.is_symlink()]:
        raise UsageError(f"{there[0]} is there already, and nothing is overwritten: name another place with --into")
    for path, text in made.items():
        make_folder(path.parent)
        write_new(path, text.encode(), mode=0o644)
        print(path)
    if options.kind == "package":
        folder = shlex.quote(str(into / options.name))
        print(f"Next: cd {folder} && python -m pip install -e '.[dev]' && bench check {options.name}")
    else:
        path, text = next(iter(made.items()))
        name = next(line for line in text.splitlines() if line.startswith("class ")).partition("(")[0][6:]
        print(f"Next: bench check {shlex.quote(f'{path}:{name}')}")
    return 0
