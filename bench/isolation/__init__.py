"""Methods and attacks in processes of their own, which see what their role sees and nothing else.

The judge (`bench.runs`, `bench.evaluators`) holds rows, links, results and the run secret. A method runs as the owner:
she gets the rows that are handed to her, and secrets for her keys. An attack runs as Eve: she gets her view and sealed
releases. Both are files that can only be read; what comes back is length-capped JSON and safetensors, checked on
arrival. Where bubblewrap works, either process has no network, no other process, and no file beyond Python, this
project's packages and the plug-in itself.
"""

from bench.isolation.level import LEVELS, Isolation, find_isolation
from bench.isolation.remote_attack import RemoteAttack
from bench.isolation.remote_method import RemoteMethod, timed_release
from bench.isolation.room import DiedError, OutsideError, remove_unused
from bench.isolation.tenant import tenant

__all__ = [
    "LEVELS",
    "DiedError",
    "Isolation",
    "OutsideError",
    "RemoteAttack",
    "RemoteMethod",
    "find_isolation",
    "remove_unused",
    "tenant",
    "timed_release",
]
