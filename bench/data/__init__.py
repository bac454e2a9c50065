"""Data sets: loaders (`sets`), decoding, preparation, splits and checks.

A loader lists files, labels and people; preparation decodes them once into a memory-mapped array with a fingerprint.
"""

__figures__ = True
