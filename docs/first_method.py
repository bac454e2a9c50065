# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A first method in a notebook
#
# From a toy method to a table and a plot, in a few minutes on two cores, without data to download. The page is a
# script in the percent format of Jupytext: run it as it is, or open it as a notebook. Every function stands in
# [Python](python.md).

# %%
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import Tensor

import bench
from bench.types import Keyless
from bench.validation import at_least

# %% [markdown]
# ## The data
#
# `load_dataset` gives the rows as a run has them, split by person. `private` is what a data owner releases; a model
# that was trained on the release is scored on `test`. Images are float32 in [0, 1].

# %%
data = bench.load_dataset("digits", preset="smoke")
print(len(data.public), len(data.private), len(data.control), len(data.test))
print(tuple(data.private.samples.shape), data.private.findings)

# %% [markdown]
# ## A method
#
# A plug-in is a frozen dataclass; its fields are its parameters. This one keeps only as many grey levels as it is
# told, and has no key. A method with a secret is in [Write a plug-in](how-to/write-a-plug-in.md).


# %%
@dataclass(frozen=True)
class GreyLevels(Keyless):
    """Keeps a few grey levels of every image.

    Args:
        levels: So many grey levels, from black to white.
    """

    name: ClassVar[str] = "grey-levels"
    source: ClassVar[str] = "an example"
    levels: int = 2

    def __post_init__(self) -> None:
        at_least(2, levels=self.levels)

    def transform(self, samples: Tensor) -> Tensor:
        """The images (n, c, h, w) with `levels` grey levels."""
        return (samples * (self.levels - 1)).round() / (self.levels - 1)


# %% [markdown]
# ## One attack, in this process
#
# `attack` runs at once, records nothing, and lets prints, `breakpoint()` and exceptions of the method through. A ReID
# AUC of 0.5 is chance, 1 finds every image.

# %%
bench.attack("nearest-neighbour", GreyLevels(levels=2), "digits")

# %% [markdown]
# ## A run
#
# `run` is `bench run`: each job works in a process of its own, methods and attacks in sandboxes. (Without bubblewrap,
# a method of your own needs `isolation="processes"`.) A class of a notebook is written to a file, with the
# definitions that it uses, for these processes. Results are kept by content: the same call computes nothing again,
# and `bench status --results FOLDER` lists them on the command line.

# %%
folder = Path(tempfile.mkdtemp()) / "results"
methods = [GreyLevels(levels=levels) for levels in (2, 4)]
found = bench.run(
    [*methods, "blur[sigma=2.0]", "noise"], "digits", preset="smoke", attacks="nearest-neighbour",
    metrics=["reid-auc", "top-1", "max-dispersion"], options={"controls": False}, results=folder,
)  # fmt: skip
assert not found.failures
found

# %% [markdown]
# ## The table
#
# `frame` is tidy: a line a figure, with its 95 % interval, what chance gives, and the content key of its record. A
# figure that makes no sense for a method is missing, with the reason. Without controls (`"controls": False`, for
# speed) no attack is certified, so that the figures above are marked as not rated.

# %%
frame = found.frame()
frame[["row", "metric", "value", "low", "high", "chance", "p", "attack"]].round(3)

# %% [markdown]
# Two methods on the same people and keys:

# %%
bench.compare(found, [methods[0], "noise"], "reid-auc")

# %% [markdown]
# ## A plot

# %%
import matplotlib.pyplot as plt

shown = frame[frame["metric"] == "reid-auc"].astype({"value": float, "low": float, "high": float, "chance": float})
figure, axes = plt.subplots(figsize=(6, 2.4), layout="constrained")
spread = [shown["value"] - shown["low"], shown["high"] - shown["value"]]
axes.errorbar(shown["value"], shown["row"], xerr=spread, fmt="o", capsize=3)
axes.axvline(shown["chance"].iloc[0], linestyle="--", color="grey", label="chance")
axes.set_xlabel("ReID AUC, with its 95 % interval (lower is better)")
axes.legend()
plt.show()

# %% [markdown]
# ## A mistake
#
# What cannot be done is one exception, `bench.BenchError`. Its text says what was expected and the remedy.

# %%
try:
    bench.run("grey-level", "digits", results=folder)
except bench.BenchError as error:
    print(error)
