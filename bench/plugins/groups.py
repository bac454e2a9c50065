"""Groups of plug-ins, named like their entry points below `bench.`.

This module imports nothing.
"""

from typing import Literal, get_args

Group = Literal["methods", "attacks", "datasets", "metrics", "features", "evaluators"]
GROUPS: tuple[Group, ...] = get_args(Group)
Kind = Literal["method", "attack", "metric", "dataset", "package"]
"""What `bench new` writes: a plug-in of a group, or a package around a method."""
