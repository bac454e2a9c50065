"""Filter of system calls for sandboxes (seccomp).

Two processes that see the same read-only file can signal each other by locks on it, by watching it, and by many other
calls whose effects no namespace bounds. The filter refuses these calls with EPERM, as if they were not permitted to
this user, so that libraries go on without them. Calls that ask whether bytes of a file are in the page cache, and those
that evict them, are refused too: what is left of that channel are times of reading.

Written out here, for libseccomp's binding for Python is no package of PyPI that installs without a compiler.
Sources: seccomp(2); linux/filter.h, linux/seccomp.h, linux/audit.h; the kernel's tables of system calls.
"""

from __future__ import annotations

__figures__ = False

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """An architecture's numbers.

    Args:
        audit: The kernel's name of it (`AUDIT_ARCH_...`).
        column: Of `CALLS`.
        beyond: Numbers from here on are another interface's: x32's, on x86-64.
    """

    audit: int
    column: int
    beyond: int = 1 << 30


ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture(0xC000003E, 0),
    "aarch64": Architecture(0xC00000B7, 1),
}
CALLS: Mapping[str, tuple[int | None, int | None]] = {
    # Locks and watches of files that others see
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "inotify_rm_watch": (255, 28), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # Queues, semaphores and memory by name
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "shmdt": (67, 197), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    # Other processes, and interfaces with faults of their own
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "bpf": (321, 280), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "lookup_dcookie": (212, 18), "modify_ldt": (154, None),
    "iopl": (172, None), "ioperm": (173, None), "vhangup": (153, 58), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "syslog": (103, 116), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162),
    # Namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "move_mount": (429, 429), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "statmount": (457, 457), "listmount": (458, 458),
    # Counters of the whole machine, and of its page cache
    "sysinfo": (99, 179), "statfs": (137, 43), "fstatfs": (138, 44), "ustat": (136, None), "mincore": (27, 232),
    "cachestat": (451, 451), "move_pages": (279, 239), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "settimeofday": (164, 170), "clock_settime": (227, 112),
}  # fmt: skip
"""Calls that are always refused: their numbers on x86-64 and on aarch64; None if they are not there."""
ABSENT: Mapping[str, tuple[int | None, int | None]] = {
    "flock": (73, 32), "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}  # fmt: skip
"""Calls that are said not to exist, as on another kernel; libraries then lock by files, clone and read as ever."""
IGNORED: Mapping[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
}  # fmt: skip
"""Calls that are answered as if done, for copying a file makes them: modes and times of devices are the machine's."""
NO_ATTRIBUTES: Mapping[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
}  # fmt: skip
"""Calls that are answered as by a file system without attributes."""
NAMESPACES = 0x7E020080
"""Flags of `clone` that make namespaces."""


@dataclass(frozen=True)
class Part:
    """A call that is refused for some values of an argument.

    Args:
        numbers: The call's, by architecture.
        argument: Which argument, from 0.
        values: That are refused; the kernel looks at 32 bits.
        mask: Bits that are refused instead, if any is set.
        only: The one value that is not refused instead.
    """

    numbers: tuple[int, int]
    argument: int
    values: Sequence[int] = ()
    mask: int = 0
    only: int | None = None


PARTS: Mapping[str, Part] = {
    # F_GETLK, F_SETLK, F_SETLKW, F_SETOWN, F_SETSIG, F_SETOWN_EX, F_OFD_*, F_SETLEASE, F_GETLEASE, F_NOTIFY
    "fcntl": Part((72, 25), 1, (5, 6, 7, 8, 10, 12, 13, 14, 15, 36, 37, 38, 1024, 1025, 1026)),
    # AF_UNIX: workers that load data hand over memory by them. Their names are files of the sandbox's own, or of its
    # own network namespace; no namespace bounds some other families.
    "socket": Part((41, 198), 0, only=1),
    "clone": Part((56, 220), 0, mask=NAMESPACES),
    "fadvise64": Part((221, 223), 3, (4, 5)),  # POSIX_FADV_DONTNEED, POSIX_FADV_NOREUSE
    "madvise": Part((28, 233), 2, (20, 21)),  # MADV_COLD, MADV_PAGEOUT
    "preadv2": Part((327, 286), 5, mask=0x8),  # RWF_NOWAIT
}
"""(aarch64 takes `clone`'s flags first, as x86-64 does.)"""

# The packet filter's instructions, and the places of what they load: `struct seccomp_data`.
LOAD, EQUAL, AT_LEAST, SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, AUDIT, ARGUMENTS = 0, 4, 16
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
Line = tuple[int, int, int, int]
_INSTRUCTION = struct.Struct("=HBBI")


def architecture() -> Architecture | None:
    """This machine's, if the filter is written for it; else None."""
    return ARCHITECTURES.get(platform.machine()) if struct.calcsize("P") == 8 else None


def program(here: Architecture) -> bytes:
    """The filter as instructions of the kernel's packet filter."""
    refused, absent, ignored, unsupported = (
        (RETURN, 0, 0, REFUSE | number) for number in (errno.EPERM, errno.ENOSYS, 0, errno.EOPNOTSUPP)
    )
    tables: tuple[tuple[Mapping[str, tuple[int | None, int | None]], Line], ...] = (
        (CALLS, refused), (ABSENT, absent), (IGNORED, ignored), (NO_ATTRIBUTES, unsupported),
    )  # fmt: skip
    lines = [
        (LOAD, 0, 0, AUDIT), (EQUAL, 1, 0, here.audit), (RETURN, 0, 0, KILL),  # 32-bit programs
        (LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, here.beyond), absent,
    ]  # fmt: skip
    for table, answer in tables:
        for numbers in table.values():
            if (number := numbers[here.column]) is not None:
                lines += [(EQUAL, 0, 1, number), answer]
    for part in PARTS.values():
        lines += _part(part, part.numbers[here.column], refused)
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)


def _part(part: Part, number: int, refused: Line) -> Iterator[Line]:
    tests = [(SET, part.mask)] if part.mask else [(EQUAL, value) for value in part.values]
    inner: list[Line] = [(LOAD, 0, 0, ARGUMENTS + 8 * part.argument)]  # its lower half: both are little-endian
    if part.only is not None:
        inner += [(EQUAL, 1, 0, part.only), refused]
    for code, value in tests:
        inner += [(code, 0, 1, value), refused]
    inner.append((LOAD, 0, 0, NUMBER))
    yield EQUAL, 0, len(inner), number
    yield from inner
