"""Groups of plug-ins, named like their entry points below `bench.`.

This module imports nothing.
"""

from typing import Literal, get_args

Group = Literal["methods", "attacks", "datasets", "metrics", "features", "evaluators"]
GROUPS: tuple[Group, ...] = get_args(Group)
Kind = Literal["method", "attack", "metric", "dataset", "evaluator", "package"]
"""What `bench new` writes: a plug-in of a group, or a package around a method."""
New = Literal[Kind, "release-folder"]
"""The same, and an example of a folder that another tool released."""
SAID: dict[str, tuple[str, ...]] = {
    "methods": (
        "name", "source", "requires", "claims", "uses_labels", "needs_labels", "encodes_labels", "uses_subjects",
        "needs_subjects", "needs_public", "equal_classes", "unlearned", "sides",
    ),
    "attacks": ("name", "source", "requires", "scores", "knowledge", "uses_labels", "learns", "needs_public"),
}  # fmt: skip
"""Class variables of a plug-in that its description holds."""
