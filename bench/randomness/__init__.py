"""Secret random numbers: streams of a cipher under 256-bit secrets, the same bits on every machine.

What is trained on public data keeps plain seeds (`bench.seeds`). Everything that must not be guessed (keys, noise,
mixtures, the order of released rows) comes from here.
"""

__figures__ = True

from bench.randomness.noise_grid import Grid, no_nan
from bench.randomness.secret_streams import SECRET_BYTES, Secret, Stream

__all__ = ["SECRET_BYTES", "Grid", "Secret", "Stream", "no_nan"]
