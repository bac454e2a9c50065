"""Scores of pairs (raw row, released row).

One streaming sweep counts them for all pair metrics; the n x m matrix never exists.
"""

__figures__ = True
