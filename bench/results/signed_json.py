"""JSON with a digest of all bytes, and optionally a signature.

The digest reveals accidents (a failing disk, an editor, half a copy). It does not stop a forger, who computes another
one. A signature does, for readers who know whose public key to expect: without that, the forger
may have signed the file anew, or taken the signature away.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue
from pydantic_core import from_json

from bench.results.signing_key import SigningKey, verifies

DIGEST, SIGNATURE = "digest", "signature"
STAMP = "# digest: "
Content = Mapping[str, JsonValue]


class AlteredError(Exception):
    """Content is not what was written; the text names no files."""


def attest(content: Content, kind: str, signer: SigningKey | None = None) -> dict[str, JsonValue]:
    """The content with a new `digest` and, with a signer, a `signature`.

    `kind` says what it is, and may hold its name: the digest or signature of one thing never stands for another.
    """
    bare = {name: value for name, value in content.items() if name not in (DIGEST, SIGNATURE)}
    if signer is not None:
        bare[SIGNATURE] = {"public_key": signer.public, "value": signer.sign(_message(bare, kind))}
    return {**bare, DIGEST: hashlib.sha256(_message(bare, kind)).hexdigest()}


def written(content: Content) -> bytes:
    """The content as text: sorted keys, two spaces, a final newline."""
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def parsed(text: bytes) -> dict[str, JsonValue]:
    """The JSON object in `text`, not yet checked.

    Raises:
        AlteredError: It is none.
    """
    try:
        content = from_json(text)
    except ValueError:  # the slower parser takes more (half a surrogate pair), and says more clearly what is wrong
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise AlteredError(f"it is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise AlteredError(f"it must hold a JSON object, got {type(content).__name__}")
    return content


def check(content: Content, text: bytes, kind: str) -> None:
    """Compare `parsed` content with the written text, byte by byte.

    Raises:
        AlteredError: It carries no digest or another one, its values are written in another way, or its signature is
            wrong.
    """
    stated, signature = content.get(DIGEST), content.get(SIGNATURE)
    if not isinstance(stated, str):
        raise AlteredError("it carries no digest")
    try:
        covered = {name: value for name, value in content.items() if name != DIGEST}
        line = f'\n  "{DIGEST}": {json.dumps(stated)},\n'.encode()
        # Lines of the outermost object alone begin so: what the digest covers is the text without its own.
        found = _bytes_digest(text.replace(line, b"\n", 1), kind)
        # As texts hold no bare line break, what goes with those here is only how values are laid out.
        same = found == stated and re.sub(rb"\n *", b"", text) == _on_one_line(content)
        if not same:
            same = written(content) == text
            found = found if same and line in text else _bytes_digest(written(covered), kind)
    except (ValueError, RecursionError) as error:
        raise AlteredError(f"it is no JSON that was written here: {error}") from error
    if found != stated:
        raise AlteredError(
            f"it was altered or moved since it was written: its digest is {found[:16]}, and it states {stated[:16]}"
        )
    if not same:
        raise AlteredError("it was altered since it was written: spaces, escapes or the order of its keys changed")
    if signature is not None:
        parts = cast("Mapping[str, object]", signature) if isinstance(signature, dict) else {}
        unsigned = {name: value for name, value in covered.items() if name != SIGNATURE}
        if not verifies(str(parts.get("public_key")), str(parts.get("value")), _message(unsigned, kind)):
            raise AlteredError("its signature does not verify: it was altered after it was signed, or never signed so")


def read(text: bytes, kind: str) -> dict[str, JsonValue]:
    """The content of an attested file, without digest and signature. Raises AlteredError."""
    content = parsed(text)
    check(content, text, kind)
    return {name: value for name, value in content.items() if name not in (DIGEST, SIGNATURE)}


def signer(text: bytes) -> str | None:
    """The signer of a text that `read` took; None if unsigned."""
    signature = parsed(text).get(SIGNATURE)
    return str(signature["public_key"]) if isinstance(signature, dict) else None


def _on_one_line(content: Content) -> bytes:
    """The bytes of `written` without line breaks, much faster."""
    return json.dumps(content, sort_keys=True, separators=(",", ": ")).encode()


def stamped(text: str, kind: str) -> bytes:
    """Text of another form (YAML) below a comment with its digest."""
    return f"{STAMP}{_bytes_digest(text.encode(), kind)}\n{text}".encode()


def unstamped(content: bytes, kind: str) -> str:
    """The text below a digest. Raises AlteredError if it was altered."""
    first, _, rest = content.partition(b"\n")
    if not first.startswith(STAMP.encode()):
        raise AlteredError("it carries no digest")
    if first != f"{STAMP}{_bytes_digest(rest, kind)}".encode():
        raise AlteredError("it was altered or moved since it was written: its digest does not match")
    return rest.decode()


def _bytes_digest(text: bytes, kind: str) -> str:
    return hashlib.sha256(f"veil-bench {kind}\n".encode() + text).hexdigest()


def _message(content: Content, kind: str) -> bytes:
    return f"veil-bench {kind}\n".encode() + written(content)


Inputs = Mapping[str, JsonValue]


def content_key(inputs: Inputs) -> str:
    """32 hex digits for a set of inputs, independent of their order.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
