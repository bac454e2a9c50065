"""Sandbox by bubblewrap: a process sees the files named here only.

What is not named here is not there: no home folder, no data roots, no results, no network, no other process.
"""

from __future__ import annotations

__figures__ = False

import contextlib
import csv
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from bench.image_root import bound
from bench.proc_view import kept_file, mask
from bench.seccomp_filter import architecture, program
from bench.shadowing import HOME, PACKAGES

Isolation = Literal["sandbox", "processes", "none"]
"""Isolation of methods and attacks. `sandbox`: processes inside bubblewrap. `processes`: of their own, but with this
user's rights. `none`: the judge's own process, for debugging and for tests."""
FROM_WEAKEST: tuple[Isolation, ...] = ("none", "processes", "sandbox")
BWRAP = shutil.which("bwrap")
INSTALL = "install bubblewrap (`apt-get install bubblewrap`)"
RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
"""Holds 1 on Ubuntu 23.10 and later, whose AppArmor keeps user namespaces from programs without a profile."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/nix/store")
SHARED_BYTES = 1 << 28
SCRATCH_BYTES = 1 << 30  # of temporary files, which lie in memory
SCRATCH = (Path("/tmp"), Path("/dev/shm"))
"""Folders that a sandboxed process may write."""
KEPT_VARIABLES = (
    "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONWARNINGS", "LD_LIBRARY_PATH",
)  # fmt: skip
KEPT_PREFIXES = ("OMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_", "ATEN_", "NUMBA_", "CUDA_", "CUBLAS_", "NVIDIA_")
SECONDS = 60.0
CACHES = Path("/proc/sys/vm/drop_caches")
WHISPERED = "5,000"
"""Bits a second, as `tests/campaigns/page_cache.py` measures."""
LIVING = (
    "those alive together, which release or attack, can pass on more than 1,000 bits a second by words of mapped files "
    "(futexes), and some by the numbers and pages of pipes and by the processor's time"
)
"""As `tests/campaigns/living_rooms.py` measures."""
ROOM = "/room"
"""The place of exchanged files in a sandbox: their true place would tell whose run it is."""
NETWORK = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
    "/etc/pip.conf", "/etc/xdg/pip", "/etc/uv",
)  # fmt: skip
INSTALLERS = ("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_", "REQUESTS_CA_")
NVIDIA = ("/dev/nvidia*", "/dev/nvidia-caps/*")
COUNTERS = (
    "/sys/fs", "/sys/kernel", "/sys/power", "/sys/firmware", "/sys/block", "/sys/class/block", "/sys/class/net",
    "/sys/class/bdi", "/sys/class/thermal", "/sys/class/powercap", "/sys/devices/virtual/net",
    "/sys/devices/virtual/block", "/sys/devices/virtual/bdi", "/sys/devices/virtual/thermal",
    "/sys/devices/virtual/powercap",
)  # fmt: skip
"""Folders with counters of the whole machine, which CUDA does not read; sandboxes without CUDA have no /sys."""


def confined(
    command: Sequence[str],
    *,
    folder: Path | None,
    files: Sequence[Path],
    device: str,
    hidden: Sequence[Path] = (),
    interpreter: Sequence[Path] | None = None,
    root: Path | None = None,
    installs: Installs | None = None,
) -> list[str]:
    """`command` within a sandbox.

    Args:
        command: A program and its arguments.
        folder: Holds `in`, which the process may read, `out` and `kept`, which it may write; None for none of them.
        files: What else it may read: the plug-in's own files and folders.
        device: "cpu" or "cuda", which brings the accelerator's device files.
        hidden: Folders below those shown that are empty in it.
        interpreter: Files of the Python that runs in it, and of its packages; None for those of this process.
        root: An image's root file system in place of this machine's; None for this machine's.
        installs: An installation with network and without the filter of system calls; None for none.
    """
    assert BWRAP is not None
    line = [
        BWRAP, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox",
        "--proc", "/proc", *mask(), "--dev", "/dev", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp",
        "--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm", "--clearenv",
    ]  # fmt: skip
    for name, value in environment(sandbox=True).items():
        line += ["--setenv", name, value]
    shown = dict.fromkeys([*(python() if interpreter is None else interpreter), *files])
    if root is None:
        for place in SYSTEM:
            line += ["--ro-bind-try", place, place]
    else:
        line += bound(root, list(shown))
    # A shown file below a scratch folder would stand in writable parents: the topmost of these is made read-only.
    parents = sorted({
        str(scratch / path.relative_to(scratch).parts[0])
        for path in shown for scratch in SCRATCH if scratch in path.parents and scratch != path.parent
    })  # fmt: skip
    for parent in parents:
        line += ["--tmpfs", parent]
    for path in shown:
        line += ["--ro-bind", str(path), str(path)]
    for path in hidden:
        line += ["--tmpfs", str(path), "--remount-ro", str(path)]
    if installs is not None:
        line += [*installs.line()]
    if device == "cuda":
        for pattern in NVIDIA:
            for found in sorted(Path("/").glob(pattern[1:])):
                line += ["--dev-bind", str(found), str(found)]
        line += ["--ro-bind-try", "/sys", "/sys"]
        for name in filter(os.path.isdir, COUNTERS):
            line += ["--tmpfs", name, "--remount-ro", name]
    if folder is not None:
        line += ["--ro-bind", str(folder / "in"), f"{ROOM}/in"]
        for name in ("out", "kept"):
            line += ["--bind", str(folder / name), f"{ROOM}/{name}"]
    for parent in [*parents, "/dev", "/"]:
        line += ["--remount-ro", parent]
    return [*(_filtered(line) if installs is None else line), "--chdir", "/tmp", "--", *command]


def _filtered(line: list[str]) -> list[str]:
    """A line of bubblewrap, with any filter of system calls.

    Bubblewrap reads it from a descriptor, which the shell opens.
    """
    if (here := architecture()) is None:
        return line
    file = kept_file("filter", program(here))
    return ["/bin/sh", "-c", 'exec 9<"$0" "$@"', str(file), *line, "--seccomp", "9"]


def why_unfiltered() -> str | None:
    """The reason why system calls are not filtered here, or None."""
    if architecture() is None:
        return f"no filter of system calls is written for {platform.machine()}"
    return None


def why_whispers() -> str | None:
    """The reason why sandboxes can signal each other here, or None."""
    if not os.access(CACHES, os.W_OK):
        kept = f"the kernel's caches of files and names, which only root may empty, pass on {WHISPERED} bits a second"
        return f"{why}; {kept}" if (why := why_unfiltered()) is not None else kept
    return why_unfiltered()


def empty_caches() -> None:
    """Empty the kernel's caches of files and names, if this user may.

    One sandbox fills them, and another could see by the times of reads what was read.
    """
    if os.access(CACHES, os.W_OK):
        CACHES.write_text("3", encoding="ascii")


@dataclass(frozen=True)
class Installs:
    """An installation within a sandbox: network, and a folder to write.

    Args:
        folder: That folder.
        variables: Environment variables.
        network: It has network.
    """

    folder: Path
    variables: Mapping[str, str]
    network: bool = True

    def line(self) -> Iterator[str]:
        """Words for bubblewrap."""
        yield from ("--bind", str(self.folder), str(self.folder))
        if not self.network:
            return
        yield "--share-net"
        for name, value in self.variables.items():
            yield from ("--setenv", name, value)
        named = [part for value in self.variables.values() for part in value.replace("file://", " ").split()]
        for place in dict.fromkeys([*NETWORK, *(part for part in named if part.startswith("/"))]):
            if not self.folder.is_relative_to(place) and not Path(place).is_relative_to(self.folder):
                yield from ("--ro-bind-try", place, place)


def installing(folder: Path, variables: Mapping[str, str]) -> Installs:
    """An installation into a folder, with the variables of pip and uv."""
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(INSTALLERS)}
    return Installs(folder, {**kept, **variables})


def environment(*, sandbox: bool) -> dict[str, str]:
    """Environment variables of an isolated process; none tells whose run it is."""
    kept = {
        name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = os.pathsep.join(map(str, search_path()))
    # A user's name, for the sandbox has no list of users, in which torch looks one up for its caches (on CUDA).
    places = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "sandbox"} if sandbox else {}
    usual = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, **usual, **places, "PYTHONDONTWRITEBYTECODE": "1"}


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill an isolated process and, without a sandbox, its whole session.

    (A sandbox ends with the process that holds it.)
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it leads no group within a sandbox
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def python() -> Iterator[Path]:
    """Python itself, its packages, and this project's: what every sandbox shows."""
    found = {Path(path).resolve() for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    written = {Path(path) for path in (sys.prefix, sys.base_prefix)}  # a link is followed to where it leads
    yield from sorted((found | written) - {Path("/usr"), Path("/")})
    yield from own_sites()
    for entry in search_path():
        yield from _installed(entry)
    for package in PACKAGES:
        yield HOME / package


def own_sites() -> list[Path]:
    """The folders with packages of this Python."""
    return sorted({Path(path) for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib")})


DATA = (
    "sklearn/datasets/data", "sklearn/datasets/images", "sklearn/datasets/descr", "sklearn/datasets/tests",
    "skimage/data", "statsmodels/datasets", "matplotlib/mpl-data/sample_data", "pydicom/data/test_files", "medmnist",
)  # fmt: skip
"""Folders of packages that hold data sets."""
PACKAGED = ("lib*/python*/site-packages", "lib/python*/dist-packages", "local/lib/python*/dist-packages")
OURS = ("bench/data", "leaderboard")
"""Folders of this project with readers, generators and results: a method needs none of them."""


def data_folders(interpreter: Sequence[Path] | None = None, *, ours: bool = True) -> Iterator[Path]:
    """Folders with data, generators and results.

    Code of other authors must not look rows up in them.

    Args:
        interpreter: As for `confined`.
        ours: Folders of this project as well.
    """
    yield from (HOME / folder for folder in OURS if ours)
    shown = [*(python() if interpreter is None else interpreter), Path("/usr"), *search_path()]
    packages = dict.fromkeys(
        [*shown, *(found for place in shown for pattern in PACKAGED for found in place.glob(pattern))]
    )
    yield from (place / folder for place in packages for folder in DATA if (place / folder).is_dir())


def search_path() -> list[Path]:
    """The absolute entries of PYTHONPATH, without empty ones."""
    return [Path(entry).absolute() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


@cache
def _installed(entry: Path) -> tuple[Path, ...]:
    """Packages that installers put into a folder, by their RECORD files.

    All else stays hidden: the folder may be a home folder.
    """
    found: dict[str, None] = {}
    for record in sorted(entry.glob("*.dist-info/RECORD")):
        with record.open(newline="", encoding="utf-8", errors="replace") as lines:
            found |= dict.fromkeys(row[0].split("/")[0] for row in csv.reader(lines) if row)
    return tuple(entry / name for name in found if name not in ("", "..", ".") and (entry / name).exists())


def remedy() -> str:
    """Advice where sandboxes do not work."""
    if BWRAP is None:
        return INSTALL
    with contextlib.suppress(OSError):
        if RESTRICTED.read_text(encoding="ascii").strip() == "1":
            return (
                f"`sudo sysctl kernel.{RESTRICTED.name}=0`, on the host of a container, lets every program make user "
                "namespaces until the next start (docs/how-to/install.md, Sandboxes, allows bwrap alone)"
            )
    return "let bwrap make user namespaces here (docs/how-to/install.md, Sandboxes)"


@cache
def why_not() -> str | None:
    """The reason why sandboxes do not work here, or None."""
    if BWRAP is None:
        return "the program bwrap (of the package bubblewrap) is not installed"
    try:
        done = subprocess.run(
            confined(["true"], folder=None, files=(), device="cpu"), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"bwrap cannot be run ({type(error).__name__})"
    return None if done.returncode == 0 else f"bwrap fails here: {done.stderr.decode(errors='replace').strip()[:300]}"
