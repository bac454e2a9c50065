"""The groups of plug-ins, by the name of their entry points below `bench.`; imports nothing."""

from typing import Literal, get_args

Group = Literal["methods", "attacks", "datasets", "metrics", "features", "evaluators"]
GROUPS: tuple[Group, ...] = get_args(Group)
