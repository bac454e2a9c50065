"""How data under a use agreement are obtained: by their user, never by this program."""

from __future__ import annotations

STAY = (
    "The data stay on your machine; this program never downloads them and puts nothing else in their place (for a run "
    "without access: --dataset synth-mimic)."
)


def physionet(title: str, address: str) -> str:
    """What to do for a data set that PhysioNet gives to credentialed users."""
    return (
        f"{title} needs credentialed access: register at https://physionet.org, complete the CITI course 'Data or "
        f"Specimens Only Research', sign the data use agreement at {address}, then fetch it there with your own "
        f"account. {STAY}"
    )
