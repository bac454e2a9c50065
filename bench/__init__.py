"""The harness: it splits, times, checks, shuffles, scores and records."""

__figures__ = True

import bench.shadowing  # noqa: F401  (before torch and pydantic)
