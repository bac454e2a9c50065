"""Metrics, one file each: evidence in, a score with its interval and null out."""

__figures__ = True
