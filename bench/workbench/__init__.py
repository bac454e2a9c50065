"""A cell prepared for work: its data, place, sizes and machine."""

__figures__ = True
