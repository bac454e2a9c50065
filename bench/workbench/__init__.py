"""One cell laid out for work: its choice of data, its place, its sizes, its machine."""

__figures__ = True
