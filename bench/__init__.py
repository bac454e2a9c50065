"""The harness: it splits, times, checks, shuffles, scores and records."""

__figures__ = True
