"""Predictions of Bob, shared by the evaluators of utility."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import cast

import torch
from pydantic import JsonValue

from bench.bob import model_selection, recipes
from bench.contract.preset import Preset
from bench.evidence import UtilityEvidence
from bench.progress import stage
from bench.seeds import generator
from bench.types import Attributes, Dataset, Key, NotApplicable, Release
from bench.workbench.workbench import Workbench

TRUE_LABELS = "test rows are released with their true labels: figures on such rows tell what the label put in"
LABELLED = "released rows depend on their true labels, which new rows do not have: Bob is tested on raw rows"


def published_predictions(bench: Workbench, key: Key) -> torch.Tensor | None:
    """Test predictions (n, k) by the published classifier; None without."""
    stage("utility")
    classify = bench.untouched(bench.method.name, lambda: key.classifier(bench.private))
    if classify is None:
        return None
    order = mixed(bench, bench.test)
    return classify(bench.test.samples[order])[order.argsort()].float().cpu()


def check_labels(bench: Workbench) -> None:
    """Raise NotApplicable if no classifier can be trained or scored."""
    if not bench.private.findings:
        raise NotApplicable("no finding has enough cases in every split to train and score a classifier")
    if bench.control.labels is None:
        raise NotApplicable("the data set has no labels")


def label_note(bench: Workbench) -> dict[str, JsonValue]:
    """Note that released rows depend on their labels; else empty."""
    return {"note": LABELLED} if bench.method.uses_labels else {}


def true_label_note(bench: Workbench) -> dict[str, JsonValue]:
    """Note that test rows are released with true labels; else empty."""
    return {"note": TRUE_LABELS} if bench.method.uses_labels else {}


def released_labels(bench: Workbench, release: Release) -> torch.Tensor:
    """The released labels. Raises NotApplicable if there are none."""
    if release.labels is None:
        raise NotApplicable(f"{bench.method.name} releases no labels, so there is nothing to learn")
    return release.labels


@dataclass(frozen=True, eq=False)
class Learned:
    """Bob's models under one key, and their decoded predictions (n, k).

    Dev rows chose the model of `scores`, held-out released rows, if any, that of `outsider`.
    """

    scores: torch.Tensor
    outsider: torch.Tensor | None
    bob: model_selection.Bob


def learn(
    bench: Workbench,
    release: Release,
    key: Key,
    plan: recipes.BobPlan,
    seed: int,
    shortlist: recipes.Shortlist | None = None,
) -> Learned:
    """Bob trains on `release` and predicts the test rows."""
    released_labels(bench, release)
    if bench.method.uses_labels and release.samples.shape[1:] != bench.test.samples.shape[1:]:
        raise NotApplicable(
            f"rows of {bench.method.name} depend on their labels, which new rows do not have: Bob's model would have "
            f"to read raw rows, and cannot: expected shape {tuple(bench.test.samples.shape[1:])}, released are "
            f"{tuple(release.samples.shape[1:])}"
        )
    if bench.recorded is not None and release.samples.shape[1:] != bench.test.samples.shape[1:]:
        raise NotApplicable(
            f"Bob's model would read rows of the released shape {tuple(release.samples.shape[1:])}, and new images of "
            f"shape {tuple(bench.test.samples.shape[1:])} cannot be encoded here: its maker has the key"
        )
    stage("utility")
    control, test = (queried(bench, key, part) for part in (bench.control, bench.test))  # before the first decoding
    bob = model_selection.train_bob(
        release,
        control,
        cast(torch.Tensor, bench.control.labels),
        exclusive=bench.private.exclusive,
        plan=plan,
        seed=seed,
        decode=key.decode,
        shortlist=shortlist,
    )
    stage("predict")
    scores, outsider = (
        None if model is None else key.decode(model.predict(test)).float().cpu() for model in (bob.model, bob.outsider)
    )
    assert scores is not None
    return Learned(scores, outsider, bob)


def evidence_of(bench: Workbench, predictions: list[torch.Tensor], test: Dataset) -> UtilityEvidence:
    """Predictions, one (n, k) per key, with the rows' labels and people."""
    labels = cast(torch.Tensor, test.labels).cpu()
    subjects = None if test.subjects is None else test.subjects.cpu()
    return UtilityEvidence(predictions, labels, subjects, bench.private.findings, bench.seed("utility"))


def plan_of(preset: Preset) -> recipes.BobPlan:
    """Bob's plan under that preset."""
    return recipes.BobPlan(
        epochs=preset.epochs,
        least_steps=preset.bob_steps,
        width=preset.bob_width,
        sau_width=min(128, 4 * preset.bob_width),
        weight_decays=preset.weight_decays,
        dropouts=preset.dropouts,
        augment=preset.bob_patient,
        patient=preset.bob_patient,
    )


def summary(bob: model_selection.Bob) -> dict[str, JsonValue]:
    """Bob's trials and choices, for the record."""
    outsider = None if bob.outsider is None else asdict(bob.outsider.choice)
    return {
        "chosen on control people": [
            cast(JsonValue, asdict(model.choice))
            for model in (bob.model.models if isinstance(bob.model, recipes.Vote) else (bob.model,))
        ],
        "chosen on the release": cast(JsonValue, outsider),
        "dev_auc": bob.dev_auc,
        "precision": bob.precision,
        "trials": [cast(JsonValue, asdict(trial)) for trial in bob.trials],
    }


def queried(bench: Workbench, key: Key, data: Dataset) -> torch.Tensor:
    """New rows by the key's query, without labels, secretly ordered.

    Raw rows if released rows depend on their labels. Raises NotApplicable without the key of encoded rows.
    """
    if bench.recorded is not None and bench.recorded.encoded:
        raise NotApplicable(
            "released rows are encoded by a key that is not here, and new images cannot be encoded like them: what a "
            "model learned from released rows cannot be tested"
        )
    if bench.method.uses_labels:
        return data.samples
    order = mixed(bench, data)
    rows = bench.untouched(bench.method.name, lambda: key.query(data.samples[order]))
    return rows[order.argsort()]


def mixed(bench: Workbench, data: Dataset) -> torch.Tensor:
    """A secret order of rows (int64), fixed by their number."""
    order = bench.secret("order of rows", len(data)).stream().permutation(len(data))
    return order.to(data.samples.device)


@dataclass(frozen=True, eq=False)
class SamplePredictions:
    """Random predictions for `Evaluator.samples`, of 48 rows of 16 people."""

    many: UtilityEvidence
    one: UtilityEvidence
    exclusive: UtilityEvidence
    single: UtilityEvidence


def sample_predictions() -> SamplePredictions:
    """The same predictions every time."""
    rows, random = torch.arange(48), generator(0)
    scores = [torch.rand(48, 2, generator=random) for _ in range(2)]
    labels = torch.stack((rows % 2, rows // 2 % 2), dim=1).to(torch.float32)
    labels[0] = torch.nan
    both, classes = ("first", "second"), torch.nn.functional.one_hot(rows % 2, 2).float()
    return SamplePredictions(
        UtilityEvidence(
            scores,
            labels,
            rows // 3,
            both,
            1,
            outsiders=scores[1:],
            attributes=Attributes(("sex",), (("female", "male"),), (rows % 5 // 3)[:, None]),
        ),
        UtilityEvidence(scores[:1], labels, None, both, 1),
        UtilityEvidence(scores[:1], classes, rows // 3, both, 1),
        UtilityEvidence([scores[0][:, :1]], classes[:, :1], rows // 3, ("first",), 1),
    )
