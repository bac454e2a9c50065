"""Attacks, one file each: they score pairs, the harness judges."""

__figures__ = True
