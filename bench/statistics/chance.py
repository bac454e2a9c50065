"""What counts as chance."""

RARE = 0.001
"""What chance does in one of a thousand measurements is no finding."""
