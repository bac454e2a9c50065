"""Networks that more than one adapter uses."""
