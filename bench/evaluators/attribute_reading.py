"""The attributes evaluator: sex, age, view, site or findings of rows.

Source: Fredrikson et al. 2015, "Model inversion attacks that exploit confidence information", section 3 (attribute
inference); Gichoya et al. 2022, "AI recognition of patient race in medical imaging", for images. Eve holds no image of
the released people. She releases other people's images under keys of her own, learns to read their attributes from the
released rows, and reads the owner's release, whose key and people are new to her.

Her people are the public ones whose attributes are known, and the control people. A quarter of them, under one more
key, choose the model of each attribute: logistic regression on Bob's views of a row (`bench.bob.recipes`), on numbers
that survive a change of key (`bench.eve.row_statistics`), and on the features of `--scored-in`, alone or the best three
together. All are convex problems; the record holds the AUC by the number of keys that she trains on. The same models
learn from raw rows and from released labels alone, as references. Another author's method knows the public rows.
Therefore Eve asks it for control and test people, and its calls are completed by private rows.

Ages are bands of the data set: 0-17, 18-39, 40-59, 60-79, 80 and over. Findings are an attribute if the release carries
no labels. Groups of fewer than ten people among the private or Eve's ones are not judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias, cast

import torch
from pydantic import JsonValue

from bench.bob import linear_models, recipes
from bench.evaluators.predictions import sample_predictions
from bench.eve.row_statistics import geometry, statistics
from bench.evidence import AttributeEvidence, UtilityEvidence
from bench.pictures.strips import stands
from bench.plugins.code_digest import code_digest
from bench.progress import report, stage
from bench.randomness import Secret
from bench.results.store import Artefact
from bench.rows.grouping import FEWEST, hold_out, persons_of
from bench.statistics.classification_scores import aucs
from bench.types import (
    LEARNING,
    Attributes,
    Dataset,
    Evaluator,
    LearningCurve,
    Measurement,
    NotApplicable,
    Scheme,
)
from bench.workbench.other_people import other_people, released
from bench.workbench.workbench import Workbench, detector

FEWEST_KEYS, MOST_KEYS = 4, 8
ENOUGH_ROWS = 1000
"""Eve trains on so many keys that she has as many rows, within these bounds."""
SAME = 0.01
"""Gain in AUC from the last doubling of her keys that counts as none."""
CHOOSING = 0.25  # share of her people, however many rows they have, that she chooses by
VOTERS = 3
MOST_ROWS = 4096  # of hers under one key
FINDING = "finding"

Predict: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


@dataclass(frozen=True, eq=False)
class Truth:
    """Groups of rows (n, g), 1, 0 or NaN, and their names."""

    columns: torch.Tensor
    names: tuple[tuple[str, str], ...]

    def of(self, attribute: str) -> list[int]:
        """The places of an attribute's columns."""
        return [place for place, (name, _) in enumerate(self.names) if name == attribute]

    def only(self, places: Sequence[int]) -> Truth:
        """Some of the columns."""
        return Truth(self.columns[:, list(places)], tuple(self.names[place] for place in places))


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows of one release, any labels, their truth, their people."""

    samples: torch.Tensor
    labels: torch.Tensor | None
    truth: torch.Tensor
    people: torch.Tensor


@dataclass(frozen=True, eq=False)
class Choice:
    """An attribute's models in words, their predictions, and a curve.

    No curve and no AUC is given if the held-out people are too few to be named by a figure.
    """

    name: str
    predict: Predict
    curve: LearningCurve | None


@dataclass(frozen=True)
class AttributeReading(Evaluator[Workbench]):
    """Attributes of released people, read by a model of Eve's own releases."""

    name: ClassVar[str] = "attributes"
    source: ClassVar[str] = "attribute inference: Fredrikson et al. 2015, section 3; Gichoya et al. 2022"
    evidence: ClassVar[type] = AttributeEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Learn attributes from Eve's own releases; read the owner's, and raw rows."""
        scheme, start = bench.scheme(), time.perf_counter()
        first = bench.sealed(scheme, 0)
        if first.links is None:
            raise NotApplicable(
                f"{bench.method.name} releases rows without a raw original: no row has a person whose attributes it "
                "could show"
            )
        private = bench.private if bench.natural is None else replace(bench.private, labels=bench.natural)
        findings = first.release.labels is None
        people, attributes = other_people(
            bench, "attributes", most=MOST_ROWS if bench.outside else round(MOST_ROWS / (1 - CHOOSING)), described=True
        )
        wanted = _truth(private, bench.attributes.get("private"), private.findings, findings=findings)
        known = _truth(people, attributes, private.findings, findings=findings)
        truth, left_out = _judged(wanted, private, known, people)
        if not truth.names:
            raise NotApplicable(_reason(left_out, findings=findings))
        known = known.only([known.names.index(name) for name in truth.names])
        rows = [part.cpu() for part in hold_out(people, CHOOSING, bench.seed("attributes"), of="people")]
        sides = [(people.take(part.to(bench.device)), known.columns[part]) for part in rows]

        stage("release to learn attributes")
        lessons = _own_releases(bench, bench.for_eve(scheme), sides)
        stage("learn attributes")
        choices = _chosen(bench, lessons, truth)
        spoken: dict[str, Choice] = {}
        labels: dict[str, UtilityEvidence] = {}
        if all(lesson.labels is not None for lesson in lessons):
            read = [replace(each, samples=_known(each.labels)) for each in lessons]
            spoken = _chosen(bench, read, truth, labels=True)
        scores: list[torch.Tensor] = []
        from_labels: list[torch.Tensor] = []
        for number in range(bench.preset.keys):
            sealed = bench.sealed(scheme, number)
            assert sealed.links is not None
            stage("read attributes")
            release = sealed.release
            place = stands(sealed.links, sealed.primary, n=len(private), m=len(release)).cpu()
            scores.append(_read(choices, release.samples, truth, place))
            if spoken and release.labels is not None:
                from_labels.append(_read(spoken, _known(release.labels), truth, place))
        stage("learn attributes from raw rows")
        raw = _from_raw(bench, sides, truth)
        subjects = None if private.subjects is None else private.subjects.cpu()

        def evidence(found: list[torch.Tensor]) -> dict[str, UtilityEvidence]:
            return {
                name: UtilityEvidence(
                    [each[:, truth.of(name)] for each in found], truth.columns[:, truth.of(name)], subjects,
                    tuple(group for attribute, group in truth.names if attribute == name), bench.seed("attributes"),
                )
                for name in dict.fromkeys(attribute for attribute, _ in truth.names)
            }  # fmt: skip

        if len(from_labels) == len(scores):
            labels = evidence(from_labels)
        details: dict[str, JsonValue] = {
            "groups": [f"{attribute}: {group}" for attribute, group in truth.names],
            "chosen": {name: choice.name for name, choice in choices.items()},
            "left out": cast(JsonValue, left_out),
            LEARNING: [choice.curve.content() for choice in choices.values() if choice.curve is not None],
        }
        found = AttributeEvidence(evidence(scores), evidence([raw]), labels)
        seconds = {"attributes": time.perf_counter() - start}
        return Measurement(
            {"": found}, details, seconds, _knowledge(bench, [len(part) for part in rows], _keys(sides[0][0]))
        )

    @classmethod
    def samples(cls) -> Iterator[AttributeEvidence]:
        """Random guesses at one attribute and at two, with and without labels."""
        guesses = sample_predictions()
        yield AttributeEvidence({"sex": guesses.single}, {"sex": guesses.single})
        two = {"sex": guesses.single, "age": replace(guesses.many, scores=guesses.many.scores[:1])}
        yield AttributeEvidence(two, two, {"sex": guesses.single})


def _truth(data: Dataset, attributes: Attributes | None, names: tuple[str, ...], *, findings: bool) -> Truth:
    """All columns of attributes, and of findings if they are attributes."""
    columns: list[torch.Tensor] = []
    titles: list[tuple[str, str]] = []
    if attributes is not None:
        for name, members in attributes.members().items():
            known = torch.stack(list(members.values())).any(dim=0) if members else None
            for group, rows in members.items():
                columns.append(torch.where(cast(torch.Tensor, known), rows.float(), torch.nan))
                titles.append((name, group))
    if findings and data.labels is not None:
        columns += list(data.labels.cpu().T)
        titles += [(FINDING, name) for name in names]
    return Truth(torch.stack(columns, dim=1) if columns else torch.zeros(len(data), 0), tuple(titles))


def _judged(wanted: Truth, private: Dataset, known: Truth, people: Dataset) -> tuple[Truth, dict[str, str]]:
    """Columns with enough people on both sides; reasons for the others."""
    kept: list[int] = []
    left_out: dict[str, str] = {}
    sides = ((wanted, persons_of(private)), (known, persons_of(people)))
    for name in dict.fromkeys(attribute for attribute, _ in wanted.names):
        every, own = wanted.of(name), []
        for place in every:
            title = wanted.names[place]
            counts = [0]
            if title in known.names:
                columns = [(truth.columns[:, truth.names.index(title)], person) for truth, person in sides]
                counts = [len(torch.unique(person[column == value])) for column, person in columns for value in (1, 0)]
            if min(counts) >= FEWEST:
                own.append(place)
        if len(own) < len(every):  # no name and no number of a small group enters a record
            left_out[name] = (
                f"{len(every) - len(own)} of {len(every)} groups: fewer than {FEWEST} private people, or people "
                "known to Eve, are in the group or outside it"
            )
        two_groups = name != FINDING and len(every) == 2
        kept += own[:1] if two_groups else own
    return wanted.only(kept), left_out


def _reason(left_out: Mapping[str, str], *, findings: bool) -> str:
    if left_out:
        named = "; ".join(f"{name}, {reason}" for name, reason in left_out.items())
        return f"no attribute has two groups with enough people: {named}"
    carried = "" if findings else ", and its findings are released as labels"
    return f"the data set does not say sex, age, view or site of its rows{carried}"


def _keys(learning: Dataset) -> int:
    """The number of keys that Eve trains on."""
    return min(MOST_KEYS, max(FEWEST_KEYS, ENOUGH_ROWS // len(learning)))


def _own_releases(bench: Workbench, scheme: Scheme, sides: Sequence[tuple[Dataset, torch.Tensor]]) -> list[Lesson]:
    """Releases under Eve's own keys; the last one chooses."""
    learning, choosing = sides
    parts = [learning] * _keys(learning[0]) + [choosing]
    keys = [scheme.sample_key(Secret.of_seed(bench.seed("attribute key", number))) for number in range(len(parts))]
    own = [released(bench, key, rows) for key, (rows, _) in zip(keys, parts, strict=True)]
    return [
        Lesson(each.samples, each.labels, truth[each.rows.cpu()], persons_of(rows)[each.rows.cpu()])
        for each, (rows, truth) in zip(own, parts, strict=True)
    ]


