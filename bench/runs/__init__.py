"""A run: what it consists of, in which order, where it executes, and what the terminal shows of it."""

__figures__ = False
