"""The documentation site: hand-written pages, and others from `docs.generator`."""
