"""Memory budgets of jobs, and rows read on use.

Rows that exceed the budget stay on disk and are read block by block.
"""

__figures__ = True
