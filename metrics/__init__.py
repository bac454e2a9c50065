"""Metrics, one file each: evidence in, a score with its interval and null out."""
