"""Data-set plug-ins: one loader a family, and the embedded ones."""
