"""A release that another tool made, read from a folder.

Any tool, hospital or generative model may have made it; `bench.data.release_folder` describes the folder and reads it.
The judge keeps the links between released and raw rows to itself: attacks see released rows alone, and neither the
folder nor its place. Records hold a digest of the folder, the maker's name, and the number of releases.

No other rows can be released in the same way here. So attacks that learn from releases of Eve's own do not apply, nor
do checks that release again, and figures of the others show less than Eve, the attacker, might find out. The folder
says which rows are private, and no draw of the judge's: private rows of another kind than the others (another scanner,
other years) look as if the release gave them away.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import torch

from bench.randomness import Secret
from bench.seeds import generator
from bench.types import (
    CAVEAT,
    Dataset,
    Generator,
    Key,
    Method,
    NotApplicable,
    PrivacyClaim,
    Recorded,
    Release,
    Scheme,
    State,
)
from bench.validation import at_least

MAKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,59}")
DIGEST = re.compile(r"([0-9a-f]{16})?")
WEAKER = (
    "Released by another tool: attacks that learn from releases of their own could not run, so that figures show less "
    "than an attacker with that tool might find out. The folder says which rows are private, not a draw."
)
STATED = frozenset({"unit", "epsilon", "delta", "neighbours", "units"})
"""Fields of a maker's claim that are taken over as they are."""
MOST_TEXT = 2000
UNAUDITED = "Stated by the release's maker, and not audited here."


@dataclass(frozen=True)
class Imported(Method):
    """A release that another tool made.

    Args:
        sha256: The first 16 hex digits of the folder's digest, filled in if they are left out; another folder is
            refused.
        maker: The tool or people that made it, for tables; filled in from release.json, else "".
        releases: Number of releases in the folder; filled in.
        path: The folder, which never enters a record.
        links: A file of links, or a folder of further tables, that lies elsewhere and never enters a record.
    """

    name: ClassVar[str] = "imported"
    source: ClassVar[str] = "the folder's maker"
    claims: ClassVar[str] = "the maker's, if any; not audited"
    requires: ClassVar[str] = "a folder of released rows, and their raw rows as --dataset"
    confidential: ClassVar[frozenset[str]] = frozenset({"path", "links"})
    needs_public: ClassVar[bool] = False

    sha256: str = ""
    maker: str = ""
    releases: int = 0
    path: str = ""
    links: str = ""

    def __post_init__(self) -> None:
        if DIGEST.fullmatch(self.sha256) is None:
            raise ValueError(f"sha256 must be 16 hex digits, got {self.sha256!r:.80}: write imported[path=FOLDER]")
        at_least(0, releases=self.releases)
        if self.path and not (self.sha256 and self.releases):
            found = Recorded(*self._places(), "")
            object.__setattr__(self, "releases", self.releases or len(found.places()))
            object.__setattr__(self, "sha256", self.sha256 or found.digest())
        if self.path and not self.maker and Path(self.path).is_dir():
            object.__setattr__(self, "maker", maker_of(Recorded.about(Path(self.path))))
        if self.maker and MAKER.fullmatch(self.maker) is None:
            raise ValueError(f"maker must be at most 60 letters, digits, blanks and . _ + -, got {self.maker!r:.80}")

    def _places(self) -> tuple[Path, Path | None]:
        links = Path(self.links).expanduser() if self.links else None
        if links is not None and not links.exists():
            raise ValueError("links must name a file of links, or a folder of tables, and nothing is there")
        return Path(self.path).expanduser(), links

    @property
    def recorded(self) -> Recorded | None:
        """The folder; None without `path`, as Eve's rooms have it."""
        return Recorded(*self._places(), self.sha256) if self.path else None

    def fit(self, public: Dataset, seed: int) -> ImportedScheme:
        """A scheme without state: nothing is learned here."""
        return ImportedScheme(self)

    def load(self, state: State) -> ImportedScheme:
        """The scheme, which has no state."""
        return ImportedScheme(self)


@dataclass(frozen=True)
class ImportedScheme(Scheme):
    """The scheme of a release that another tool made."""

    method: Imported

    def sample_key(self, secret: Secret) -> ImportedKey:
        """A key that releases nothing."""
        return ImportedKey()

    def load_key(self, state: State) -> ImportedKey:
        """A key that releases nothing."""
        return ImportedKey()

    def load_generator(self, state: State) -> SamplePool:
        """The rows that the maker drew from a generator beside the release."""
        return SamplePool(state)

    def claim(self) -> PrivacyClaim | None:
        """The maker's claim in release.json. None if there is none.

        Raises ValueError for a claim that is none.
        """
        return claim_of(Recorded.about(Path(self.method.path))) if self.method.path else None

    def notes(self) -> Mapping[str, int | float | str]:
        """The caveat that stands beside every figure."""
        return {CAVEAT: WEAKER}


