"""The files of a release, written in one step or none.

They are written into a hidden folder beside the wanted one, `.DIR.PROCESS`, which then takes its name. Secrets and the
ledger's entry are in their places before that, so that no release is without its key. Each of them names the release
by the SHA-256 of its release.json: what a killed process has left is known by it, and removed by the next one.
"""

from __future__ import annotations

__figures__ = False

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from PIL import Image
from pydantic import JsonValue

from bench.contract.source import DataError
from bench.data.release_folder import RELEASE, check_release
from bench.data.secondary_capture import write_secondary_capture
from bench.disk import process_id
from bench.disk.atomic_file import sync, write_new
from bench.disk.disk_errors import writing
from bench.plugins.spec import UsageError
from bench.progress import report, stage
from bench.results.run_secret import ABOUT, MAKER
from bench.runs import owner_key
from bench.runs.owner_key import opened_key, packed_key
from bench.runs.release_files import (
    IMAGES,
    IMAGES_HASH,
    Contents,
    bit_groups,
    check_labels,
    images_hash,
    sha256_of,
    table_text,
    write_card,
    write_sums,
    write_texts,
)
from bench.runs.release_order import Form, Order, Publication
from bench.runs.release_people import row_hashes
from bench.runs.second_look import Look, look, read_back
from bench.types import State
from bench.wire.tensor_file import write_tensors
from bench.wire.text import shown
from bench.workbench.owned_rows import Owned


def _bound(links: str, release: str) -> str:
    """The table of links with the hash of its release."""
    head, *lines = csv.reader(io.StringIO(links))
    return table_text([*head, RELEASE], ([*each, release] for each in lines))


def name_of(row: int, form: Form) -> int | str:
    """A released row as tables call it: its number, or its image."""
    return f"images/{row:06d}{IMAGES[form][0]}" if form in IMAGES else row


def write(made: Publication, order: Order, owned: Owned, *, shared: bool) -> Look | None:
    """Write the secrets, then the rest in one step; nothing after failures."""
    out = order.out
    building = out.with_name(f".{out.name}.{process_id.own_name()}")
    building.mkdir(mode=0o700)
    assert order.links_out is not None
    secrets: dict[Path, bytes] = {}
    written = list[Path]()
    release = ""
    try:
        found = _folder(made, order, owned, building)
        if shared:
            building.chmod(0o755)
        release = sha256_of(building / ABOUT)
        secrets[order.links_out] = _bound(made.links, release).encode()
        if made.key:
            secrets[order.key_place] = packed_key(
                made.key, release=release, scheme=made.scheme, passphrase=order.passphrase
            )
        for path, secret in secrets.items():
            write_new(path, secret, mode=0o600)
            written.append(path)
        order.book.write(made.entry.model_copy(update={"release": release}))
        building.replace(out)
        sync(out.parent)
    except BaseException:
        if building.exists():  # else the release is in its place, and worth nothing without its key
            shutil.rmtree(building, ignore_errors=True)
            for path in written:
                path.unlink()
            with suppress(UsageError, OSError):  # the first error says more
                order.book.take_back(release)
        raise
    return found


def clear(order: Order) -> Iterator[str]:
    """Remove unfinished releases of killed processes; a line on each.

    They are those to the same folder. A trial does so, too: else it would stumble over them. Tables of links, keys and
    entries of the ledger go only if they name the release that was left, and folders only if their process is known to
    have ended.
    """
    out = order.out
    made_by = re.compile(rf"\.{re.escape(out.name)}\.({process_id.NAME})")
    for left in sorted(out.parent.iterdir()) if out.parent.is_dir() else ():
        if (found := made_by.fullmatch(left.name)) is None or left.is_symlink() or not left.is_dir():
            continue
        if not process_id.is_left(left, found[1]):
            yield f"{shown(left)} is of a release that another process writes, or wrote: if none does, remove it"
            continue
        with_it = list(_secrets(order, left))
        names = ", ".join(map(shown, [left, *with_it]))
        if (left / ABOUT).is_file():
            order.book.take_back(sha256_of(left / ABOUT))
        for path in with_it:
            path.unlink()
        shutil.rmtree(left)
        yield f"an earlier release was interrupted, and what it left was removed: {names}"


