"""A run: plan, graph of jobs, engines and progress."""

__figures__ = False
