"""What crosses between processes that do not trust one another: length-capped JSON, and tensors in files."""

__figures__ = False
