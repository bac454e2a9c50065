"""Rows of data sets and releases: joined, held out, grouped by label, traced to their originals."""
