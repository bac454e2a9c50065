"""Plug-ins by name: how they are written, found, built and hashed."""

__figures__ = False
