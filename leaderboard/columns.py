"""What the columns of the board are: their titles, the direction a data owner wants, and a sentence on each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from bench.results.records import Kind, Record

ATTACK_GROUP = "Privacy by image: weakest figure over the attacks that count"
PATIENT_GROUP = "Privacy by patient: weakest figure"
FORMAL_GROUP = "Formal privacy"
MEMBERSHIP_GROUP = "Membership: weakest figure over the attacks that count"
GROUPS: dict[Kind, str] = {
    "utility": "Utility",
    "linear-probe": "Utility",
    "membership": MEMBERSHIP_GROUP,
    "anonymity": "Released set",
    "learning-curve": "Utility",
    "transfer": "Utility",
    "detection": "Utility",
    "decoding": "Released set",
    "attack": "Other attack figures: weakest",
    "probes": "Other attack figures: weakest",
    "sets": "Released set",
    "tables": "Released set",
    "audit": FORMAL_GROUP,
    "throughput": "Cost",
}


@dataclass(frozen=True)
class Column:
    """One metric as the board shows it.

    Args:
        name: The metric's name in records.
        title: What stands in the header.
        kind: The kind of evaluator that gives it.
        group: The header above it.
        better: The direction a data owner wants.
        digits: Decimals to print; None for figures of any size, which get about three significant digits.
        meaning: One sentence on what it measures.
        chance: What chance gives, in words; empty where chance gives nothing.
    """

    name: str
    title: str
    kind: Kind
    group: str
    better: Literal["higher", "lower"]
    digits: int | None
    meaning: str
    chance: str = ""

    @property
    def arrow(self) -> str:
        """An arrow in the direction that is better for the data owner."""
        return "↑" if self.better == "higher" else "↓"


COLUMNS: tuple[Column, ...] = (
    Column(
        "utility-auc", "Utility AUC", "utility", "Utility", "higher", 3,
        "How well a model trained on the release finds the findings in new images: area under the ROC curve, the mean "
        "over findings.",
        "0.5",
    ),
    Column(
        "linear-probe-auc", "Linear probe AUC", "linear-probe", "Utility", "higher", 3,
        "How well one linear layer, trained on released feature vectors, finds the findings in new images: area under "
        "the ROC curve, the mean over findings and three seeds.",
        "0.5",
    ),
    Column(
        "noise-robust-auc", "AUC under noise", "linear-probe", "Utility", "higher", 3,
        "The linear probe's AUC where Gaussian noise of 1, 2 and 3 standard deviations of the original rows is added "
        "to test vectors: the mean of the three.",
        "0.5",
    ),
    Column(
        "membership-auc", "Membership AUC", "membership", MEMBERSHIP_GROUP, "lower", 3,
        "The probability that Eve scores an image that was in the private data above one of the same kind that was "
        "not; ties count half.",
        "0.5",
    ),
    Column(
        "membership-tpr", "Membership TPR at 1 % FPR", "membership", MEMBERSHIP_GROUP, "lower", 3,
        "The share of the private images that Eve names where she is wrong about one in a hundred of the others; the "
        "figure at one in a thousand stands beside it.",
        "0.01",
    ),
    Column(
        "guesswork", "Guesswork", "attack", ATTACK_GROUP, "higher", None,
        "How many guesses Eve needs until the first correct pair of a raw and a released image, when she guesses from "
        "her best score downwards; ties are averaged. 1 means that her first guess is right.",
        "about n for n images, with a nearly geometric spread, so a single figure far from n may still be chance",
    ),
    Column(
        "reid-auc", "ReID AUC", "attack", ATTACK_GROUP, "lower", 3,
        "The probability that Eve scores a true pair of a raw and a released image above a wrong one; ties count half.",
        "0.5",
    ),
    Column(
        "top-1", "Top-1", "attack", ATTACK_GROUP, "lower", 3,
        "The share of images for which Eve's best-scored partner is the right one.",
        "1/n for n candidates",
    ),
    Column(
        "patient-guesswork", "Patient guesswork", "attack", PATIENT_GROUP, "higher", None,
        "Guesswork where any image of the same patient counts as a correct match.",
        "fewer guesses than for images; how many depends on how alike a patient's images score: compare with noise",
    ),
    Column(
        "patient-reid-auc", "Patient ReID AUC", "attack", PATIENT_GROUP, "lower", 3,
        "ReID AUC where any image of the same patient counts as a correct match.",
        "0.5",
    ),
    Column(
        "learning-curve", "Learning curve", "learning-curve", "Utility", "higher", 3,
        "Utility AUC after training on parts of the release, averaged over the parts: how well Bob does with less.",
        "0.5",
    ),
    Column(
        "transfer-auc", "Transfer AUC", "transfer", "Utility", "higher", 3,
        "Utility AUC of a model trained on the release and tested on original images (p/o), with the other three "
        "routes beside it: o/o, o/p, p/p.",
        "0.5",
    ),
    Column(
        "transfer-accuracy", "Transfer accuracy", "transfer", "Utility", "higher", 3,
        "The share of original test images whose class a model trained on the release names, with the other three "
        "routes beside it.",
        "the share of the most frequent class",
    ),
    Column(
        "detection-auc", "Detection AUC", "detection", "Utility", "higher", 3,
        "How well two density models, one of normal and one of all public images, tell abnormal from normal released "
        "images without any classifier.",
        "0.5",
    ),
    Column(
        "probe-auc", "Probe AUC", "probes", GROUPS["probes"], "lower", 3,
        "How well a detector that Eve trained on releases of her own tells whether a released image carried a mark (a "
        "block) or was flipped: the weaker of the two.",
        "0.5",
    ),
    Column(
        "decoding-error", "Decoding error", "decoding", "Released set", "lower", 3,
        "The share of the variance of test images that a decoder leaves unexplained if somebody with the key trains "
        "it: how much of the image the encoding loses. It says nothing about Eve, who has no such pairs.",
        "1",
    ),
    Column(
        "max-dispersion", "Max dispersion", "sets", "Released set", "higher", None,
        "The sum of all distances between released rows, standardised with the statistics of the original rows: how "
        "much variety is left.",
    ),
    Column(
        "nearest-neighbour-distance", "Nearest-neighbour distance", "sets", "Released set", "higher", None,
        "The mean distance from a released row to the nearest original row, standardised in the same way: D(A, F) of "
        "the CVAE paper. 0 means that every released row is an original one.",
    ),
    Column(
        "class-shift", "Classes shift", "sets", "Released set", "lower", 3,
        "How far the proportions of the classes in the release are from those of the original rows: half the sum of "
        "their absolute differences.",
        "what a random draw of so many rows gives",
    ),
    Column(
        "anonymity-set", "Anonymity set", "anonymity", "Released set", "higher", None,
        "Among how many images each one still hides after the owner has released twice, with some people gone and "
        "others come: images that share their released form both times.",
    ),
    Column(
        "marginal-distance", "Marginals differ", "tables", "Released set", "lower", 3,
        "The Kolmogorov-Smirnov distance between original and released values, the mean over columns of a table.",
        "what two draws from one set of people give",
    ),
    Column(
        "correlation-distance", "Correlations differ", "tables", "Released set", "lower", 3,
        "The mean absolute difference of correlations between columns, original against released.",
        "what two draws from one set of people give",
    ),
    Column(
        "column-r2", "Column R²", "tables", "Released set", "higher", 3,
        "How well a ridge regression of each column on the others, trained on released rows, predicts raw rows of "
        "other people: the mean over columns.",
    ),
    Column(
        "empirical-epsilon", "Shown ε ≥", "audit", FORMAL_GROUP, "lower", None,
        "A lower bound on the true ε that an audit has shown, with the confidence stated beside it: the method was "
        "asked many times to release one of two inputs, and a test told them apart this well.",
    ),
    Column(
        "throughput", "Images per second", "throughput", "Cost", "higher", None,
        "How many images the method releases in a second on the device named beside it, after warm-up; figures from "
        "different devices do not compare.",
    ),
)  # fmt: skip


def columns(records: Iterable[Record]) -> tuple[Column, ...]:
    """The usual columns, then every other metric found in `records`; directions as the records state them."""
    found = {column.name: column for column in COLUMNS}
    for record in records:
        for name, score in sorted(record.scores.items()):
            if name not in found:
                title = name.replace("-", " ").capitalize()
                found[name] = Column(name, title, record.kind, GROUPS[record.kind], score.better, None, "")
            elif found[name].better != score.better:
                found[name] = replace(found[name], better=score.better)
    order = [
        ATTACK_GROUP,
        PATIENT_GROUP,
        MEMBERSHIP_GROUP,
        GROUPS["attack"],
        GROUPS["sets"],
        GROUPS["throughput"],
        FORMAL_GROUP,
    ]
    return tuple(sorted(found.values(), key=lambda column: ([GROUPS["utility"], *order]).index(column.group)))
