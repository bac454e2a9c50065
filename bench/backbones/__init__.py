"""Networks trained elsewhere, and the reading of their weights.

Extractors and attacks share them.
"""

__figures__ = True
