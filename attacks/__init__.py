"""Attacks, one file each: they score pairs, the harness judges."""
