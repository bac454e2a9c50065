"""Obfuscation methods, one file each."""

__figures__ = True
