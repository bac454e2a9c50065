"""Bob: training on a release, and the choice of his model.

Source: Yala et al., Syfer (2022), section 5: several architectures, dropout rates and weight decays, chosen by the
validation AUC. Differences: all findings are learned jointly, with unknown labels masked (the paper trains one model a
finding); the best tenth of a course is kept by the same AUC; linear models on several views of a row are tried beside
networks, which at few rows they often beat; a network must lead by .01 to be chosen, and if the plan is impatient, one
that falls behind ends early. The best two or three models vote if their vote is no worse than the best of them: control
people are few, and the first of many candidates owes some of its lead to luck.

Two choices are made among the same trials. The first, as in the paper, is by labelled rows of other people (dev rows).
The second is by released rows held out of the trials: the choice of an outsider who has the release alone. For it all
trials see the other released rows only; the chosen recipe is then trained again on all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from bench.bob.recipe_training import AHEAD, Course, Judge, Rows, Training
from bench.bob.recipes import Architecture, BobPlan, Choice, Model, Recipe, Shortlist, Trial, Vote, log_odds
from bench.nets.classifier import Precision, fast_precision
from bench.seeds import derive, generator
from bench.statistics.classification_scores import aucs
from bench.types import NotApplicable, Release


def held_out(samples: torch.Tensor, share: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and held-out rows (int64, ascending); equal rows are on one side."""
    digests = [hashlib.blake2b(row.numpy().tobytes(), digest_size=8).digest() for row in samples.cpu().contiguous()]
    numbers = {digest: number for number, digest in enumerate(dict.fromkeys(digests))}
    member = torch.tensor([numbers[digest] for digest in digests])
    order = torch.randperm(len(numbers), generator=generator(seed))
    sizes = torch.bincount(member)[order]
    is_held = torch.isin(member, order[sizes.cumsum(0) <= share * len(samples)])
    training, judging = ((side).nonzero()[:, 0].to(samples.device) for side in (~is_held, is_held))
    return training, judging


VOTERS = 3
STEPS = 1000
"""Resolution of soft labels: a mixed row counts in thousandths as positive, the rest as negative."""


def mean_auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """Mean AUC over findings with both classes; ValueError if there are none.

    A label between 0 and 1 makes its row count in part as positive, in part as negative; NaN is left out.
    """
    findings = judged_findings(labels)
    if not findings:
        raise ValueError("no finding has rows of both classes")
    areas = [_auc(scores[:, column].cpu(), labels[:, column].cpu()) for column in findings]
    return sum(areas) / len(areas)


def judged_findings(labels: torch.Tensor) -> list[int]:
    """Columns of labels (n, k) with positive and negative rows."""
    both = (labels > 0).any(dim=0) & (labels < 1).any(dim=0)
    return [int(column) for column in both.nonzero()[:, 0]]


def _auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    known = ~labels.isnan()
    scores, share = scores[known], (labels[known] * STEPS).round().long()
    truth = torch.cat((torch.ones(len(share)), torch.zeros(len(share))))
    return float(aucs(scores.repeat(2), truth, torch.cat((share, STEPS - share))[None]))


Decode = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Bob:
    """The models chosen by dev rows, and by held-out released rows.

    `outsider` is None if no rows were held out or they could not choose.
    """

    model: Model | Vote
    dev_auc: float
    outsider: Model | None
    trials: tuple[Trial, ...]
    shortlist: Shortlist
    precision: Precision

    @property
    def architecture(self) -> Architecture:
        """The chosen architecture."""
        return self.model.choice.recipe.architecture

    def predict(self, samples: torch.Tensor) -> torch.Tensor:
        """`Model.predict` of the model chosen by dev rows."""
        return self.model.predict(samples)