@dataclass(frozen=True)
class ImportedKey(Key):
    """A key that releases nothing; new images reach Bob as they are."""

    def release(self, private: Dataset) -> Release:
        """Raises NotApplicable: the tool that releases is not here."""
        raise NotApplicable(Recorded.REFUSAL)

    def state(self) -> State:
        """Empty: no secret is known."""
        return {}


@dataclass(frozen=True, eq=False)
class SamplePool(Generator):
    """A generator known by a number of its rows.

    `pool` holds `samples` (m, ...) float32 and, if there are labels, `labels` (m, k).
    """

    pool: State

    def __post_init__(self) -> None:
        if not {"samples"} <= self.pool.keys() <= {"samples", "labels"}:
            raise ValueError(f"a pool holds samples and labels, got {', '.join(sorted(self.pool)) or 'nothing'}")

    def sample(self, count: int, seed: int) -> Release:
        """Different rows of the pool at random.

        Raises NotApplicable for more rows than it has.
        """
        at_least(1, count=count)
        samples, labels = self.pool["samples"], self.pool.get("labels")
        if count > len(samples):
            raise NotApplicable(f"the folder holds {len(samples)} rows of the generator, and {count} are needed")
        order = torch.randperm(len(samples), generator=generator(seed))[:count].to(samples.device)
        return Release(samples[order], None if labels is None else labels[order], None)

    def state(self) -> State:
        """The pool."""
        return self.pool


def maker_of(told: Mapping[str, object]) -> str:
    """The maker in release.json; of a release by this project, the method.

    Raises:
        ValueError: It is no text.
    """
    method = told.get("method")
    maker = told.get("maker", method.get("name", "") if isinstance(method, dict) else "")
    if not isinstance(maker, str):
        raise ValueError(f"maker in {Recorded.ABOUT} must be a text, got {type(maker).__name__}")
    return maker


def claim_of(told: Mapping[str, object]) -> PrivacyClaim | None:
    """The maker's claim; None if there is none.

    It holds `unit`, `epsilon` and `delta`, and may hold other fields of PrivacyClaim. Only what says what is claimed is
    taken over: no bound is derived here, for the mechanism is not, and so none stands beside the claimed one.

    Raises:
        ValueError: It is no such claim; the text says what is wrong.
    """
    claim = told.get("claim")
    if claim is None:
        return None
    known = {field.name for field in fields(PrivacyClaim)}
    if not isinstance(claim, dict) or not {"unit", "epsilon", "delta"} <= claim.keys() <= known:
        raise ValueError(
            f"claim in {Recorded.ABOUT} must hold unit (image, pixel or record), epsilon and delta; it may hold "
            f"{', '.join(sorted(known - {'unit', 'epsilon', 'delta'}))}; got "
            f"{', '.join(map(str, claim)) if isinstance(claim, dict) else type(claim).__name__}"
        )
    values = {name: value for name, value in claim.items() if value is not None and name in STATED}
    values["epsilon"] = values.get("epsilon", math.inf)  # as releases of this project write it
    for name in ("epsilon", "delta"):
        number = values.get(name)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(f"{name} of the claim in {Recorded.ABOUT} must be a number, got {number!r:.40}")
        try:
            values[name] = float(number)
        except OverflowError:
            raise ValueError(f"{name} of the claim in {Recorded.ABOUT} is too large: leave the claim out") from None
    if claim["unit"] not in ("image", "pixel", "record"):
        raise ValueError(
            f"unit of the claim in {Recorded.ABOUT} must be image, pixel or record, got {claim['unit']!r:.40}"
        )
    said = {name: claim.get(name) or "" for name in ("assumptions", "basis")}
    for name, text in said.items():
        if not isinstance(text, str) or len(text) > MOST_TEXT:
            raise ValueError(
                f"{name} of the claim in {Recorded.ABOUT} must be a text of at most {MOST_TEXT} characters"
            )
    values |= {
        "assumptions": f"{UNAUDITED} {said['assumptions']}".strip(),
        "basis": f"the maker's word, in {Recorded.ABOUT}{said['basis'] and ': '}{said['basis']}",
        "derived": math.inf,
    }
    try:
        return PrivacyClaim(**values)
    except TypeError as error:
        raise ValueError(f"claim in {Recorded.ABOUT}: {error}") from None
