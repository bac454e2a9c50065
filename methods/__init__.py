"""Obfuscation methods, one file each."""
