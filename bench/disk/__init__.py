"""Files on disk: atomic writes, their writers, and errors of disks.

All rooms may use it.
"""

__figures__ = False
