"""Presets: every size that a method or attack does not set itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """Sizes of a run.

    Args:
        private: At most so many images are released (control and test shrink in proportion); None for all.
        public: At most so many public images; None for all.
        keys: Unseen keys that every attack is scored on.
        samples: Data samples (half of the people each) a key; their spread stands for that over people.
        label_findings: Findings, the largest first, that a label-aware attack is run on, with a training each; None for
            all.
        utility_keys: Keys under which Bob trains.
        epochs: Passes over the release when Bob trains a network.
        bob_steps: Gradient steps of his ResNet, however few the rows.
        bob_width: Channels of the first stage of Bob's ResNet (64 is the usual ResNet-18).
        bob_patient: Whether networks end their course where they are behind, and see shifted images too.
        weight_decays, dropouts: What Bob tries, every pair of them once an architecture.
        fractions: Parts of the release that Bob trains on for a learning curve.
        decoder_steps: Training steps of a key-holder's decoder.
        probe_width: Channels of the first stage of the detectors of a probe.
        probe_epochs: Passes over the public rows, under each of several keys, when the detector of a probe is trained.
        flow_steps: Training steps of each density model of a likelihood-ratio detector.
        trials: Released rows in each half of an audit: to choose the test by, and to count its calls on.
        repeats: Timed repeats of a release.
        timeout: Seconds of processor time a job may take unless --timeout says otherwise.
    """

    private: int | None
    public: int | None
    keys: int
    samples: int
    label_findings: int | None
    utility_keys: int
    epochs: int
    bob_steps: int
    bob_width: int
    bob_patient: bool
    weight_decays: tuple[float, ...]
    dropouts: tuple[float, ...]
    fractions: tuple[float, ...]
    decoder_steps: int
    probe_width: int
    probe_epochs: int
    flow_steps: int
    trials: int
    repeats: int
    timeout: float


FRACTIONS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
PRESETS: Mapping[str, Preset] = {
    "smoke": Preset(
        private=160, public=160, keys=2, samples=4, label_findings=1, utility_keys=1, epochs=1, bob_steps=0,
        bob_width=16, bob_patient=False, probe_width=16,
        weight_decays=(0.05,), dropouts=(0.0,), fractions=(0.5,), decoder_steps=30,
        probe_epochs=1, flow_steps=20, trials=400,
        repeats=3, timeout=300,
    ),
    "first-look": Preset(
        private=600, public=600, keys=5, samples=10, label_findings=1, utility_keys=3, epochs=12, bob_steps=120,
        bob_width=16, bob_patient=False, probe_width=32,
        weight_decays=(0.05,), dropouts=(0.0,), fractions=(1 / 4, 1 / 2), decoder_steps=500,
        probe_epochs=5, flow_steps=600, trials=4_000,
        repeats=5, timeout=600,
    ),
    "quick": Preset(
        private=1500, public=3000, keys=10, samples=10, label_findings=1, utility_keys=3, epochs=10, bob_steps=250,
        bob_width=16, bob_patient=False, probe_width=32,
        weight_decays=(0.05,), dropouts=(0.0,), fractions=(1 / 8, 1 / 4, 1 / 2), decoder_steps=1_500,
        probe_epochs=8, flow_steps=2_000, trials=20_000,
        repeats=5, timeout=3600,
    ),
    "standard": Preset(
        private=10_000, public=20_000, keys=10, samples=10, label_findings=None, utility_keys=3, epochs=20,
        bob_steps=500, bob_width=64, bob_patient=True, probe_width=64,
        weight_decays=(0.01, 0.1), dropouts=(0.0,), fractions=FRACTIONS, decoder_steps=10_000,
        probe_epochs=20, flow_steps=20_000, trials=100_000,
        repeats=10, timeout=4 * 3600,
    ),
    "paper": Preset(
        private=None, public=None, keys=10, samples=10, label_findings=None, utility_keys=3, epochs=50, bob_steps=1_000,
        bob_width=64, bob_patient=True, probe_width=64,
        weight_decays=(0.0, 0.01, 0.1), dropouts=(0.0, 0.3), fractions=FRACTIONS, decoder_steps=50_000,
        probe_epochs=50, flow_steps=200_000, trials=1_000_000,
        repeats=10, timeout=72 * 3600,
    ),
}  # fmt: skip
