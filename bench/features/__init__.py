"""Feature extractors: what turns images into vectors before, or after, a method sees them."""
