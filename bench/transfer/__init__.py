"""Records and artefacts carried to other machines and back, by content, and results folders joined."""
