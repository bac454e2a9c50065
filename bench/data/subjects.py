"""People and attributes of rows, from the words of a data set.

Spellings that differ in form alone are one person: blanks, case, width of letters, and for numbers `1`, `01`, `1.0`,
`1,0` and `1e0`. If that joins two people by mistake, their rows stay on one side of every split; the other mistake
would put one person on two sides. `nan`, `None` and the like are unknown: such a row is a person of its own.
Notes hold counts only, because identifiers stay on this machine.

Attributes (sex, age, view, ...) become groups. Ages become bands of years; `F`, `female` and the like become `female`.
Every other word is a group of its own name; case, blanks and the form of a number (1, 01, 1.0) do not matter. Blank
words and ages above 120 years are unknown.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bench.contract.attributes import Attributes
from bench.contract.source import DataError

_SPREADSHEET = {
    "#n/a", "#name?", "#null!", "#num!", "#ref!", "#value!", "#div/0!", "#nv", "#bezug!", "#wert!", "#zahl!",
    "#valeur!", "#nom?", "#nombre!", "#valor!",
}  # fmt: skip
NOTHING = (
    frozenset({"", "nan", "none", "null", "nil", "na", "n/a", "<na>", "nat", "unknown", "missing", "-", "--", "?", "."})
    | _SPREADSHEET
)
"""Words that tables write if they know nothing."""
MARK = 16
UNKNOWN = "people are not known: images of one person may stand on two sides"
_COMMA = re.compile(r"([+-]?[0-9]+),0{1,2}")  # a whole number with a decimal comma; 1,000 may be a thousand
_SHORTENED = re.compile(r"[0-9](?:[.,][0-9]+)?e\+[0-9]{2,}")
_NUMBER = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]{1,9}))?")


def spelling(text: str) -> str:
    """The normal form of a word.

    Case, letter width, invisible marks and extra blanks are removed.

    Raises:
        DataError: If it holds control characters or half of a character; the text does not repeat it.

    >>> spelling(" Ａnn  Lee ")
    'ann lee'
    """
    shown = "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    word = " ".join(shown.split()).casefold()
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word):
        raise DataError("expected readable text, found control characters or bytes that are not UTF-8")
    return word


@dataclass(frozen=True, eq=False)
class People:
    """The people of a data set.

    Args:
        numbers: (n,) int64, one number a person, in order of appearance; None if no person is known.
        count: How many different people are known by name.
        notes: What a reader should know; no identifiers.
        marks: (n, 16) uint8, equal for rows of one person in every data set of the same source; zeros for unknown. As
            confidential as the identifiers, which are few enough to be tried.
    """

    numbers: np.ndarray | None
    count: int
    notes: tuple[str, ...]
    marks: np.ndarray | None = None


def person(subject: str) -> str | tuple[str, str, int] | None:
    """The key of a person, equal for all spellings; None for unknown.

    A number gives its sign, digits and power of ten, exactly.

    >>> person("1") == person("01") == person(" 1.0") == person("1,0") == person("１") == person("1e0")
    True
    >>> person("NaN") is None
    True

    Raises:
        DataError: As `spelling`.
    """
    word = spelling(subject)
    if word in NOTHING:
        return None
    whole_number = _COMMA.fullmatch(word)
    number = _NUMBER.fullmatch(word if whole_number is None else whole_number[1])
    if number is None:
        return word
    sign, whole, fraction, power = number.groups()
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "", "0", 0
    return sign.replace("+", ""), significant, int(power or 0) - len(fraction) + len(digits) - len(significant)


def codes(keys: Sequence[Hashable]) -> np.ndarray:
    """(n,) int64: different keys numbered in order of appearance.

    >>> codes(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def people(subjects: Sequence[str] | None, source: str = "") -> People:
    """The people of `subjects`, one identifier a row; DataError for unreadable text."""
    if subjects is None:
        return People(None, 0, ())
    keys: dict[str, str | tuple[str, str, int] | None] = {}
    for row, subject in enumerate(subjects):
        if subject in keys:
            continue
        try:
            keys[subject] = person(subject)
        except DataError as error:
            raise DataError(f"the person of row {row + 1}: {error}") from None
    known = [key for key in keys.values() if key is not None]
    if not known:
        return People(None, 0, (UNKNOWN,))
    rows = [row if keys[subject] is None else keys[subject] for row, subject in enumerate(subjects)]
    unknown = sum(keys[subject] is None for subject in subjects)
    shortened = sum(_SHORTENED.fullmatch(spelling(subject)) is not None for subject in keys)
    several = sum(spellings > 1 for spellings in Counter(known).values())
    notes = [f"the person is unknown for {unknown} of {len(subjects)} rows"] if unknown else []
    if shortened:
        notes.append(
            f"{shortened} people are written like 1.2E+12, as spreadsheets shorten long numbers: several people may "
            f"count as one"
        )
    if several:
        notes.append(
            f"{several} people are written in several ways (blanks, case, or a number as 1, 01 and 1.0) and count as "
            f"one each"
        )
    marks = np.stack([_mark(source, keys[subject]) for subject in subjects])
    return People(codes(rows), len(set(known)), tuple(notes), marks)


def _mark(source: str, person: str | tuple[str, str, int] | None) -> np.ndarray:
    written = b"" if person is None else hashlib.blake2b(repr((source, person)).encode(), digest_size=MARK).digest()
    return np.frombuffer(written.ljust(MARK, b"\0"), dtype=np.uint8)


MOST_GROUPS = 32
AGES = (18, 40, 60, 80)
BANDS = ("0-17", "18-39", "40-59", "60-79", "80 and over")
OLDEST = 120
_AGE = re.compile(
    r"([0-9]{1,3}|[0-9]{4,5}(?= ?d))(?:[.,][0-9]*)? ?"
    r"(?:([ymwd])|(y)(?:ea)?rs?|(m)o(?:nth)?s?|(w)(?:ee)?ks?|(d)ays?)?(?: old)?"
)
_A_YEAR = {"y": 1, "m": 12, "w": 52.18, "d": 365.25}
"""Units of ages in a year."""
_TOP = re.compile(r"(?:>=?|≥) ?([0-9]{1,3})|([0-9]{1,3}) ?\+")
_SEXES = {"f": "female", "female": "female", "w": "female", "m": "male", "male": "male"}


def read_groups(words: Mapping[str, Sequence[str]]) -> Attributes | None:
    """Read the attributes of rows; None if there are none.

    Args:
        words: By attribute, one word a row as the data set writes it.

    Raises:
        DataError: An age that is no number, a word that is no text, or an attribute of more than `MOST_GROUPS` words.

    >>> read_groups({"sex": ["F", "male", "", "f"], "age": ["058Y", "17", "9", "411"]}).groups
    (('female', 'male'), ('0-17', '40-59'))
    """
    groups: dict[str, tuple[str, ...]] = {}
    columns = []
    for name, column in words.items():
        shown: dict[Hashable, str] = {}  # a group is called as it is first written
        known: dict[str, str] = {}
        for row, word in enumerate(column):
            if word not in known:
                try:
                    known[word] = _group(name, word, shown)
                except DataError as error:
                    raise DataError(f"the attribute {name} of row {row + 1}: {error}") from None
        names = sorted({group for group in known.values() if group})
        if len(names) > MOST_GROUPS:
            raise DataError(
                f"the attribute {name} has {len(names)} different words, expected at most {MOST_GROUPS}: a group holds "
                "many people. Leave the column out, or write fewer words"
            )
        groups[name] = tuple(names)
        places = {group: number for number, group in enumerate(names)}
        columns.append([places.get(known[word], -1) for word in column])
    if not columns:
        return None
    return Attributes(tuple(groups), tuple(groups.values()), torch.tensor(columns, dtype=torch.int64).T.contiguous())


def contradictions(subjects: Sequence[str], words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Notes that count people of several sexes or at several sites.

    >>> [note[:26] for note in contradictions(["1", "01", "2"], {"sex": ["F", "male", "m"]})]
    ['1 people have several sexe']
    """
    for name, text in (("sex", "have several sexes"), ("site", "stand at several sites")):
        if name not in words:
            continue
        several: dict[Hashable, set[str]] = {}
        for subject, word in zip(subjects, words[name], strict=True):
            several.setdefault(person(subject), set()).add(_group(name, word, {}).casefold())
        several.pop(None, None)
        if count := sum(len(groups - {""}) > 1 for groups in several.values()):
            yield (
                f"{count} people {text}: if two sites gave one number to different people, write the site before the "
                f"number"
            )


def unreadable(name: str, column: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rows whose word is no value of the attribute, with the reason."""
    for row, word in enumerate(column):
        try:
            _group(name, word, {})
        except DataError as error:
            yield row, str(error)


def _group(name: str, word: str, shown: dict[Hashable, str]) -> str:
    """The group of a word, "" for unknown; `shown` holds first spellings."""
    key = spelling(word)
    if key in NOTHING:
        return ""
    if name == "sex":
        return _SEXES.get(key, key)
    if name == "age":
        return _band(key)
    return shown.setdefault(person(word), " ".join(word.split()))


def _band(word: str) -> str:
    """The age band of a word; "90+" gives the last."""
    top, age = _TOP.fullmatch(word), _AGE.fullmatch(word)
    if top is not None and int(top[1] or top[2]) >= AGES[-1]:
        return BANDS[-1]
    if age is None:
        raise DataError(
            "expected an age as a number of years, or as DICOM writes it (058Y, 011M), or 90+, found something else: "
            "correct it, or leave it blank"
        )
    years = int(int(age[1]) / _A_YEAR[next(filter(None, age.groups()[1:]), "y")])
    return BANDS[bisect_right(AGES, years)] if years <= OLDEST else ""
