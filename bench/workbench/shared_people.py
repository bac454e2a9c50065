"""Whether a public set shows people of the private set, by the names that the data say."""

from __future__ import annotations

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.workbench.choice import Choice
from bench.workbench.place import Place


def refuse_shared_people(choice: Choice, place: Place) -> None:
    """Raise DataError where the public set names people whom the private set names.

    Names in one's own folders are compared, which may be of one hospital: a 7 of `nih` is nobody of `rsna`. Both sets
    are prepared already.
    """
    if choice.beside is None or choice.dataset.plugin.name != choice.beside.plugin.name:
        return
    from bench.data.sets.folder import Folder  # imports pandas, which few jobs need

    if not isinstance(choice.dataset.plugin, Folder):
        return
    private, public = (
        prepare(
            source, roots=place.roots, cache=place.cache, size=choice.side(source), skip_corrupt=choice.skip_corrupt,
            max_pixels=choice.max_pixels,
        )
        for source in (choice.dataset.plugin, choice.beside.plugin)
    )  # fmt: skip
    if private.marks is None or public.marks is None:
        return
    named, known = ({row.tobytes() for row in marks if row.any()} for marks in (public.marks, private.marks))
    if both := len(named & known):
        raise DataError(
            f"{public.name} cannot be the public set of {private.name} as it is: {both} of its {len(named)} people are "
            f"named as people of the private set are. Take their rows out of the public set; where names agree by "
            f"chance, give those people other names; or leave out --public, and people are set aside."
        )
