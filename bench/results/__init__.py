"""What a run leaves behind: records, and artefacts by content."""

__figures__ = False
