"""Names that operating systems, storage devices and galleries make.

Recycle bins hold images that somebody deleted, and thumbnails are small copies of images beside them: neither belongs
to a set. Names are compared without case.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePath

_FOLDERS = frozenset({
    "#recycle", "@recycle", "$recycle.bin", "recycle.bin", "recycle bin", "recycler", "recycled", "trashbox",
    "files_trashbin", "network trash folder",  # deleted files: NAS makers, Windows, Nextcloud, Apple's file sharing
    "#snapshot", "~snapshot", "@recently-snapshot", "@snapshot", "lost+found", "$extend", "system volume information",
    "files_versions", "temporary items", "onedrivetemp",  # former states of files
    "@eadir", "@__thumb", "@tmp", "@sharebin", "@appstore", "thumbnails", "_thumbnails", "_thumbs", "_gsdata_",
    "__macosx", "__pycache__", "desktop db", "desktop df", "thevolumesettingsfolder",
})  # fmt: skip
_FILES = frozenset({"thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini", "icon\r", "picasa.ini"})
_FORMS = re.compile(
    r"found\.[0-9]{3}|synophoto_thumb_.*|synofile_thumb_.*|synoindex_.*|~\$.*|.+~|"  # check disk; Synology; editors
    r".+\.(bak|tmp|temp|part|partial|crdownload|filepart|swp|lock)"
)
_THUMBS = frozenset({"thumb", "thumbs"})  # a part of the body, too
_THUMB_OF = re.compile(r"(?:thumb(?:nail)?s?[-_. ]+(.+)|(.+?)[-_. ]+thumb(?:nail)?s?)", re.DOTALL)
_FILE = re.compile(r".+\.[a-z][a-z0-9]{1,5}", re.DOTALL)


def system_names(names: Collection[str]) -> frozenset[str]:
    """The names of one folder that systems make.

    Args:
        names: All names of the folder. What is called a thumbnail counts as one if its image stands beside it.

    >>> sorted(system_names(["#recycle", "a.png", ".a.png", "thumb_a.jpg", "thumb_b.png", "hand"]))
    ['#recycle', '.a.png', 'thumb_a.jpg']
    """
    stems = {PurePath(name).stem.casefold() for name in names}
    files = any(_FILE.fullmatch(name.casefold()) for name in names)
    return frozenset(name for name in names if _made(name.casefold(), stems, files=files))


def _made(name: str, stems: Collection[str], *, files: bool) -> bool:
    if name.startswith(".") or name in _FOLDERS or name in _FILES or _FORMS.fullmatch(name) is not None:
        return True
    small = _THUMB_OF.fullmatch(PurePath(name).stem)
    return (name in _THUMBS and files) or (small is not None and (small[1] or small[2]) in stems)
