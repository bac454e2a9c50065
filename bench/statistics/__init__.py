"""Distributions, intervals, tests and distances that metrics and attacks share."""
