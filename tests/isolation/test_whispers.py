"""Processes in two sandboxes share nothing that one can write and the other read; what is refused, is so politely."""

from __future__ import annotations

import errno
import struct
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench import sandbox, seccomp_filter
from bench.isolation.room import DiedError, Room
from bench.sandbox import confined, empty_caches, why_not, why_unfiltered, why_whispers
from bench.seccomp_filter import Architecture

needs_filter = pytest.mark.skipif(
    why_not() is not None or why_unfiltered() is not None, reason=f"no sandbox here: {why_not() or why_unfiltered()}"
)
START = """
import ctypes, fcntl, os, signal, socket, struct, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
shared = open(os.__file__, "rb")  # a file of Python, read-only, which every room sees
def call(name, *values):
    found = libc.syscall(NUMBERS[name], *values)
    return found if found >= 0 else -ctypes.get_errno()
"""


def inside(code: str) -> str:
    """What a program prints in a sandbox; an OSError is printed as its name."""
    done = subprocess.run(command(code), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def command(code: str) -> list[str]:
    """The line that runs a program in a sandbox."""
    column = seccomp_filter.architecture().column  # type: ignore[union-attr]
    tables = (seccomp_filter.CALLS, seccomp_filter.ABSENT, seccomp_filter.IGNORED, seccomp_filter.NO_ATTRIBUTES)
    numbers = {name: each[column] for table in tables for name, each in table.items()}
    numbers |= {name: part.numbers[column] for name, part in seccomp_filter.PARTS.items()}
    ask = f"NUMBERS = {numbers}\n{START}\nimport errno\ntry:\n{textwrap.indent(textwrap.dedent(code), '    ')}\n"
    ask += "except OSError as error: print(errno.errorcode[error.errno])\n"
    return confined([sys.executable, "-I", "-S", "-c", ask], folder=None, files=(), device="cpu")


CHANNELS = {
    "F_SETLK": "fcntl.fcntl(shared, fcntl.F_SETLK, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 5, 1, 0))",
    "F_SETLKW": "fcntl.lockf(shared, fcntl.LOCK_SH, 1, 9)",
    "F_GETLK": "fcntl.fcntl(shared, fcntl.F_GETLK, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 5, 1, 0))",
    "F_OFD_SETLK": "fcntl.fcntl(shared, 37, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 5, 1, 0))",
    "F_OFD_GETLK": "fcntl.fcntl(shared, 36, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 5, 1, 0))",
    "high bits of a command": "print(call('fcntl', shared.fileno(), (7 << 32) + 5, 0)); raise OSError(1, '')",
    "F_SETLEASE": "fcntl.fcntl(shared, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "F_GETLEASE": "fcntl.fcntl(shared, fcntl.F_GETLEASE)",
    "F_NOTIFY": "fcntl.fcntl(os.open('/usr', 0), fcntl.F_NOTIFY, 1)",
    "F_SETOWN": "fcntl.fcntl(shared, fcntl.F_SETOWN, 1)",
    "locks of a device": "fcntl.lockf(open('/dev/null'), fcntl.LOCK_SH)",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "network socket": "socket.socket()",
    "free bytes of a disk": "os.statvfs('/usr')",
    "page cache by preadv2": "os.preadv(shared.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)",
    "evicting pages": "os.posix_fadvise(shared.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)",
}
BY_NUMBER = (
    "inotify_init1", "inotify_add_watch", "fanotify_init", "userfaultfd", "ptrace", "process_vm_readv", "keyctl",
    "add_key", "perf_event_open", "bpf", "msgget", "semget", "shmget", "mq_open", "unshare", "setns", "mount", "kcmp",
    "mincore", "sysinfo", "name_to_handle_at", "pidfd_getfd", "process_madvise", "cachestat", "fstatfs", "open_tree",
)  # fmt: skip


@needs_filter
@pytest.mark.parametrize("channel", CHANNELS)
def test_what_two_processes_share_by_one_file_is_not_permitted(channel: str) -> None:
    assert inside(CHANNELS[channel]).splitlines()[-1] == "EPERM"


@needs_filter
def test_unix_sockets_reach_no_other_sandbox(tmp_path: Path) -> None:
    """They are left to workers that load data: by name in a folder of its own, or in a network of its own."""
    listen = """
        import time
        for name in ("/tmp/heard", chr(0) + "heard"):
            each = socket.socket(socket.AF_UNIX)
            each.bind(name)
            each.listen()
            globals()[name] = each
        print("listening", flush=True)
        time.sleep(600)
    """
    ear = subprocess.Popen(command(listen), stdout=subprocess.PIPE, text=True)
    try:
        assert ear.stdout is not None
        assert ear.stdout.readline() == "listening\n"
        assert inside("socket.socket(socket.AF_UNIX).connect('/tmp/heard')") == "ENOENT"
        assert inside("socket.socket(socket.AF_UNIX).connect(chr(0) + 'heard')") == "ECONNREFUSED"
    finally:
        ear.kill()
        ear.wait()


@needs_filter
def test_calls_by_number_are_refused_and_newer_ones_are_not_there() -> None:
    found = inside(f"print(*(call(name, 0, 0, 0, 0, 0, 0) for name in {BY_NUMBER}))")
    assert found.split() == ["-1"] * len(BY_NUMBER)
    absent = tuple(seccomp_filter.ABSENT)
    assert inside(f"print(*(call(name, 0, 0, 0, 0, 0, 0) for name in {absent}))").split() == ["-38"] * len(absent)
    assert inside("print(call('clone', 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0))") == "-1"  # CLONE_NEWUSER


@needs_filter
@pytest.mark.skipif(seccomp_filter.platform.machine() != "x86_64", reason="of x86-64")
def test_other_interfaces_of_the_kernel_are_closed() -> None:
    assert inside("print(libc.syscall((1 << 30) + 39) , ctypes.get_errno())") == "-1 38"  # x32's getpid
    wipe = (
        "import mmap; code = mmap.mmap(-1, 4096, prot=7); code.write(bytes.fromhex('b814000000cd80c3'))\n"
        "if os.fork() == 0: ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()\n"
        "print(os.WTERMSIG(os.wait()[1]))"
    )
    assert inside(wipe) == "31"  # int 0x80: SIGSYS


@needs_filter
def test_modes_times_and_attributes_of_shared_devices_stay() -> None:
    device = Path("/dev/null").stat()
    code = "os.chmod('/dev/null', 0); os.utime('/dev/null', (5, 5)); os.setxattr('/dev/null', 'user.a', b'')"
    assert inside(code) in ("EOPNOTSUPP", "ENOTSUP")
    now = Path("/dev/null").stat()
    assert (now.st_mode, now.st_mtime_ns) == (device.st_mode, device.st_mtime_ns)


@needs_filter
def test_counters_of_the_machine_are_not_shown() -> None:
    code = """
        for folder, _, names in os.walk("/proc"):
            if folder.split("/")[2:3] and folder.split("/")[2] in ("self", "thread-self", *map(str, range(10000))):
                continue
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    continue
                try:
                    if open(path, "rb").read(1):
                        print(name)
                except OSError:
                    pass
    """
    shown = set(inside(code).split())
    assert shown <= {"cpuinfo", "filesystems", "version", "devices", "loadavg", "uptime", "stat", "meminfo"}
    ask = "print(*(open(f'/proc/{name}').read() for name in ('loadavg', 'uptime', 'stat', 'meminfo')))"
    held = bytearray(1 << 28)
    assert inside(ask) == inside(ask)
    del held


@needs_filter
def test_libraries_go_on_without_what_is_refused() -> None:
    """Pairs of sockets, threads, processes, copies of files, private memory and its seals."""
    code = """
        import mmap, multiprocessing, shutil, threading
        a, b = socket.socketpair()
        a.send(b"x")
        assert b.recv(1) == b"x"
        threads = [threading.Thread(target=print, args=("thread",)) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        queue = multiprocessing.get_context("fork").Queue()
        child = multiprocessing.get_context("fork").Process(target=queue.put, args=(7,))
        child.start()
        assert queue.get() == 7
        child.join()
        shutil.copy2(os.__file__, "/tmp/copy.py")
        os.chmod("/tmp/copy.py", 0o700)
        memory = os.memfd_create("m", os.MFD_ALLOW_SEALING)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
        fcntl.fcntl(memory, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"1")
        mapped = mmap.mmap(-1, 1 << 16)
        mapped.madvise(mmap.MADV_DONTNEED)
        print(os.cpu_count() > 0, open("/dev/null", "w").write("x"))
    """
    found = inside(code)
    assert found.splitlines()[-1] == "True 1"


@needs_filter
def test_torch_trains_and_locks_of_packages_fail_softly() -> None:
    code = """
        import torch
        from filelock import FileLock
        layer = torch.nn.Conv2d(1, 4, 3)
        loss = layer(torch.rand(8, 1, 16, 16)).square().mean()
        loss.backward()
        torch.save(layer.state_dict(), "/tmp/layer.pt")
        torch.load("/tmp/layer.pt", weights_only=True)
        print(len(list(torch.utils.data.DataLoader(torch.arange(8), batch_size=2, num_workers=2))))
        print(torch.get_num_threads() > 0, torch.rand(512, 512).mm(torch.rand(512, 512)).isfinite().all().item())
        with FileLock("/tmp/lock", timeout=9):  # goes on with a file instead
            print("locked")
    """
    line = confined([sys.executable, "-c", textwrap.dedent(code)], folder=None, files=(), device="cpu")
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "True", "True", "locked"]


