"""Loaders, one collection a file."""
