"""Evaluators: measurements of a cell.

Each hands frozen evidence to the metrics; a file holds those that share their question.
"""

__figures__ = True
