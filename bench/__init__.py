"""The harness: splits, times, checks, shuffles, judges and records."""
