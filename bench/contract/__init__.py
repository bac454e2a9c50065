"""What a plug-in is: the types that it shares with the harness, one noun a file; `bench.types` shows them all."""

__figures__ = False
