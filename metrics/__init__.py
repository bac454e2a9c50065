"""Metrics, one file a family: evidence in, score, interval and null out."""

__figures__ = True
