"""Pretrained weights: located, read without unpickling code, and checked.

The rule: apart from the classifier's head, which vectors do not need, the file must hold every tensor of the network in
its shape, and no other. (Batch counts of batch norm are ignored; evaluation does not read them.)
They must be plain floating-point numbers, finite in the network's precision, and not all zero.
"""

from __future__ import annotations

import hashlib
import http.client
import inspect
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import safetensors.torch
import torch
from safetensors import SafetensorError

from bench.contract.source import DataError
from bench.disk.file_kind import impostor
from bench.progress import stage

SECONDS = 5.0
OFFLINE = "Without weights from outside: --features pixels, eigenspace or public-cnn"
LISTED = 4
UNREAD = "num_batches_tracked"
REMEDY = "Fetch the file again, or name another"
KNOWN = "the file of weights"
"""The name of a file in messages that enter records, which its own name must not."""
_UNREAD = (
    OSError, SafetensorError, RuntimeError, EOFError, ValueError, KeyError, MemoryError, zipfile.BadZipFile,
)  # fmt: skip


def weights_file(model: str, choice: str | None) -> Path:
    """The file with a model's weights, fetched if missing; else DataError."""
    if choice is not None:
        path = Path(choice).expanduser()
        if not path.is_file():
            raise DataError(f"--weights must name a file, and {path.name} is not there")
        return path
    import timm  # these take seconds to import: only if weights are looked for
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    config = timm.models.get_pretrained_cfg(model)
    if config is None or not config.hf_hub_id:
        raise DataError(f"no weights of timm:{model} are published: give a file with --weights. {OFFLINE}")
    repository = config.hf_hub_id
    plain = config.hf_hub_filename or "pytorch_model.bin"
    files = list(dict.fromkeys((plain.replace("pytorch_model.bin", "model.safetensors"), plain)))
    for file in files:
        cached = try_to_load_from_cache(repository, file)
        if isinstance(cached, str):
            return Path(cached)
    reason = ""
    for file in files:
        reason = _unreachable(repository, file)
        if not reason:
            stage(f"fetch {file} of {repository}")
            try:
                return Path(hf_hub_download(repository, file, etag_timeout=SECONDS))
            except OSError as error:  # of the network, the hub (HfHubHTTPError) or the disk
                reason = f"{type(error).__name__}: {error}".partition("\n")[0]
                break
    raise DataError(
        f"no weights of timm:{model} were found: not in the hub's cache on this machine, and not on the hub "
        f"({reason}). Fetch {files[0]} of https://huggingface.co/{repository} with a network, and give the "
        f"file with --weights. {OFFLINE}"
    )


def _unreachable(repository: str, file: str) -> str:
    """The reason why a hub file is unavailable, else "", within seconds."""
    from huggingface_hub import hf_hub_url, is_offline_mode

    if is_offline_mode():
        return "HF_HUB_OFFLINE is set"
    try:
        with urlopen(Request(hf_hub_url(repository, file), method="HEAD"), timeout=SECONDS):
            return ""
    except HTTPError as error:
        return f"it answers {error.code} for {file}"
    except (OSError, http.client.HTTPException) as error:
        return str(getattr(error, "reason", error))


LEAST_DIGITS = 12


def check_digits(sha256: str) -> None:
    """Raise ValueError unless these may begin a SHA-256, and are enough."""
    if len(sha256) < LEAST_DIGITS or not set(sha256.lower()) <= set("0123456789abcdef"):
        raise ValueError(
            f"a SHA-256 must be given by its first {LEAST_DIGITS} hexadecimal digits or more, got {sha256!r}"
        )


def read_known(path: Path, sha256: str) -> dict[str, torch.Tensor]:
    """As `read_checkpoint`, of a file of known hash, which no message names.

    Args:
        path: Of the file.
        sha256: At least the first `LEAST_DIGITS` hexadecimal digits of its SHA-256.

    Raises:
        DataError: There is no such file; it has another hash; or as `read_checkpoint`.
        ValueError: Too few digits.
    """
    check_digits(sha256)
    if not path.is_file():
        raise DataError(f"{KNOWN}, of SHA-256 {sha256}, is not there: give its full path")
    held = file_sha256(path)
    if not held.startswith(sha256.lower()):
        raise DataError(f"{KNOWN} must have a SHA-256 that begins {sha256}, and has {held}: give its own file")
    return read_checkpoint(path, KNOWN)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, cached while its size and time stay."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)
def _sha256(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_checkpoint(path: Path, what: str | None = None) -> dict[str, torch.Tensor]:
    """Tensors by name from safetensors or a tensor-only file of torch.save.

    They may lie under `state_dict` or `model`, their names start with `module.`. Raises DataError for other or
    damaged files, `what` in its words; None stands for the file's name.
    """
    what = what or path.name
    try:
        if wrong := impostor(path):
            raise DataError(f"{what}: expected weights, found {wrong}. {REMEDY}")
        with path.open("rb") as file:
            head = file.read(9)
        if head[8:] == b"{":
            return _tensors(safetensors.torch.load_file(path), what)
        if not head.startswith((b"PK", b"\x80")):
            raise DataError(f"{what}: expected safetensors or a file of torch.save, found neither. {REMEDY}")
        _check_archive(path, what)
        content: object = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{what}: it holds Python objects beside tensors, or is cut short; such objects could run code and are not "
            "loaded. Convert it to safetensors if you trust it"
        ) from error
    except _UNREAD as error:
        reason = str(error).replace(str(path), what).partition("\n")[0]
        raise DataError(f"{what}: unreadable or cut short ({reason}). {REMEDY}") from error
    return _tensors(content, what)


