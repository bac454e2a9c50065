"""Networks and their training.

Shared by methods, attacks, extractors and evaluators.
"""

__figures__ = True
