"""Messages and tensors between processes that do not trust one another."""

__figures__ = False
