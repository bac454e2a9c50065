"""Operations on rows of data sets and releases.

Grouping by person and label, hold-out, joining, equality, originals of released rows.
"""

__figures__ = True
