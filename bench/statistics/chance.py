"""What counts as chance."""

RARE = 0.001
"""What chance does in one of a thousand measurements is no finding."""
UNLIKELY = 0.05
"""What chance does less often than one in twenty times is not called chance."""
