"""Bob, who trains a model on a release: what he tries, and how it is chosen."""
