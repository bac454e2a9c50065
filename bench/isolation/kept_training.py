"""How far a training in a room has come, on its way to and from where the judge keeps it."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from bench.checkpoint import FILE, MOST_BYTES
from bench.results import process_id
from bench.results.atomic_file import make_folder
from bench.wire.tensors import TensorsError, unpack_tensors


@dataclass(frozen=True)
class KeptTraining:
    """Where the judge keeps the trainings of a fit.

    Args:
        folder: It; made with the first file. Nothing that a room could still change stands there.
    """

    folder: Path

    def hand_over(self, room: Path) -> None:
        """Copy what was kept into the folder of a room."""
        if self.folder.is_dir():
            for file in self.folder.iterdir():
                if FILE.fullmatch(file.name):
                    shutil.copyfile(file, room / file.name)

    def take(self, room: Path) -> None:
        """Take what the room has finished writing.

        Raises:
            TensorsError: It is no plain file of tensors.
        """
        with os.scandir(room) as entries:
            finished = [entry for entry in entries if FILE.fullmatch(entry.name)]
        for entry in finished:
            found = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                raise TensorsError(f"a training is kept in a plain file of at most {MOST_BYTES >> 30} GiB")
            make_folder(self.folder, mode=0o700)
            mine = self.folder / f"{entry.name}.new-{process_id.own_name()}"
            shutil.move(entry.path, mine)
            try:
                unpack_tensors(mine, MOST_BYTES)
            except TensorsError:
                mine.unlink()
                raise
            mine.replace(self.folder / entry.name)
