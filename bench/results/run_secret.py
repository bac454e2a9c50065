"""The run secret: 32 bytes behind all keys of a results folder.

With the secret one can repeat the folder's runs to the last bit, and undo its releases; without it one can do neither.
Its commitment (`Secret.commitment`) stands in the inputs of every record and release. It is derived from the secret
alone. A salt would hide no more, because 256 bits are too many to try. Two folders with the
same secret show it on purpose, for their runs are one run.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

from bench.plugins.spec import UsageError
from bench.randomness import SECRET_BYTES, Secret
from bench.results.atomic_file import make_folder, remove_unfinished, write_once

ABOUT = "release.json"
MAKER = "veil-bench"
_MOST_BYTES = 1 << 20
_SAID = f'"made_by": "{MAKER} '.encode()


def outside_releases(secret: Path, what: str) -> None:
    """Raise UsageError if `what` would lie in a folder of `bench release`."""
    for folder in secret.absolute().resolve().parents:
        with suppress(OSError), (folder / ABOUT).open("rb") as about:
            if _SAID in about.read(_MOST_BYTES):
                raise UsageError(
                    f"{what} must stay secret, and {folder} is a release, to be published whole: name another place"
                )


FEWEST_BYTES = 16  # different ones among 32: of random bytes, about 30 are; fewer than 16 in one case in 10^17


def kept(path: Path) -> Secret | None:
    """The file's secret, or None without a file. Raises UsageError for others."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(content) >= SECRET_BYTES and _proved(found := Secret(content[:SECRET_BYTES])) == content:
        return found
    raise UsageError(
        f"{path} is not the run secret as it was written: put the file back, or start a new results folder"
    )


def keep(path: Path, wanted: Secret | None) -> Secret:
    """The file's secret, made if missing: `wanted`, or a fresh one.

    Two runs that start at once end up with the same: the file appears whole, and only once.

    Raises:
        UsageError: The file holds another secret than the one that is wanted, or would lie in a release.
    """
    if (found := kept(path)) is None:
        outside_releases(path, "the run secret of --results")
        make_folder(path.parent, mode=0o700)
        write_once(path, _proved(fresh() if wanted is None else wanted), mode=0o600)  # another run may be first
        found = kept(path)
        assert found is not None
    remove_unfinished(path)
    if wanted is not None and found != wanted:
        raise UsageError(f"{path.parent.parent} stands under another run secret: name that one, or another --results")
    return found


def _proved(secret: Secret) -> bytes:
    """The file's content: the secret, and its commitment as a checksum."""
    return secret.content + bytes.fromhex(secret.commitment())


def fresh() -> Secret:
    """A new secret from the operating system."""
    return Secret.fresh()


def of_hex(text: bytes) -> bytes:
    """The bytes of hex digits; none if they are no such digits."""
    try:
        return bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        return b""


def given(path: Path) -> Secret:
    """The secret in a user's file: 32 bytes, or 64 hex digits.

    Raises:
        UsageError: Anything else in it; others than its owner may read it; bytes that were hardly drawn at random.
    """
    if not path.is_file():
        raise UsageError(f"{path} is no file: it must hold the secret, which `bench run` draws itself without --secret")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"others than you may read the secret in {path}: chmod 600 {path}")
    content = path.read_bytes()
    if len(content) != SECRET_BYTES:
        content = of_hex(content)
    if len(content) != SECRET_BYTES:
        raise UsageError(f"{path} must hold {SECRET_BYTES} bytes, or {2 * SECRET_BYTES} hex digits, and nothing else")
    if len(set(content)) < FEWEST_BYTES:
        raise UsageError(
            f"the bytes in {path} were hardly drawn at random: only {len(set(content))} of {SECRET_BYTES} differ; "
            f"head -c {SECRET_BYTES} /dev/urandom > FILE makes a secret"
        )
    return Secret(content)
