"""Questions to an interpreter that a user names, in a sandbox.

It may be any program.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.plugins import environments
from bench.plugins.spec import UsageError
from bench.sandbox import Installs, confined, environment
from bench.wire.text import line, plain

ASK = """
import glob, json, os, platform, sys
base = os.path.realpath(getattr(sys, "base_prefix", sys.prefix))
places = ["/usr/share/python-wheels"]
try:
    import ensurepip
    places.insert(0, os.path.join(ensurepip.__path__[0], "_bundled"))
except ImportError:
    pass
wheels = [path for place in places for path in sorted(glob.glob(os.path.join(place, "pip-*.whl")))]
print(json.dumps([base, sys.implementation.name + " " + platform.python_version(), wheels[-1:]]))
"""
OLDEST = (3, 8)
SECONDS = 3600.0
WHEELS = Path("/usr/share/python-wheels")


@dataclass(frozen=True)
class Interpreter:
    """An interpreter, as the user named it.

    Args:
        path: Its file.
        prefix: The folder of its installation, or of that which its environment was made from.
        version: Implementation and version, by its own word.
        wheel: A wheel of pip that lies beside it; None for none.
        sandbox: Whatever it runs, it runs in a sandbox.
    """

    path: Path
    prefix: Path
    version: str
    wheel: Path | None
    sandbox: bool

    def run(self, words: Sequence[str], failure: str, folder: Path) -> str:
        """Its output, while it may write into a folder. Raises UsageError."""
        command = [str(self.path), *words]
        if not self.sandbox:
            return run(command, failure)
        writes = Installs(folder, {}, network=False)
        line = confined(command, folder=None, files=(), device="cpu", interpreter=_shown(self.path), installs=writes)
        return run(line, failure, environment(sandbox=True))


def probe(path: Path, *, sandbox: bool, root: Path | None = None) -> Interpreter:
    """Ask an interpreter for its version and folder.

    Args:
        path: Its file.
        sandbox: Ask in a sandbox. (This process's own interpreter needs none.)
        root: The image that it lies in.

    Raises:
        UsageError: It is no Python from 3.8 on, or lies elsewhere than it says.
    """
    failure = f"{path} is no Python that can be used"
    command = [str(path), "-I", "-S", "-B", "-c", ASK]
    if sandbox and path != Path(sys.executable):
        shown = [] if root is not None else _shown(path)
        command = confined(command, folder=None, files=(), device="cpu", interpreter=shown, root=root)
        done = run(command, failure, environment(sandbox=True))
    else:
        sandbox = False
        done = run(command, failure)
    try:
        base, version, wheels = json.loads(done)
        prefix, number = Path(base), tuple(map(int, re.findall(r"\d+", version)[:2]))
        wheel = Path(wheels[0]) if wheels else None
    except (ValueError, TypeError) as error:
        raise UsageError(f"{failure}: it printed {line(done)!r}") from error
    if number < OLDEST:
        raise UsageError(f"a room needs Python {'.'.join(map(str, OLDEST))} or later, got {line(version)}")
    if sandbox and root is None:  # what it says is believed of folders that the user named
        if prefix.resolve() not in [place.resolve() for place in _prefixes(path)]:
            raise UsageError(
                f"{path} says that it is installed in {line(str(prefix))}, which is not around it: name the "
                "interpreter's own file, not a program that starts it"
            )
        if wheel is not None and not any(wheel.resolve().is_relative_to(place) for place in (prefix.resolve(), WHEELS)):
            wheel = None
    return Interpreter(path, prefix, str(version), wheel, sandbox)


def _prefixes(path: Path) -> list[Path]:
    """Folders of an interpreter's installation, by its file, link and pyvenv.cfg."""
    binaries = [path.parent, path.resolve().parent]
    config = path.parent.parent / "pyvenv.cfg"
    if config.is_file():
        text = config.read_text(encoding="utf-8", errors="replace")
        binaries += [Path(home) for home in re.findall(r"^home\s*=\s*(/.*?)\s*$", text, re.MULTILINE)]
        binaries += [(home / path.name).resolve().parent for home in binaries[2:]]
    return list(dict.fromkeys(binary.parent for binary in binaries))


def _shown(path: Path) -> list[Path]:
    places = [part for place in _prefixes(path) for part in environments.parts(place)]
    files = [each for each in (path, path.resolve()) if each.exists()]
    apart = [each for each in files if not any(each.is_relative_to(place) for place in (*places, Path("/usr")))]
    return list(dict.fromkeys([*places, *apart]))


def run(command: Sequence[str], failure: str, variables: dict[str, str] | None = None) -> str:
    """A command's output. Raises UsageError with the end of its errors."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS,
            check=False, env=variables or dict(os.environ),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{failure}: {error}") from error
    if done.returncode != 0:
        raise UsageError(f"{failure}: {plain(done.stderr.strip()[-1500:]) or f'exit code {done.returncode}'}")
    return done.stdout