def test_the_program_skips_whole_tests_of_arguments() -> None:
    """Every jump of the filter lands on an instruction, on both architectures."""
    for here in seccomp_filter.ARCHITECTURES.values():
        code = seccomp_filter.program(here)
        lines = [seccomp_filter._INSTRUCTION.unpack_from(code, at) for at in range(0, len(code), 8)]
        jumps = [(at + 1 + max(line[1:3]), line) for at, line in enumerate(lines) if line[0] & 7 == 5]
        assert jumps
        assert all(target < len(lines) for target, _ in jumps)
        assert lines[-1] == (seccomp_filter.RETURN, 0, 0, seccomp_filter.ALLOW)


REFUSED, ABSENT, IGNORED, WITHOUT = (
    seccomp_filter.REFUSE | number for number in (errno.EPERM, errno.ENOSYS, 0, errno.EOPNOTSUPP)
)
USUAL: Mapping[str, tuple[int, int]] = {  # of the kernel's own tables; PyTorch and Python cannot do without
    "read": (0, 63), "write": (1, 64), "openat": (257, 56), "mmap": (9, 222), "mprotect": (10, 226),
    "futex": (202, 98), "execve": (59, 221), "ioctl": (16, 29), "getrandom": (318, 278), "rseq": (334, 293),
    "clock_gettime": (228, 113), "sched_getaffinity": (204, 123), "membarrier": (324, 283), "wait4": (61, 260),
    "connect": (42, 203), "memfd_create": (319, 279), "pipe2": (293, 59), "prctl": (157, 167),
}  # fmt: skip


