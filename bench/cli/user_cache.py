"""Where this user's cache lies: prepared data, what plug-ins say of themselves, what source files say."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def user_cache() -> Path:
    """The folder, which need not be there yet."""
    return Path(platformdirs.user_cache_dir("veil-bench"))
