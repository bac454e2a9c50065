"""Methods and attacks in processes that see only what their role needs.

The judge (`bench.runs`, `bench.evaluators`) holds rows, links, results and the run secret. A method runs as the owner:
she gets the rows that are handed to her, and secrets for her keys. An attack runs as Eve: she gets her view and sealed
releases. Both come as read-only files; answers are length-capped JSON and safetensors, checked on arrival. With
bubblewrap either process has no network, no other process, and no file beyond Python, this project's packages and the
plug-in itself.
"""

__figures__ = False

from bench.isolation.call_shape import CallShape, CellRows
from bench.isolation.remote_attack import RemoteAttack, RemoteAttacker
from bench.isolation.remote_method import RemoteKey, RemoteMethod, RemoteScheme
from bench.isolation.room import DiedError
from bench.isolation.room_folder import remove_unused
from bench.isolation.rpc_codec import OutsideError, RefusedError
from bench.isolation.simulations import Simulations
from bench.isolation.tenant import check_confined, find_isolation, require_sandbox, tenant

__all__ = [
    "CallShape",
    "CellRows",
    "DiedError",
    "OutsideError",
    "RefusedError",
    "RemoteAttack",
    "RemoteAttacker",
    "RemoteKey",
    "RemoteMethod",
    "RemoteScheme",
    "Simulations",
    "check_confined",
    "find_isolation",
    "remove_unused",
    "require_sandbox",
    "tenant",
]
