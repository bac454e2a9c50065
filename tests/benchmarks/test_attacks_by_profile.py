"""The tables of what Eve finds by what she holds, from records made by hand."""

from __future__ import annotations

import sys
from pathlib import Path

from made.board_records import auc, dataset, guesswork, record, score

from bench.results.results import Results

sys.path.insert(0, str(Path(__file__).parent))
import attacks_by_profile

OTHER = dataset("synth-cxr under other-study", fingerprint="other")


def test_the_attack_with_the_largest_figure_of_the_profile_is_named(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for attack, by_image, by_person in (("relational", 0.9, 0.6), ("leverage", 0.8, 0.7)):
        scores = {"reid-auc": auc(by_image), "patient-reid-auc": auc(by_person), "guesswork": guesswork(3)}
        results.keep(record("dauntless", attack, scores, cell="synth-cxr/same"), {})
        other = record("dauntless", attack, scores, cell="synth-cxr/other", dataset=OTHER, eve="other-study")
        results.keep(other, {})
    text = "\n".join(attacks_by_profile.linked(attacks_by_profile.groups(tmp_path)))
    assert "| `same-image` | .900 (.880 to .920); relational |" in text
    assert "| `other-study` | .700 (.680 to .720); leverage |" in text


def test_numbers_have_no_zero_before_the_point() -> None:
    assert attacks_by_profile.figure(score(-0.25, -0.5, 0.0), digits=2) == "−.25 (−.50 to .00)"
    assert attacks_by_profile.figure(None) == "–"
