"""`bench keys`: key pairs that sign records, bundles and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from bench.cli.parameters import switch
from bench.results.signing_key import make_pair, public_of
from bench.wire.text import shown


def new(file: Annotated[Path, switch("the private key; the public one is FILE.pub", metavar="FILE")], /) -> int:
    """Write a key pair."""
    key, public = make_pair(file)
    print(f"{shown(file)}: the private key, for `bench run --sign`; keep it to yourself, and keep a copy")
    print(f"{shown(public)}: the public key, for readers of your records (--trusted)")
    print(f"public key {key.public}")
    return 0


def show(file: Annotated[Path, switch("a private or public key", metavar="FILE")], /) -> int:
    """Print the public half of a key."""
    print(public_of(file))
    return 0
