"""A user's Ed25519 key: the private half signs records, the public verifies.

Both are PEM files as other programs write them (`openssl pkey -in FILE -text`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.disk.atomic_file import read_plain, write_new
from bench.disk.disk_errors import unread
from bench.plugins.spec import UsageError
from bench.results.run_secret import outside_releases

if TYPE_CHECKING:  # cryptography is loaded only by those who sign or read signatures
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


@dataclass(frozen=True)
class SigningKey:
    """The private half, for writers of records, never for workers with plug-ins."""

    secret: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> str:
        """The public half, 64 hex digits."""
        return self.secret.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """128 hex digits."""
        return self.secret.sign(message).hex()

    @classmethod
    def read(cls, path: Path) -> SigningKey:
        """The key in a file.

        Raises:
            UsageError: There is none, or others than its owner may read it.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            if os.name == "posix" and path.is_file() and path.stat().st_mode & 0o077:
                raise UsageError(f"others may read the signing key {path}: run `chmod 600` on it, or make another one")
            secret = load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(
                f"cannot read the signing key {path}: {unread(error)}; `bench keys new` makes one"
            ) from error
        if not isinstance(secret, Ed25519PrivateKey):
            raise UsageError(
                f"{path} must hold an Ed25519 key, got {type(secret).__name__}; `bench keys new` makes one"
            )
        return cls(secret)


def make_pair(path: Path) -> tuple[SigningKey, Path]:
    """Draw a key: private half into `path` (0600), public into `.pub` beside.

    Raises:
        UsageError: One of the files is there already (nothing is overwritten), or it would lie in a release.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    public = path.with_name(f"{path.name}.pub")
    if there := [each for each in (path, public) if each.exists() or each.is_symlink()]:
        raise UsageError(f"{there[0]} is there already, and a key is never overwritten: name another file")
    outside_releases(path, "a private key")
    key = SigningKey(Ed25519PrivateKey.generate())
    write_new(path, key.secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)
    pem = key.secret.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_new(public, pem, mode=0o644)
    return key, public


def read_public(path: Path) -> str:
    """The public key in a file, 64 hex digits. Raises UsageError."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(read_plain(path))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read the public key {path}: {unread(error)}; `bench keys new` writes it as FILE.pub"
        ) from error
    if not isinstance(found, Ed25519PublicKey):
        raise UsageError(f"{path} must hold an Ed25519 public key, got {type(found).__name__}")
    return found.public_bytes_raw().hex()


def public_of(path: Path) -> str:
    """The public half of a key file, 64 hex digits. Raises UsageError."""
    private = path.is_file() and b"PRIVATE KEY" in path.read_bytes()
    return SigningKey.read(path).public if private else read_public(path)


def verifies(public: str, signature: str, message: bytes) -> bool:
    """True if the public key's owner signed it; False for invalid keys."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        known: Ed25519PublicKey = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        known.verify(bytes.fromhex(signature), message)
    except (ValueError, InvalidSignature):
        return False
    return True
