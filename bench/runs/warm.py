"""Work done once in the fork server, before workers are forked.

Hashing the harness and reading numba's own tables took each job with pair scores half a second of processor time.
"""

from __future__ import annotations

import gc

from bench.plugins.code_digest import code_digest
from bench.workbench.inputs import RELEASE, SPLITS

for root in ("bench.data.prepare:prepare", SPLITS, RELEASE):
    code_digest(root)

from numba.core.registry import cpu_target  # noqa: E402  (late: if numba is missing, the rest is done)

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
gc.freeze()  # nothing of this is garbage: no worker need look for any in it, and it stays in memory that all share