def _chosen(bench: Workbench, lessons: Sequence[Lesson], truth: Truth, *, labels: bool = False) -> dict[str, Choice]:
    """By attribute, the best models on the last lesson."""
    *learned, judged = lessons
    columns = torch.cat([lesson.truth for lesson in learned]).to(bench.device)
    samples = [lesson.samples for lesson in learned]
    readings = {"released labels": _plain} if labels else _readings(bench, torch.cat(samples))
    models: dict[str, dict[str, Predict]] = {}
    for number, (name, reading) in enumerate(readings.items(), 1):
        models[name] = _logistic(reading, samples, columns)
        report("attributes, reading", number, len(readings))
    found = {
        name: {penalty: predict(judged.samples).float().cpu() for penalty, predict in path.items()}
        for name, path in models.items()
    }
    choices = {}
    for attribute in dict.fromkeys(name for name, _ in truth.names):
        places = truth.of(attribute)
        area = partial(_area, judged.truth[:, places])
        best = {
            name: max(path, key=lambda penalty, path=path: area(path[penalty][:, places]))  # type: ignore[misc]
            for name, path in found.items()
        }
        order = sorted(best, key=lambda name: -area(found[name][best[name]][:, places]))
        voters = [order[:1], order[:VOTERS]]
        votes = [_vote([found[name][best[name]] for name in some]) for some in voters]
        areas = [area(vote[:, places]) for vote in votes]
        winner = 1 if areas[1] >= areas[0] else 0
        named = " and ".join(f"{name} (penalty {best[name]})" for name in voters[winner])
        predict = partial(_voted, [models[name][best[name]] for name in voters[winner]])
        counted = [place for place in places if _many(judged, place)]
        if not counted:
            few = f"no AUC, for no group has {FEWEST} held-out people of Eve's in it and outside it"
            choices[attribute] = Choice(f"{named}: {few}", predict, None)
            continue
        stated = partial(_area, judged.truth[:, counted])
        points = []
        for keys in sorted({2**power for power in range(len(learned).bit_length())} - {len(learned)}):
            first = order[0]
            fewer = len(torch.cat([lesson.truth for lesson in learned[:keys]]))
            model = _logistic(readings[first], samples[:keys], columns[:fewer])[best[first]]
            points.append((keys, stated(model(judged.samples).float().cpu()[:, counted])))
        points.append((len(learned), stated(votes[0][:, counted])))
        gain = points[-1][1] - points[-2][1]
        curve = LearningCurve(
            "AUC on held-out people of Eve's under a held-out key, by keys that she trains on", tuple(points),
            gain <= SAME, f"convex problem; the last doubling of keys added {gain:.3f}", attribute,
        )  # fmt: skip
        reached = stated(votes[winner][:, counted])
        choices[attribute] = Choice(f"{named}: AUC {reached:.3f} on held-out people of Eve's", predict, curve)
    return choices


