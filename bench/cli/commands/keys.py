"""`bench keys new | show`: a key pair to sign records, bundles and verdicts with."""

from __future__ import annotations

import argparse

from bench.results.signing_key import make_pair, public_of


def main(options: argparse.Namespace) -> int:
    """Write a key pair, or print the public half of a key."""
    if options.keys_verb == "show":
        print(public_of(options.file))
        return 0
    key, public = make_pair(options.file)
    print(f"{options.file}: the private key, for `bench run --sign`; keep it to yourself, and keep a copy")
    print(f"{public}: the public key, for readers of your records (--trusted)")
    print(f"public key {key.public}")
    return 0
