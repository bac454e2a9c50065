"""A choice of data and sizes: everything that decides the scored rows.

Flags, configuration, plan, folder, record and the command that repeats a row derive from the fields of `Choice`. To add
an option that changes data, add a field here and read it where it counts.
"""

from __future__ import annotations

__figures__ = False

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from bench.contract.eve_profile import PROFILES, SAME_IMAGE, TwoReleases
from bench.contract.preset import PRESETS, Preset
from bench.plugins.spec import Count, Value, defaults, option, options

if TYPE_CHECKING:  # the command line is laid out from this module, before anything heavy is imported
    from torch import Tensor

    from bench.plugins.configured import Configured
    from bench.results.records import DatasetRecord
    from bench.types import Attack, Extractor, Method, Source

NO_PUBLIC = "none"
"""The public set of a choice, and in a record, where there are no public rows."""


@dataclass(frozen=True)
class Choice:
    """A choice of scored rows.

    Args:
        dataset: The private data set.
        public: The public one; None stands for the one that the data set names, "none" for no public rows: then
            no people are set aside, and only what does without them can be run.
        size: Side in pixels; None stands for the data set's own.
        skip_corrupt: Leave unreadable images out.
        max_pixels: Most pixels of an image file; None stands for 100 million.
        preset, seed, limit: They size and draw the splits.
        keys: Unseen keys that attacks are scored on; None stands for the preset's number, the smallest allowed.
        features: The extractor that turns images into the rows that methods get; None leaves rows as they are.
        scored_in: The extractor through which linear probes and figures on sets see raw and released images; None
            leaves them as they are.
        weights: The extractor's stamp (`Extractor.stamp`) of the weights in the file that its parameters name,
            independent of the file's path. None if they name no file.
        splits: "own" cuts rows anew by person; "official" keeps the official test rows and cuts the others.
        eve: What Eve holds: a profile of `bench.contract.eve_profile` with its parameters, as it writes itself
            (`known-pairs[k=5]`).
        rows_of: A method whose releases another tool made: the private rows are those that these were made of. None
            draws them.
        this_release: The releases of `rows_of` are themselves judged, as those of the method under its first keys;
            further keys are drawn. Control and test rows may then be none.
        scheme: A safetensors file of a fitted scheme, which stands for the fit of the method; records hold its hash.
            References keep their own.
        balance: True withholds a random surplus of labels, so that each finding is as often yes as no (Syfer).
            None stands for the default: True for images, False for features.
    """

    dataset: Configured[Source] = option(
        str, "a data set (default: synth-cxr)", metavar="NAME", many="datasets", group="datasets", usual="synth-cxr",
        covered=True,
    )  # fmt: skip
    public: Configured[Source] | Literal["none"] | None = option(
        str, "public data set (default: the one that the data set names); none for no public rows",
        default=None, metavar="NAME", group="datasets", covered=True, words=(NO_PUBLIC,),
    )  # fmt: skip
    size: int | None = option(Count, "resize images to this side", default=None, metavar="PIXELS", covered=True)
    skip_corrupt: bool = option(
        bool, "leave out unreadable images, and count them in the record", default=False, covered=True
    )
    max_pixels: int | None = option(
        Count, "largest number of pixels of an image file (default: 100 million)", default=None, metavar="N",
        covered=True,
    )  # fmt: skip
    preset: str = option(
        str, f"size of a run: {', '.join(PRESETS)} (default: quick)", default="quick", metavar="NAME", draws=True,
        covered=True,
    )  # fmt: skip
    seed: int = option(
        int | str, "seed of a cell, or a span such as 0-4 (default: 0)", default=0, metavar="N", many="seeds",
        draws=True,
    )  # fmt: skip
    limit: int | None = option(
        Count, "use at most N private images; leaderboards leave such runs out", default=None, metavar="N", draws=True
    )
    keys: int | None = option(
        Count, "score attacks under N keys (default: the preset's); 33 keys bound one person's risk by .09",
        default=None, metavar="N", draws=True, covered=True,
    )  # fmt: skip
    features: Configured[Extractor] | None = option(
        str, "turn images into vectors first: pixels, eigenspace, public-cnn, timm:MODEL, package:MODEL", default=None,
        metavar="NAME", group="features", covered=True,
    )  # fmt: skip
    scored_in: Configured[Extractor] | None = option(
        str, "methods get images; linear probes and figures on sets read vectors of this extractor", default=None,
        metavar="NAME", group="features", covered=True,
    )  # fmt: skip
    weights: str | None = option(
        str, "weights of the extractor, as safetensors or a state dict", default=None, metavar="FILE",
        confidential=True, covered=True,
    )  # fmt: skip
    splits: str = option(
        Literal["own", "official"],
        "own: split all rows by person; official: keep the official test rows (default: own)", default="own",
    )  # fmt: skip
    eve: str = option(
        str, f"what Eve holds: {', '.join(PROFILES)} (default: {SAME_IMAGE})", default=SAME_IMAGE, metavar="PROFILE",
        later=True,
    )  # fmt: skip
    balance: bool | None = option(
        bool, "withhold surplus labels, as Syfer does (default: not with --features)", default=None
    )
    rows_of: Configured[Method] | None = option(
        str, "take as private rows what a release by another tool was made of: imported[path=FOLDER]",
        default=None, metavar="METHOD", group="methods", draws=True, later=True,
    )  # fmt: skip
    this_release: bool = option(
        bool, "judge the release of --rows-of itself, which --method made, before others under fresh keys",
        default=False, draws=True, later=True,
    )  # fmt: skip
    scheme: str | None = option(
        str, "a fitted scheme of the method, as a release holds it (default: fitted on the public rows)", default=None,
        metavar="FILE.safetensors", confidential=True, later=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.balance is (self.features is None):  # written or not, the usual is one choice
            object.__setattr__(self, "balance", None)
        if self.extractor is not None:
            self.check_public(self.extractor)
        if self.this_release and self.rows_of is None:
            from bench.plugins.spec import UsageError

            raise UsageError("this-release judges the release of --rows-of: name it, as in imported[path=FOLDER]")
        if (beside := self.beside) is not None and beside.plugin.draws_people:
            from bench.plugins.spec import UsageError

            raise UsageError(f"public rows must be known to everyone, and the people of {beside} are secret: choose "
                             f"another --public")  # fmt: skip

    def check_public(self, chosen: Configured[Method] | Configured[Attack] | Configured[Extractor]) -> None:
        """Raise UsageError where a plug-in needs public rows, and there are none."""
        from bench.plugins.registry import noun
        from bench.plugins.spec import UsageError

        if self.public == NO_PUBLIC and chosen.plugin.needs_public:
            raise UsageError(
                f"the {noun(chosen.group)} {chosen.spec.shown} needs public rows, and --public none leaves it without: "
                f"choose a public set, leave --public out, or do without {chosen.name}"
            )

    @property
    def sizes(self) -> Preset:
        """The preset, with as many keys as were asked for."""
        preset = PRESETS[self.preset]
        if self.rows_of is not None and not self.this_release:
            there = max(1, self.rows_of.plugin.releases or 0)
            preset = replace(preset, keys=there, utility_keys=min(there, preset.utility_keys))
        return preset if self.keys is None else replace(preset, keys=self.keys)

    @property
    def balanced(self) -> bool:
        """If surplus labels are withheld."""
        return balanced({"features": self.features, "balance": self.balance})

    @property
    def extractor(self) -> Configured[Extractor] | None:
        """The extractor that reads the images, before or after a method."""
        return self.features or self.scored_in

    def sized_for(self, method: Configured[Method]) -> Choice:
        """The choice at the image side of the method's preset, by default."""
        side = method.plugin.sides.get(self.preset)
        free = self.size is None and self.features is None and self.dataset.plugin.default_size is not None
        return replace(self, size=side) if free and side is not None else self

    def kept_for(self, method: Configured[Method]) -> Choice:
        """The choice with the raw rows of a method's recorded releases.

        Images are prepared at the side of these releases unless another one was asked for.

        Raises:
            UsageError: The method has none here, or the choice keeps the rows of others.
        """
        from bench.plugins.spec import UsageError

        if method.plugin.releases is None and self.rows_of is None:
            return self
        if method.plugin.releases is not None:
            if method.plugin.recorded is None:
                raise UsageError(f"{method.shown} needs the folder of a release: write {method.name}[path=FOLDER]")
            if self.rows_of not in (None, method):
                raise UsageError(
                    f"--rows-of keeps the rows of {self.rows_of}, and {method.shown} has others: leave it out"
                )
        kept = self.rows_of or method
        found, size = kept.plugin.recorded, self.size
        if found is None:
            raise UsageError(f"--rows-of needs the folder of a release, as in imported[path=FOLDER], got {kept.shown}")
        if size is None and self.features is None and self.dataset.plugin.default_size is not None:
            from bench.data.release_folder import side_of

            size = side_of(found)
        return replace(self, rows_of=kept, size=size)

    def with_secret_people(self) -> Choice:
        """The same with people of the run secret, if possible."""
        from bench.plugins.configured import configure

        wanted = self.dataset.plugin.secret_people
        if not wanted:
            return self
        spec = self.dataset.spec
        others = tuple(pair for pair in spec.parameters if pair[0] not in wanted)
        drawn = replace(spec, parameters=(*others, *wanted.items()))
        return replace(self, dataset=configure("datasets", drawn, self.preset))

    @property
    def beside(self) -> Configured[Source] | None:
        """The public rows' source; None if people are set aside or absent."""
        from bench.plugins.configured import configure
        from bench.plugins.spec import parse

        if isinstance(self.public, str):
            return None
        source = self.dataset.plugin
        named = parse(source.public) if self.public is None else self.public.spec
        if (named.name == source.name and named.argument is None) or named == self.dataset.spec:
            return None
        return self.public or configure("datasets", named, self.preset)

    def side(self, source: Source) -> int | None:
        """Side in pixels of prepared images; None for the source's own.

        What was asked for; else the side that the extractor reads, where methods get vectors and the source's images
        can be prepared at any.
        """
        if self.size is not None or self.features is None or source.default_size is None:
            return self.size
        return self.features.plugin.side

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The choice that `values` describes; missing ones at their defaults.

        Raises:
            UsageError: A wrong name or value.
        """
        from bench.plugins.configured import configure
        from bench.plugins.profile_spec import read_profile
        from bench.plugins.spec import UsageError

        preset = str(values.get("preset") or cls.preset)
        _check(preset, "preset", PRESETS)
        _check_keys(values.get("keys"), preset)
        arguments: dict[str, Any] = {}
        for name, known in options(cls).items():
            value = known.usual if values.get(name) is None else values[name]
            if value is not None:
                plain = known.group is None or value in known.words
                arguments[name] = value if plain else configure(cast(Any, known.group), str(value), preset)
        profile = read_profile(str(values.get("eve") or cls.eve))
        if isinstance(profile, TwoReleases) and profile.method is not None:
            method = configure("methods", profile.method, preset)
            if not method.ours or method.placeless != str(method):
                raise UsageError(
                    f"{profile.name}[method=...] takes a method of this project without files, got {method.shown}: Eve "
                    "makes releases of it in the room of her attack"
                )
            profile = replace(profile, method=str(method))
        return cls(**arguments | {"eve": str(profile)})

    @classmethod
    def written(cls, values: Mapping[str, Any]) -> Self:
        """The choice that a user wrote; `weights` and `scheme` are files.

        Raises:
            UsageError: A wrong name or value, extractors and weights that do not go together, or no scheme.
            DataError: The file of weights is not there.
        """
        from bench.plugins.configured import configure
        from bench.plugins.spec import UsageError, parse

        if values.get("features") and values.get("scored_in"):
            raise UsageError("features already decides what rows are scored in: leave scored_in out")
        scheme = values.get("scheme")
        if scheme is not None:
            scheme = str(Path(str(scheme)).expanduser().resolve())  # plans are read again from other folders
            scheme_hash(scheme)
        file, chosen = values.get("weights"), cls.read({**values, "weights": None, "scheme": scheme})
        reader = chosen.extractor
        if reader is None:
            if file is not None:
                raise UsageError("weights are those of an extractor: name it with --features or --scored-in")
            return chosen
        if file is not None:
            spec = parse(str(values.get("features") or values.get("scored_in")))
            if "weights" in dict(spec.parameters):
                raise UsageError(f"weights are named twice: by {spec.name}[weights=...] and by --weights")
            path = str(Path(file).expanduser().resolve())  # plans are read again from other folders
            if any(letter in path for letter in "[],"):
                raise UsageError(f"--weights must name a file whose path has no '[', ']' or ',': got {path}")
            reader = configure(
                "features", replace(spec, parameters=(*spec.parameters, ("weights", path))), chosen.preset
            )
        name = "features" if chosen.features is not None else "scored_in"
        stamp = reader.plugin.stamp() if reader.placeless != str(reader) else None
        result: dict[str, Any] = {name: reader, "weights": stamp}
        return replace(chosen, **result)

    def values(self) -> dict[str, Value]:
        """Every option as plain text and numbers, with local paths.

        `read` gives an equal choice.
        """
        return {name: _plain(getattr(self, name), str) for name in options(type(self))}

    def shown(self) -> dict[str, Value]:
        """Every option as a record shows it; capitals stand for confidential values."""
        return {
            name: _plain(getattr(self, name), lambda made: made.shown_but("weights")) for name in options(type(self))
        } | self._fitted()

    def _fitted(self) -> dict[str, Value]:
        """The hash of a given scheme, in place of its file."""
        return {} if self.scheme is None else {"scheme": scheme_hash(self.scheme)}

    def keyed(self) -> dict[str, Value]:
        """The options that content keys hold beside the data's fingerprint."""
        result = {
            name: _plain(getattr(self, name), str) for name, known in options(type(self)).items() if not known.covered
        }
        kept = result.pop("rows_of")
        later = {name for name in ("this_release", "scheme") if not result[name]}
        result = {name: value for name, value in result.items() if name not in later} | self._fitted()
        return {**result, "balance": self.balanced, **({} if kept is None else {"rows_of": self._placeless("rows_of")})}

    def identity(self) -> dict[str, Value]:
        """The options that distinguish it from other choices; defaults left out."""
        placeless = {name: self._placeless(name) for name in ("features", "scored_in", "rows_of")}
        whole = {**self.values(), **placeless, **self._fitted()}
        usual = defaults(type(self))
        return {name: value for name, value in whole.items() if value != usual[name]}

    def _placeless(self, name: str) -> Value:
        return _plain(getattr(self, name), lambda chosen: chosen.placeless)


def given_scheme(path: str) -> Mapping[str, Tensor]:
    """The tensors of a fitted scheme's file.

    Raises:
        UsageError: It holds none.
    """
    from bench.plugins.spec import UsageError
    from bench.wire.tensor_file import TensorsError, unpack_tensors

    try:
        return unpack_tensors(Path(path), Path(path).stat().st_size)
    except FileNotFoundError:
        raise UsageError(f"--scheme {path}: there is no such file: name the scheme.safetensors of a fit") from None
    except (TensorsError, OSError) as error:
        raise UsageError(f"--scheme {path} must be a safetensors file of a fitted scheme: {error}") from None


def scheme_hash(path: str) -> str:
    """SHA-256 of a fitted scheme's tensors.

    A choice that was read from a record has this in place of a file.

    Raises:
        UsageError: The file holds none.
    """
    if re.fullmatch("[0-9a-f]{64}", path):
        return path
    try:
        found = Path(path).stat()
    except OSError:
        given_scheme(path)  # which says so
        raise
    return _scheme_hash(path, found.st_mtime_ns, found.st_size)


@cache
def _scheme_hash(path: str, changed: int, size: int) -> str:
    from bench.wire.tensor_file import checksum_of

    return checksum_of(given_scheme(path))


def _plain(value: Any, show: Any) -> Value:
    return value if value is None or isinstance(value, str | int) else cast(Value, show(value))


def _check(name: str, what: str, known: Collection[str]) -> None:
    from bench.plugins.spec import UsageError, did_you_mean

    if name not in known:
        raise UsageError(f"unknown {what} {name!r}; {did_you_mean(name, known)}")


def _check_keys(keys: object, preset: str) -> None:
    """Refuse fewer keys than the preset's, which would widen every interval."""
    from bench.plugins.spec import UsageError

    if keys is not None and int(str(keys)) < PRESETS[preset].keys:
        raise UsageError(f"keys must be at least the {PRESETS[preset].keys} of the preset {preset}, got {keys}")


def balanced(choice: Mapping[str, object]) -> bool:
    """If a choice, given as `Record.choice`, withholds surplus labels."""
    return choice["features"] is None if choice["balance"] is None else bool(choice["balance"])


def settled(choice: Mapping[str, object]) -> dict[str, object]:
    """Every option of a record's choice, missing ones at their defaults."""
    stands = {name: value for name, value in defaults(Choice).items() if value is not MISSING}
    return {
        name: stands.get(name, known.usual) if choice.get(name) is None else choice[name]
        for name, known in options(Choice).items()
    }


def collection(choice: Mapping[str, object], data: DatasetRecord | None) -> tuple[object, ...]:
    """The shared part of records whose rows come from one collection.

    Sizes and seeds do not count.

    Args:
        choice: As `Record.choice`.
        data: What was opened; None where nothing was.
    """
    known, usual = options(Choice), defaults(Choice)
    values = tuple(
        (name, value)
        for name, value in settled(choice).items()
        if not known[name].draws and not (known[name].later and value == usual[name])
    )
    return values if data is None else (*values, *data.fingerprints)


def same_rows(a: Mapping[str, object], b: Mapping[str, object], of_a: DatasetRecord, of_b: DatasetRecord) -> bool:
    """If two records speak of the same rows."""
    return (a == b or settled(a) == settled(b)) and of_a.rows == of_b.rows and of_a.fingerprints == of_b.fingerprints
