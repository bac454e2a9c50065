"""The published pages: a pure function of the records."""
