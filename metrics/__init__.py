"""Metrics, one file each: evidence in, score, interval and null out."""

__figures__ = True
