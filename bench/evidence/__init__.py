"""What an evaluator hands to a metric: one frozen type a file."""

from bench.evidence.anonymity import AnonymityEvidence
from bench.evidence.audit import AuditEvidence, Calls, Noise
from bench.evidence.decoding import DecodingEvidence
from bench.evidence.detection import DetectionEvidence
from bench.evidence.honesty import PROMISES, HonestyEvidence, Promise
from bench.evidence.learning import LearningEvidence
from bench.evidence.linear_probe import LinearProbeEvidence
from bench.evidence.membership import MembershipEvidence
from bench.evidence.pairs import PairEvidence, PairLevel
from bench.evidence.person_risk import PersonRisk
from bench.evidence.probes import ProbeEvidence
from bench.evidence.sets import SetEvidence
from bench.evidence.table import TableEvidence
from bench.evidence.timing import TimingEvidence
from bench.evidence.transfer import CADPClassifierEvidence, TransferEvidence
from bench.evidence.utility import UtilityEvidence

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
