"""Loaders, one collection a file.

Each reads the official layout of its files and gives paths or samples, labels and people.
"""
