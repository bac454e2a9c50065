"""Networks that more than one adapter uses."""

__figures__ = True
