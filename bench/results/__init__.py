"""Results of runs: records, and artefacts by content."""

__figures__ = False
