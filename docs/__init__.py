"""The documentation site: pages written by hand lie here, all others come from `docs.generator`."""
