"""Whether an exception was raised because of a disk: it is full, or out of reach. Then the work itself is not at fault.

Whoever does jobs for others must tell the two apart: on a machine whose disk is full, every job fails at once, and such
a machine would soon have taken, and failed, all jobs that there are.
"""

from __future__ import annotations

import errno
import re

_NUMBERS = frozenset(
    number
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EIO", "ESTALE")
    if (number := getattr(errno, name, None)) is not None
)
_NUMPY = re.compile(r"[0-9]+ requested and [0-9]+ written")  # it gives no number
_RUST = re.compile(rf"\(os error ({'|'.join(map(str, sorted(_NUMBERS)))})\)")  # of safetensors, as text


def is_disk_failure(error: BaseException) -> bool:
    """Whether a disk is to blame for an exception, or for one that it followed from."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, OSError) and (found.errno in _NUMBERS or _NUMPY.fullmatch(str(found))):
            return True
        if type(found).__name__ == "SafetensorError" and _RUST.search(str(found)):
            return True
        found = found.__cause__ or found.__context__
    return False
