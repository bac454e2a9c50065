"""The public types of the contract between plug-ins and harness.

Letters mean the same everywhere: n raw rows, m released rows, k classes or findings, p links, d code width.
A plug-in computes; the harness splits, times, checks, shuffles, judges and records.
"""

from bench.contract.attack import Attack, Attacker, PairScores, View, learning_of
from bench.contract.attributes import Attributes
from bench.contract.dataset import Dataset, Generator, Release, paired
from bench.contract.evaluator import Evaluator, Measurement, Picture
from bench.contract.eve_profile import Profile
from bench.contract.extractor import Embedding, Extractor
from bench.contract.keyless import Keyless, KeylessKey, KeylessScheme
from bench.contract.learning_curve import LEARNING, LearningCurve, curves_of
from bench.contract.mechanism import Mechanism
from bench.contract.method import CAVEAT, Classifier, Key, Method, PrivateStep, Role, Scheme
from bench.contract.metric import FIDELITY, SIMILARITY, Column, Metric, Score, column_of, evidence_type
from bench.contract.plugin import NotApplicable, Parameter, Plugin, PrivacyClaim, State
from bench.contract.recorded import Recorded
from bench.contract.replicates import Exchanges, Replicates
from bench.contract.source import DataError, Scan, Source
from bench.memory.rows import Rows, by_blocks, by_even_blocks, rows_at
from bench.room_types import authors_module, repository

__all__ = [
    "CAVEAT", "FIDELITY", "LEARNING", "SIMILARITY", "Attack", "Attacker", "Attributes", "Classifier",
    "Column", "DataError", "Dataset", "Embedding", "Evaluator", "Exchanges", "Extractor", "Generator", "Key",
    "Keyless", "KeylessKey", "KeylessScheme", "LearningCurve", "Measurement", "Mechanism", "Method", "Metric",
    "NotApplicable", "PairScores", "Parameter", "Picture", "Plugin", "PrivacyClaim", "PrivateStep", "Profile",
    "Recorded", "Release", "Replicates", "Role", "Rows", "Scan", "Scheme", "Score", "Source", "State", "View",
    "authors_module", "by_blocks", "by_even_blocks", "column_of", "curves_of", "evidence_type", "learning_of", "paired",
    "repository", "rows_at",
]  # fmt: skip
