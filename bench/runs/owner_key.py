"""The owner's key file: it encodes new images and decodes predictions.

The file is safetensors of `Key.state`, with the SHA-256 of its release.json and of its scheme among its metadata, so
that the key of another release is told at once. With a passphrase it is encrypted: AES-256-GCM under a key by scrypt
(RFC 7914) from the passphrase and a fresh salt.
"""

from __future__ import annotations

__figures__ = False

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from safetensors import SafetensorError
from safetensors.torch import load, save

from bench.data.csv_tables import read_table
from bench.data.recorded_rows import Rows
from bench.disk.atomic_file import read_plain, write_new
from bench.plugins import registry
from bench.plugins.spec import PluginSpec, UsageError
from bench.randomness import Secret
from bench.results.run_secret import ABOUT, MAKER, outside_releases
from bench.runs.release_files import altered, sha256_of, table_text
from bench.types import Extractor, Key, Method, State
from bench.wire.tensor_file import TensorsError, unpack_tensors, write_tensors

MAGIC = b"VEILKEY1"
SALT, NONCE = 16, 12
COST = 2**16  # scrypt's n: 64 MiB, about a third of a second
FEWEST_LETTERS = 8
RELEASE, SCHEME = "release.json sha256", "scheme sha256"
PAPER = "paper"
T = TypeVar("T")
HASH = "_sha256"
"""Ends the name of a parameter that holds the hash of the file that another one names."""


def packed_key(state: State, *, release: str, scheme: str, passphrase: str | None) -> bytes:
    """The content of a key file.

    Args:
        state: Of the key.
        release: SHA-256 (hex) of release.json.
        scheme: SHA-256 (hex) of the scheme, or "none".
        passphrase: None leaves the file open.
    """
    told = {"made_by": MAKER, RELEASE: release, SCHEME: scheme}
    content = _with_metadata(state, told)
    if passphrase is None:
        return content
    salt, nonce = os.urandom(SALT), os.urandom(NONCE)
    return MAGIC + salt + nonce + AESGCM(_derived(passphrase, salt)).encrypt(nonce, content, MAGIC)


def _with_metadata(state: State, told: Mapping[str, str]) -> bytes:
    """A safetensors file with metadata in a fixed order."""
    file = io.BytesIO()
    write_tensors(file, state)
    content = file.getvalue()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps({"__metadata__": dict(told), **json.loads(content[8:end])}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]


def read_passphrase(path: Path | None) -> str | None:
    """The first line of a file; None without one.

    Raises:
        UsageError: It is shorter than 8 letters.
    """
    if path is None:
        return None
    lines = read_plain(path).decode("utf-8").splitlines()
    if not lines or len(lines[0]) < FEWEST_LETTERS:
        raise UsageError(f"the first line of {path} must be a passphrase of at least {FEWEST_LETTERS} letters")
    return lines[0]


def opened_key(path: Path, passphrase: str | None) -> tuple[State, Mapping[str, str]]:
    """Tensors and metadata of a key file.

    Raises:
        UsageError: It is none, or encrypted and not opened by this passphrase.
    """
    content = read_plain(path)
    if content.startswith(MAGIC):
        if passphrase is None:
            raise UsageError(f"{path} is encrypted: name a file with its passphrase by --passphrase")
        at = len(MAGIC) + SALT
        try:
            cipher = AESGCM(_derived(passphrase, content[len(MAGIC) : at]))
            content = cipher.decrypt(content[at : at + NONCE], content[at + NONCE :], MAGIC)
        except InvalidTag:
            raise UsageError(f"{path} is not opened by this passphrase, or the file was changed") from None
    try:
        size = int.from_bytes(content[:8], "little")
        told = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        return load(content), told
    except (SafetensorError, ValueError, KeyError, AttributeError):
        raise UsageError(f"{path} must be the key file of a release, and it is no safetensors file") from None


def _derived(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=COST, r=8, p=1).derive(passphrase.encode())


