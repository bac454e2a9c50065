"""The harness: it splits, times, checks, shuffles, scores and records."""