def _secrets(order: Order, left: Path) -> Iterator[Path]:
    """Links and key of an unfinished release, if they name it."""
    if not (left / ABOUT).is_file():
        return
    assert order.links_out is not None
    with suppress(DataError):
        if order.links_out.is_file() and check_release(order.links_out, left):
            yield order.links_out
    with suppress(UsageError, OSError):
        if order.key_place.is_file():
            told = opened_key(order.key_place, order.passphrase)[1]
            if told.get(owner_key.RELEASE) == sha256_of(left / ABOUT):
                yield order.key_place


def check_form(made: Publication, order: Order) -> None:
    """Raise UsageError for rows or labels that the wanted format cannot hold."""
    if order.form not in IMAGES:
        return
    rows = made.files.get("release.safetensors")
    if rows is None:
        raise UsageError(f"--format {order.form} is for released images, and this method publishes a generator")
    samples = rows["samples"]
    if samples.ndim != 4 or samples.shape[1] not in (1, 3):
        raise UsageError(
            f"--format {order.form} is for grey or colour images, and released rows have shape "
            f"{list(samples.shape[1:])}: use --format safetensors"
        )
    low, high = float(samples.amin()), float(samples.amax())
    if low < 0 or high > 1:
        raise UsageError(
            f"--format {order.form} holds values from 0 to 1, and released ones go from {low:.3g} to {high:.3g}: use "
            "--format safetensors"
        )
    check_labels(rows.get("labels"), made.about, order.form)


def _folder(made: Publication, order: Order, owned: Owned, folder: Path) -> Look | None:
    """Write all files of a release; a look at any rows."""
    check_form(made, order)
    images = order.form in IMAGES
    rows = made.files.get("release.safetensors")
    hashes: dict[str, JsonValue] = {}
    for name, tensors in made.files.items():
        if not images or name != "release.safetensors":
            hashes[name] = _packed(tensors, folder / name)
    about: dict[str, JsonValue] = {**made.about, "sha256": hashes, "format": order.form}
    found = None
    if rows is not None:
        names = (
            _images(rows["samples"], folder, order.form)
            if images
            else [str(row) for row in range(len(rows["samples"]))]
        )
        if images:
            about[IMAGES_HASH] = images_hash(folder)
        stage("read the written rows")
        samples, _ = read_back(folder, order.form, names)
        released = list(row_hashes(samples))
        contents = Contents(names, rows.get("labels"), bit_groups(released), about, order.form)
        write_texts(folder, contents)
        private = owned.bench.private.samples
        stage("compare them with the raw rows")
        found = look(
            folder, samples, rows.get("labels"), contents.findings, private,
            (released, made.raw), made.words, json.dumps(about, ensure_ascii=False),
        )  # fmt: skip
        about["looked_at"] = found.public()
    text = json.dumps(about, indent=1, sort_keys=True, allow_nan=False)
    write_new(folder / ABOUT, f"{text}\n".encode(), mode=0o644)
    if rows is not None:
        write_card(folder, contents)
    stage("hash the files")
    write_sums(folder)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        path.chmod(0o644)
        sync(path)
    return found


def _images(samples: torch.Tensor, folder: Path, form: Form) -> list[str]:
    """Write rows as image files of 8 bits; their names."""
    (folder / "images").mkdir()
    names = []
    for number, row in enumerate(samples):
        report("write images", number, len(samples))
        pixels = (row.cpu() * 255).round().to(torch.uint8).permute(1, 2, 0).squeeze(2).numpy()
        name = str(name_of(number, form))
        with writing(folder / name):
            if form == "png":
                Image.fromarray(pixels).save(folder / name)
            else:
                write_secondary_capture(folder / name, pixels, number=number, made_by=MAKER)
        names.append(name)
    return names


def _packed(tensors: State, path: Path) -> str:
    """Write tensors block by block to a new file; return its SHA-256."""
    with writing(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "wb") as file:
            write_tensors(file, tensors)
        sync(path)
    return sha256_of(path)
