"""Feature extractors: images to vectors, before or after a method sees them.

An extractor is a plug-in, fitted on public images at most; a feature space keeps its vectors on disk.
"""

__figures__ = True
