"""Statistics for metrics and attacks.

Null distributions, confidence intervals, tests and distances, with people as the unit of resampling.
"""

__figures__ = True
