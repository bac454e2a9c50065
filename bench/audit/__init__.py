"""Audit of differential-privacy claims by distinguishing games.

Inputs, plays, leak statistics, the choice of a test, its counted decisions, and checks of the noise.
"""

__figures__ = True
