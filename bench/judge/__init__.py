"""The judge's own searches for raw rows in a release: they believe no method, and state an exact probability."""

__figures__ = True
