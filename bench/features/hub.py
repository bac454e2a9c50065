"""Where the weights of a timm model lie: in a given file, in the hub's cache on this machine, or on the hub."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench.contract.source import DataError
from bench.progress import stage

SECONDS = 5.0
OFFLINE = "Without weights from outside: --features pixels, eigenspace or public-cnn"


def weights_file(model: str, given: str | None) -> Path:
    """The file with a model's weights; fetched from the hub where it is not in its cache yet.

    Raises:
        DataError: There is none, or it cannot be had: where it was looked for, and what to do.
    """
    if given is not None:
        path = Path(given).expanduser()
        if not path.is_file():
            raise DataError(f"--weights must name a file, and there is no {path.name} where it says")
        return path
    import timm  # these take seconds to import: only where weights are looked for
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
        f"no weights of timm:{model} are here: neither in the hub's cache on this machine nor to be had from the hub "
        f"({reason}). Fetch {files[0]} of https://huggingface.co/{repository} where there is a network, and give the "
        f"file with --weights. {OFFLINE}"
    )


def _unreachable(repository: str, file: str) -> str:
    """Why a file of the hub cannot be had, within seconds; empty where it can. (Its own client keeps trying.)"""
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
