"""Scores of pairs (raw row, released row), and the one streaming sweep that counts them."""
