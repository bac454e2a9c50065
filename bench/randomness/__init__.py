"""Secret random numbers: cipher streams under 256-bit secrets.

The same bits on every machine, and noise on a grid for privacy claims.

What is trained on public data keeps plain seeds (`bench.seeds`). Everything that must not be guessed (keys, noise,
mixtures, the order of released rows) comes from here.
"""

__figures__ = True

from bench.randomness.noise_grid import Grid, no_nan
from bench.randomness.secret_streams import SECRET_BYTES, Secret, Stream

__all__ = ["SECRET_BYTES", "Grid", "Secret", "Stream", "no_nan"]
