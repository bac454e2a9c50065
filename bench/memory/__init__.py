"""What a job may hold in memory, and rows that are read where they are used, for those that do not fit."""

__figures__ = True
