"""Files on disk: written whole or not at all, by whom, and why they could not be.

All other rooms may use it.
"""

__figures__ = False
