"""The types that plug-ins share with the harness.

`bench.types` shows them all.
"""

__figures__ = False
