"""The folder of a release, which is there to be published whole: no secret may be written into it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bench.plugins.spec import UsageError

ABOUT = "release.json"
MAKER = "veil-bench"
_MOST_BYTES = 1 << 20
_SAID = f'"made_by": "{MAKER} '.encode()


def outside_releases(secret: Path, what: str) -> None:
    """Raise UsageError where a file or folder, `what`, would lie in a folder that `bench release` wrote."""
    for folder in secret.absolute().resolve().parents:
        with suppress(OSError), (folder / ABOUT).open("rb") as about:
            if _SAID in about.read(_MOST_BYTES):
                raise UsageError(
                    f"{what} must stay secret, and {folder} is a release, to be published whole: name another place"
                )
