"""Evaluators, one file each: what is measured on a cell."""