def _many(lesson: Lesson, place: int) -> bool:
    """If a group and its complement have people enough for a figure."""
    column = lesson.truth[:, place]
    return all(len(torch.unique(lesson.people[column == value])) >= FEWEST for value in (1, 0))


def _readings(bench: Workbench, samples: torch.Tensor) -> dict[str, Predict]:
    """Numbers read from the rows of a release, by name."""
    readings: dict[str, Predict] = {"row statistics": statistics, "geometry of the release": geometry}
    readings["statistics and geometry"] = lambda rows: torch.cat((statistics(rows), geometry(rows)), dim=1)
    readings |= {name: view(samples) for name, view in recipes.views(samples).items()}
    if bench.space is not None and samples.shape[1:] == bench.private.samples.shape[1:]:
        readings[bench.space.shown] = bench.vectors
    return readings


def _plain(rows: torch.Tensor) -> torch.Tensor:
    return rows


def _vote(scores: Sequence[torch.Tensor]) -> torch.Tensor:
    """Mean of log odds (n, g) in units of their deviations."""
    return torch.stack([each / each.std(dim=0, correction=0).clamp_min(1e-9) for each in scores]).mean(dim=0)


def _voted(models: Sequence[Predict], samples: torch.Tensor) -> torch.Tensor:
    return _vote([predict(samples) for predict in models])


