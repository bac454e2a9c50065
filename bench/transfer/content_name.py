"""What carried content is called at a target: by what it is, so that nothing there is ever changed, only added.

    records/KEY/SHA256.json        a record as it was written; KEY is its content key, SHA256 that of the file
    artefacts/KIND/KEY.json        an artefact's manifest, which names its tensors
    blobs/AA/SHA256                tensors, pictures and evidence by their hash; AA are its first two digits
    unfinished/SHA256-RANDOM       an upload on its way; it gets its name when all of it has arrived

What a record or a manifest names is there before it. No name holds a word that its author chose.
"""

from __future__ import annotations

import re

RECORD = re.compile(r"records/([0-9a-f]{32})/([0-9a-f]{64})\.json")
MANIFEST = re.compile(r"artefacts/([a-z]{1,40})/([0-9a-f]{32})\.json")
BLOB = re.compile(r"blobs/([0-9a-f]{2})/(\1[0-9a-f]{62})")
UNFINISHED = re.compile(r"unfinished/([0-9a-f]{64})-[0-9a-f]{16}")
KINDS = ("schemes", "detectors", "releases")
"""The artefacts that are carried."""

MOST_RECORD = 16 << 20
MOST_BESIDE = 64 << 20
MOST_TENSORS = 64 << 30
"""Bytes of a record or manifest, of a picture or evidence, and of an artefact's tensors: more is refused."""


def record_name(key: str, sha256: str) -> str:
    """Where a record lies."""
    return f"records/{key}/{sha256}.json"


def manifest_name(kind: str, key: str) -> str:
    """Where an artefact's manifest lies."""
    return f"artefacts/{kind}/{key}.json"


def blob_name(sha256: str) -> str:
    """Where other content lies.

    >>> BLOB.fullmatch(blob_name("ab" * 32)) is not None
    True
    """
    return f"blobs/{sha256[:2]}/{sha256}"


def known(name: str) -> bool:
    """Whether a push makes such a name."""
    return any(pattern.fullmatch(name) for pattern in (RECORD, MANIFEST, BLOB, UNFINISHED))