def train_bob(
    release: Release,
    dev_samples: torch.Tensor,
    dev_labels: torch.Tensor,
    *,
    exclusive: bool,
    plan: BobPlan,
    seed: int,
    decode: Decode | None = None,
    shortlist: Shortlist | None = None,
) -> Bob:
    """Train on the release; choose by AUC on dev and held-out rows.

    Labels of the release (m, k) are in [0, 1], balanced beforehand; `dev_samples` are as `Key.query` gives them,
    with real labels. A `shortlist` of another key's Bob replaces the whole plan. Raises NotApplicable if the
    release has no labels, no architecture fits its rows, or no dev finding has both classes.
    """
    if release.labels is None:
        raise NotApplicable("utility needs labels: none were released")
    if not judged_findings(dev_labels):
        raise NotApplicable("utility needs dev rows of both classes: no finding has them")
    recipes = plan.recipes(release.samples) if shortlist is None else shortlist.recipes
    if not recipes:
        raise NotApplicable(
            f"none of {', '.join(plan.architectures)} reads released rows of shape {tuple(release.samples.shape[1:])}"
        )
    dev = Judge(dev_samples, lambda scores, at: mean_auc(scores if decode is None else decode(scores), dev_labels))
    work = Training(exclusive, plan, plan.precision or fast_precision(release.samples.device), seed)
    all_rows = Rows(release.samples, release.labels)
    if shortlist is not None:
        courses = work.tried(recipes, all_rows, [dev])
        outsider = None if shortlist.outsider is None else work.taken(shortlist.outsider, all_rows)
        return _bob(work, courses, outsider, shortlist, dev)
    parts = None if plan.hold_out is None else _parts(all_rows, plan.hold_out, seed)
    if parts is None:
        courses = work.tried(recipes, all_rows, [dev])
        return _bob(work, courses, None, Shortlist(_best_recipes(courses), None), dev)
    training, judging = parts
    judges = [dev, Judge(judging.samples, lambda scores, at: mean_auc(scores, judging.labels))]
    courses = work.tried(recipes, training, judges)
    by_release = max(courses, key=lambda course: course.rank(1))
    chosen = Choice(by_release.recipe, by_release.best[1].at)
    short = Shortlist(_best_recipes(courses), chosen)
    voters = _voters(work, courses, dev)
    final = [work.again(course, all_rows, dev) for course in voters]
    return _bob(work, courses, work.taken(chosen, all_rows), short, dev, final)


def _bob(
    work: Training,
    courses: Sequence[Course],
    outsider: Model | None,
    shortlist: Shortlist,
    dev: Judge,
    final: Sequence[Course] | None = None,
) -> Bob:
    voters = final or _voters(work, courses, dev)
    model = _vote(work, voters, dev)
    trials = tuple(course.trial() for course in courses)
    return Bob(model, dev.value(model.predict(dev.samples), 1.0), outsider, trials, shortlist, work.precision)


def _voters(work: Training, courses: Sequence[Course], dev: Judge) -> Sequence[Course]:
    """The best course, or the few of a vote no worse."""
    ranked = _ranked(courses)
    best, lead = ranked[:1], ranked[0].rank(0)
    for count in range(2, min(VOTERS, len(ranked)) + 1):
        some = ranked[:count]
        handicap = 0.0 if all(course.recipe.architecture == "linear" for course in some) else AHEAD
        value = dev.value(_vote(work, some, dev).predict(dev.samples), 1.0) - handicap
        if value >= lead:
            best, lead = some, value
    return best


def _vote(work: Training, courses: Sequence[Course], dev: Judge) -> Model | Vote:
    models = tuple(work.model(course) for course in courses)
    if len(models) == 1:
        return models[0]
    scales = (float(log_odds(model.predict(dev.samples)).std(correction=0)) for model in models)
    return Vote(models, tuple(max(scale, 1e-9) for scale in scales))


def _ranked(courses: Sequence[Course]) -> list[Course]:
    return sorted(courses, key=lambda course: -course.rank(0))


def _best_recipes(courses: Sequence[Course]) -> tuple[Recipe, ...]:
    """The best recipes, as many as may vote, linear models first."""
    best = [course.recipe for course in _ranked(courses)[:VOTERS]]
    return tuple(sorted(best, key=lambda recipe: recipe.architecture != "linear"))


def _parts(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows] | None:
    """Training and held-out rows; None if one side lacks a class."""
    training, apart = (rows.take(side) for side in held_out(rows.samples, share, derive(seed, "held out")))
    return (training, apart) if judged_findings(apart.labels) and judged_findings(training.labels) else None
