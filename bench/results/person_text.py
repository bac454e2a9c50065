"""Sentences on the people behind a row's formal claim.

A claim is made per row; a person has several. What a run counts and composes stands beside the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.results.records import Record

PEOPLE, IMAGES = "fewest people behind a form", "fewest different images behind a form"
"""Details of an evaluator that counts who shares a released form."""


def person_texts(row: Sequence[Record]) -> Iterator[str]:
    """The claim of a row's records for people, where it says anything.

    Args:
        row: Records of one method on one choice of data.
    """
    person = next((one.claim.person for one in row if one.claim is not None and one.claim.person is not None), None)
    if person is not None:
        images = "each with one image" if person.images == 1 else f"with up to {person.images:,} images"
        bound = "no finite ε" if person.epsilon is None else f"ε {person.epsilon:.4g}, δ {person.delta:.3g}"
        if person.epsilon is not None and person.delta >= 1:
            bound = f"no guarantee, for with {bound} anything may be told"
        how = f" ({person.how})" if person.images > 1 else ""  # one image leaves nothing to compose
        yield f"Per person, {images}: {bound}{how}"
    counts = [(one.details[PEOPLE], one.details.get(IMAGES), one) for one in row if PEOPLE in one.details]
    for people, images_behind, one in counts[:1]:
        k = one.method.parameters.get("k")
        text = f"Behind a released form stand at least {people} people and {images_behind} different images"
        if isinstance(k, int) and isinstance(people, int) and isinstance(images_behind, int):
            short = min(people, images_behind) < k
            text += f": fewer than k = {k}, so that k-anonymity of people does not hold" if short else f", of k = {k}"
        yield text
