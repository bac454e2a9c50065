"""Evidence: frozen results that evaluators hand to metrics.

Metrics read these types alone, so a metric runs without a method, an attack or a data set.
"""

__figures__ = True

from bench.evidence.attack_evidence import MembershipEvidence, PairEvidence, PairLevel, PersonRisk
from bench.evidence.prediction_evidence import (
    CADPClassifierEvidence,
    DetectionEvidence,
    LearningEvidence,
    LinearProbeEvidence,
    ProbeEvidence,
    TransferEvidence,
    UtilityEvidence,
)
from bench.evidence.release_evidence import (
    PROMISES,
    AnonymityEvidence,
    AuditEvidence,
    Calls,
    DecodingEvidence,
    HonestyEvidence,
    Noise,
    Promise,
    SetEvidence,
    TableEvidence,
    TimingEvidence,
)

__all__ = [
    "PROMISES",
    "AnonymityEvidence",
    "AuditEvidence",
    "CADPClassifierEvidence",
    "Calls",
    "DecodingEvidence",
    "DetectionEvidence",
    "HonestyEvidence",
    "LearningEvidence",
    "LinearProbeEvidence",
    "MembershipEvidence",
    "Noise",
    "PairEvidence",
    "PairLevel",
    "PersonRisk",
    "ProbeEvidence",
    "Promise",
    "SetEvidence",
    "TableEvidence",
    "TimingEvidence",
    "TransferEvidence",
    "UtilityEvidence",
]
