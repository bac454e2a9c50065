"""The game that an audit plays against a claim of differential privacy: its inputs, its tests, its counts."""