def _tensors(content: object, what: str) -> dict[str, torch.Tensor]:
    for outer in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(outer), Mapping):
            content = content[outer]
    if not isinstance(content, Mapping) or not content:
        raise DataError(f"{what}: expected tensors by name, found {type(content).__name__}. {REMEDY}")
    for name, value in content.items():
        if not isinstance(value, torch.Tensor):
            raise DataError(f"{what}: expected tensors by name, found {name!r} of {type(value).__name__}. {REMEDY}")
    tensors = {str(name).removeprefix("module."): value for name, value in content.items()}
    if len(tensors) < len(content):
        raise DataError(f"{what}: expected each tensor once, found some under two names. {REMEDY}")
    for name, tensor in tensors.items():
        if wrong := _not_plain(tensor):
            raise DataError(f"{what}: {name} must hold plain numbers, found {wrong}. {REMEDY}")
    return tensors


def _not_plain(tensor: torch.Tensor) -> str:
    """The reason why a tensor is no plain array, or ""."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        return f"{tensor.layout} on {tensor.device}"
    repeated = any(step == 0 and length > 1 for step, length in zip(tensor.stride(), tensor.shape, strict=True))
    if repeated or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        return f"shape {tuple(tensor.shape)}, which repeats {tensor.untyped_storage().nbytes()} bytes"
    return ""


def _check_archive(path: Path, what: str) -> None:
    """Raise DataError for a compressed archive, which torch.save never writes."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > path.stat().st_size:
        raise DataError(f"{what}: it unpacks to {size} bytes, more than the {path.stat().st_size} it has. {REMEDY}")


@dataclass(frozen=True)
class Loaded:
    """The outcome of loading weights into a network.

    Args:
        converted: True if timm's own conversion renamed or resized them.
        zero: Number of tensors of two or more dimensions that are all zero.
    """

    converted: bool
    zero: int


def load_checked(
    network: torch.nn.Module, tensors: Mapping[str, torch.Tensor], *, heads: tuple[str, ...], what: str
) -> Loaded:
    """Load the tensors into the network, their classifier's `heads` aside.

    If they do not fit, timm's own conversion for that kind of network is tried: it knows the names of other
    projects and resizes position embeddings. Raises DataError if they do not fit, or hold NaN or infinity.
    """
    own = {name: tensor for name, tensor in network.state_dict().items() if not name.endswith(UNREAD)}
    fitting = _without(tensors, heads, own)
    wrong = _differences(fitting, own)
    convert = getattr(inspect.getmodule(type(network)), "checkpoint_filter_fn", None)
    converted = False
    if wrong and convert is not None:
        converted = True
        try:
            fitting = _without(convert(dict(tensors), network), heads, own)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise DataError(_text(what, wrong) + f" (timm's conversion failed too: {error!r:.200})") from error
        wrong = _differences(fitting, own)
    if wrong:
        raise DataError(_text(what, wrong))
    zero = _check_numbers(fitting, own, what)
    network.load_state_dict(fitting, strict=False)
    return Loaded(converted, zero)


def _check_numbers(fitting: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], what: str) -> int:
    """Number of zero matrices; DataError for non-finite or all-zero weights."""
    for name, tensor in fitting.items():
        wanted = own[name].dtype
        if tensor.is_floating_point() != wanted.is_floating_point or tensor.is_complex():
            raise DataError(f"{what}: {name} must be {wanted} or of another width, found {tensor.dtype}. {REMEDY}")
        if bad := int((~tensor.to(wanted).isfinite()).sum()):
            raise DataError(
                f"{what}: {name} must be finite in {wanted}, and {bad} of its {tensor.numel()} numbers are not. "
                f"{REMEDY}"
            )
    matrices = [tensor for tensor in fitting.values() if tensor.ndim > 1]
    zero = sum(not tensor.any() for tensor in matrices)
    if matrices and zero == len(matrices):
        raise DataError(f"{what}: all weights are zero, so that every image would look the same. {REMEDY}")
    return zero


def _without(
    tensors: Mapping[str, torch.Tensor], heads: tuple[str, ...], own: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    starts = tuple(f"{head}." for head in heads)
    return {
        name: tensor
        for name, tensor in tensors.items()
        if not name.endswith(UNREAD) and (name in own or not name.startswith(starts))
    }


def _differences(tensors: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> list[str]:
    def shape(tensors: Mapping[str, torch.Tensor], name: str) -> str:
        return f"of shape {tuple(tensors[name].shape)}" if name in tensors else "nothing"

    names = [*own, *(name for name in tensors if name not in own)]
    return [
        f"{name}: expected {shape(own, name)}, found {shape(tensors, name)}"
        for name in names
        if shape(own, name) != shape(tensors, name)
    ]


def _text(what: str, wrong: list[str]) -> str:
    lines = "".join(f"\n  {line}" for line in wrong[:LISTED])
    more = f"\n  and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
    return (
        f"{what}: not the weights of this model: {len(wrong)} tensors differ. {REMEDY}, or another model.{lines}{more}"
    )