def _area(truth: torch.Tensor, scores: torch.Tensor) -> float:
    """Mean AUC of columns (n, g) with both classes; 0 without any."""
    once = torch.ones(1, len(truth), dtype=torch.int64)
    areas = torch.cat([aucs(column, known, once) for column, known in zip(scores.T, truth.T, strict=True)])
    return float(areas.nanmean().nan_to_num(0.0))


def _logistic(reading: Predict, samples: Sequence[torch.Tensor], columns: torch.Tensor) -> dict[str, Predict]:
    """Logistic regressions on numbers read from each release, by penalty."""
    with torch.no_grad():
        numbers = torch.cat([reading(each) for each in samples])
    deviation, mean = torch.std_mean(numbers, dim=0, correction=0)
    scale = torch.where(deviation > 1e-9 * mean.abs().clamp_min(1e-9), deviation, torch.inf)

    def predicted(model: linear_models.LinearModel, rows: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return _scaled(reading(rows), mean, scale) @ model.weights + model.bias

    path = linear_models.logistic_path(_scaled(numbers, mean, scale), columns, exclusive=False)
    return {f"{model.strength:g}": partial(predicted, model) for model in path}


def _scaled(numbers: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Numbers in deviations of the learned rows, cut at 6."""
    # An unseen key may move a number far.
    return ((numbers - mean) / scale).clamp(-6, 6).float()


def _known(labels: torch.Tensor | None) -> torch.Tensor:
    """Labels (m, k) as numbers, and marks of the known ones."""
    assert labels is not None
    return torch.cat((labels.nan_to_num(0.5), (~labels.isnan()).to(labels)), dim=1)


def _read(choices: Mapping[str, Choice], samples: torch.Tensor, truth: Truth, place: torch.Tensor) -> torch.Tensor:
    """Scores (n, g) of raw rows; the mean for unreleased ones."""
    scores = torch.empty(len(place), len(truth.names))
    for attribute, choice in choices.items():
        found = choice.predict(samples).float().cpu()
        found = torch.cat((found, found.mean(dim=0, keepdim=True)))[place]
        for column in truth.of(attribute):
            scores[:, column] = found[:, column]
    return scores


def _from_raw(bench: Workbench, sides: Sequence[tuple[Dataset, torch.Tensor]], truth: Truth) -> torch.Tensor:
    """Scores (n, g) of private raw rows, as of `identity`; stored."""
    (learning, columns), (choosing, judged) = sides

    def make() -> Artefact:
        own = Lesson(learning.samples, None, columns, persons_of(learning))
        lessons = [own] * _keys(learning) + [Lesson(choosing.samples, None, judged, persons_of(choosing))]
        choices = _chosen(bench, lessons, truth)
        every = torch.arange(len(bench.private))
        chosen = cast(JsonValue, {name: choice.name for name, choice in choices.items()})
        return Artefact({"scores": _read(choices, bench.private.samples, truth, every)}, {"chosen": chosen})

    inputs = {
        "attributes": cast(JsonValue, [list(name) for name in truth.names]),
        "code": code_digest(AttributeReading), "people": "control and test" if bench.outside else "public and control",
    }  # fmt: skip
    return detector(bench, inputs, make).tensors["scores"].cpu()


def _knowledge(bench: Workbench, rows: Sequence[int], keys: int) -> dict[str, str]:
    """Eve's knowledge, for the record."""
    who = "control and test people, for another author's method knows public ones" if bench.outside else (
        f"public people ({bench.record.public}) and control people, as far as their attributes are known"
    )  # fmt: skip
    return {
        "eve": "the scheme, and images and attributes of other people, which she releases herself; no candidate",
        "people": f"{who}: {rows[0]} rows to learn from and {rows[1]} of other people to choose by",
        "scheme": f"known; she trains on {keys} keys of her own and chooses by one more",
        "key": f"unknown: read under {bench.preset.keys} keys that she never saw",
    }
