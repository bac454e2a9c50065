"""`bench keygen`: a key pair to sign records with."""

from __future__ import annotations

import argparse

from bench.results.signing_key import make_pair


def main(options: argparse.Namespace) -> int:
    """Write both halves and say what each is for."""
    key, public = make_pair(options.file)
    print(f"{options.file}: the private key, for `bench run --sign`; keep it to yourself, and keep a copy")
    print(f"{public}: the public key, for those who read your records with --trusted")
    print(f"public key {key.public}")
    return 0
