"""What source files say, kept between calls: to parse what stands behind a run took each call two seconds.

It is kept by digests of the texts and of what reads them, so that a file that changed is read anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pydantic import TypeAdapter, ValidationError

from bench.cli.user_cache import user_cache
from bench.plugins.meaning import READ, Reading
from bench.results.atomic_file import make_folder, write_atomically

FILE = "sources.json"
MOST = 3000  # readings that are kept; where there are more, those of earlier calls go
_READINGS = TypeAdapter(dict[str, Reading])


@contextmanager
def kept_readings() -> Iterator[None]:
    """Within the block files are read as far as no call before has; a cache that cannot be used is done without."""
    folder = user_cache()
    earlier: dict[str, Reading] = {}
    with suppress(OSError, ValidationError):
        earlier = _READINGS.validate_json((folder / FILE).read_bytes())
    READ.update(earlier)
    try:
        yield
    finally:
        if new := READ.keys() - earlier.keys():
            kept = READ if len(READ) <= MOST else {key: READ[key] for key in new}
            with suppress(OSError):
                make_folder(folder, mode=0o700)
                content = json.dumps(kept, sort_keys=True).encode()
                write_atomically(folder / FILE, content, mode=0o600, durable=False)