def answer(here: Architecture, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the kernel does with a call: its packet filter, one instruction after the other (Documentation/networking/
    filter.rst), on `struct seccomp_data`: the number, the architecture, the instruction's place, six arguments."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, here.audit if audit is None else audit, 0, *padded)
    code, held, at = seccomp_filter.program(here), 0, 0
    for _ in range(len(code) // 8):
        operation, true, false, constant = struct.unpack_from("<HBBI", code, 8 * at)
        at += 1
        if operation == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            (held,) = struct.unpack_from("<I", data, constant)
        elif operation == 0x06:  # BPF_RET | BPF_K
            return int(constant)
        else:  # BPF_JMP | BPF_K, with BPF_JEQ, BPF_JGE or BPF_JSET
            holds = {0x15: held == constant, 0x35: held >= constant, 0x45: bool(held & constant)}[operation]
            at += true if holds else false
    raise AssertionError("the program has no end")


@pytest.mark.parametrize("name", seccomp_filter.ARCHITECTURES)
def test_every_call_gets_its_answer_on_both_architectures(name: str) -> None:
    here = seccomp_filter.ARCHITECTURES[name]
    for table, wanted in (
        (seccomp_filter.CALLS, REFUSED), (seccomp_filter.ABSENT, ABSENT), (seccomp_filter.IGNORED, IGNORED),
        (seccomp_filter.NO_ATTRIBUTES, WITHOUT),
    ):  # fmt: skip
        numbers = [numbers[here.column] for numbers in table.values()]
        assert {answer(here, number) for number in numbers if number is not None} == {wanted}
    assert {answer(here, numbers[here.column]) for numbers in USUAL.values()} == {seccomp_filter.ALLOW}


@pytest.mark.parametrize("name", seccomp_filter.ARCHITECTURES)
@pytest.mark.parametrize(
    ("call", "arguments", "allowed"),
    [
        ("fcntl", (3, 6), False), ("fcntl", (3, 37), False), ("fcntl", (3, 3), True), ("fcntl", (3, 1030), True),
        ("socket", (1, 1, 0), True), ("socket", (2, 1, 0), False), ("socket", (16, 3, 0), False),
        ("clone", (0x003D0F00,), True), ("clone", (0x10000000,), False), ("clone", (0x01200011,), True),
        ("fadvise64", (3, 0, 0, 4), False), ("fadvise64", (3, 0, 0, 3), True),
        ("madvise", (0, 4096, 21), False), ("madvise", (0, 4096, 4), True),
        ("preadv2", (3, 0, 0, 0, 0, 8), False), ("preadv2", (3, 0, 0, 0, 0, 0), True),
        ("socket", ((1 << 32) + 1, 1, 0), True),  # the kernel looks at 32 bits of it, and so does the filter
        ("fcntl", (3, (1 << 32) + 6), False),
    ],
)  # fmt: skip
def test_calls_are_refused_by_their_arguments_on_both_architectures(
    name: str, call: str, arguments: tuple[int, ...], allowed: bool
) -> None:
    here = seccomp_filter.ARCHITECTURES[name]
    number = seccomp_filter.PARTS[call].numbers[here.column]
    assert answer(here, number, *arguments) == (seccomp_filter.ALLOW if allowed else REFUSED)


def test_programs_of_another_interface_do_not_run() -> None:
    arm, intel = seccomp_filter.ARCHITECTURES["aarch64"], seccomp_filter.ARCHITECTURES["x86_64"]
    for here, others in ((intel, (0x40000003, arm.audit)), (arm, (0x40000028, intel.audit))):  # i386, ARM of 32 bits
        assert {answer(here, 63, audit=other) for other in others} == {seccomp_filter.KILL}
    assert answer(intel, (1 << 30) + 1) == ABSENT  # x32


@pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
def test_a_sandbox_with_an_accelerator_shows_no_counters_of_the_machine_below_sys() -> None:
    places = [place for place in sandbox.COUNTERS if Path(place).is_dir()]
    assert any(any(Path(place).iterdir()) for place in places)
    for device, wanted in (("cuda", "0"), ("cpu", "absent")):
        look = 'test -d /sys/devices || { echo absent; exit; }; for place in "$@"; do ls -A "$place"; done | wc -l'
        line = confined(["sh", "-c", look, "sh", *places], folder=None, files=(), device=device)
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert (done.stdout.strip(), done.returncode) == (wanted, 0), done.stderr


@pytest.mark.parametrize("end", ["kill -SYS $$", "exit 159"])  # as bubblewrap passes the signal on
def test_a_program_that_the_filter_kills_is_explained(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room = object.__new__(Room)
    room._process = subprocess.Popen(["sh", "-c", end])
    monkeypatch.setattr(Room, "close", lambda room: None)
    with pytest.raises(DiedError, match=r"SIGSYS .a program of 32 bits.* use one of 64 bits"):
        room._died()


def test_another_architecture_is_without_a_filter_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setattr("bench.sandbox.BWRAP", "bwrap")
    assert why_unfiltered() == "no filter of system calls is written for riscv64"
    assert "no filter of system calls" in str(why_whispers())
    assert "--seccomp" not in confined(["true"], folder=None, files=(), device="cpu")


def test_caches_that_cannot_be_emptied_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("bench.sandbox.CACHES", tmp_path / "none")
    empty_caches()
    assert "which only root may empty, pass on 5,000 bits a second" in str(why_whispers())
    (tmp_path / "none").touch()
    empty_caches()
    assert (tmp_path / "none").read_text() == "3"
    assert why_whispers() == why_unfiltered()