@dataclass(frozen=True, eq=False)
class Release:
    """A release folder with a key: all that encoding and decoding need.

    Args:
        folder: The release.
        about: release.json.
        key: The owner's; a fresh one where its secret is noise alone.
        fresh: Whether the key is a fresh one.
    """

    folder: Path
    about: Mapping[str, Any]
    key: Key
    fresh: bool

    @classmethod
    def open(cls, folder: Path, key: Path | None, passphrase: str | None) -> Release:
        """The release of a folder.

        Raises:
            UsageError: No release of this project, a changed one, or the key of another one.
        """
        about = _checked(folder)
        told = about["method"]
        spec = PluginSpec(str(told["name"]), None, tuple(parameters_of(told["parameters"]).items()))
        method = registry.build("methods", spec, PAPER)
        assert isinstance(method, Method)
        scheme = method.load(_tensors(folder / "scheme.safetensors"))
        if key is None:
            if about.get("secret") == "kept":
                raise UsageError("this release has a secret, which encodes and decodes: name its file by --key")
            return cls(folder, about, scheme.sample_key(Secret.fresh()), True)
        state, bound = opened_key(key, passphrase)
        if bound.get(RELEASE) != sha256_of(folder / ABOUT):
            raise UsageError(f"{key} is the key of another release than {folder}: its {ABOUT} has another SHA-256")
        return cls(folder, about, scheme.load_key(state), False)

    def queries(self, images: Path) -> tuple[torch.Tensor, Sequence[str]]:
        """New rows in their released form, and their files.

        Args:
            images: A folder of image files, release.npy or release.safetensors of raw rows.
        """
        if not images.is_dir():
            raise UsageError(f"{images} is no folder: name one with the new images, or with release.npy of raw rows")
        rows = Rows.found(images)
        read = self.about.get("features")
        shape = tuple(read["images"] if read is not None else self.about["raw_shape"])
        samples = rows.samples(shape)
        if tuple(samples.shape[1:]) != shape:
            raise UsageError(f"expected rows of shape {shape}, as were released, got {tuple(samples.shape[1:])}")
        if read is not None:
            spec = PluginSpec(str(read["name"]), None, tuple(read["parameters"].items()))
            extractor = registry.build("features", spec, PAPER)
            assert isinstance(extractor, Extractor)
            samples = extractor.load(_tensors(self.folder / "features.safetensors")).embed(samples)
        with torch.no_grad():
            return self.key.query(samples), rows.names

    def decoded(self, predictions: Path) -> torch.Tensor:
        """Predictions (n, k) of real labels, from a table of coded ones.

        Raises:
            UsageError: Another table than one column a finding with numbers from 0 to 1.
        """
        findings = [str(name) for name in self.about["findings"]]
        cells = read_table(predictions, findings)
        try:
            scores = torch.tensor(cells[findings].astype(float).to_numpy(), dtype=torch.float32)
        except ValueError:
            raise UsageError(f"{predictions.name}: predictions must be numbers, one column a finding") from None
        bad = ~((scores >= 0) & (scores <= 1)).all(dim=1)
        if bool(bad.any()):
            line = int(cells.index[int(bad.nonzero()[0])])
            raise UsageError(
                f"{predictions.name}: line {line}: predictions must be numbers from 0 to 1 ({int(bad.sum())} such "
                "lines): a code swaps yes and no by 1 - p"
            )
        return self.key.decode(scores)


def write_queries(out: Path, samples: torch.Tensor, names_out: Path, names: Sequence[str]) -> None:
    """Write queries to a new file, and their images to another."""
    if names:
        _write_table(names_out, ["query", "file"], list(enumerate(names)))
    try:
        write_new(out, save({"samples": samples.detach().cpu().contiguous()}), mode=0o644)
    except BaseException:
        if names:
            names_out.unlink()
        raise


def write_predictions(out: Path, scores: torch.Tensor, findings: Sequence[str], names: Path | None) -> None:
    """Write decoded predictions, with the names of a kept table.

    Raises:
        UsageError: The table has another number of lines.
    """
    files: list[list[str]] = [[str(row)] for row in range(len(scores))]
    if names is not None:
        kept = read_table(names, ["query", "file"])
        if len(kept) != len(scores):
            raise UsageError(f"{names.name} names {len(kept)} queries, and there are {len(scores)} predictions")
        files = [[name] for name in kept["file"]]
    head = "query" if names is None else "file"
    lines = [[*name, *(f"{score:.6g}" for score in row)] for name, row in zip(files, scores.tolist(), strict=True)]
    _write_table(out, [head, *findings], lines)


def _write_table(path: Path, head: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Write a new CSV table for its owner's eyes.

    Raises UsageError if it would lie in a release.
    """
    outside_releases(path, "the table")
    write_new(path, table_text(head, lines).encode(), mode=0o600)


def parameters_of(told: Mapping[str, T]) -> dict[str, T]:
    """Parameters of a released method, without hashes of unnamed files.

    Its path stayed with the owner, and the scheme of the release holds what was read from it.

    >>> parameters_of({"steps": 5, "weights_sha256": "119da2cefba2"})
    {'steps': 5}
    """
    return {name: value for name, value in told.items() if not name.endswith(HASH) or name.removesuffix(HASH) in told}


def _checked(folder: Path) -> dict[str, Any]:
    """The content of release.json, with all files as it says."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        names = altered(folder, about)
        assert MAKER in about["made_by"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError):
        raise UsageError(f"{folder} is no release: expected a folder of `bench release` with its {ABOUT}") from None
    if names:
        raise UsageError(f"{folder} is not as it was released: {', '.join(names)} missing or changed")
    return dict(about)


def _tensors(path: Path) -> State:
    if not path.is_file():
        return {}
    try:
        return unpack_tensors(path, path.stat().st_size)
    except TensorsError as error:
        raise UsageError(f"{path.name} cannot be read: {error}") from None
