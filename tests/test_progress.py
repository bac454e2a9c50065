"""Stages and steps travel from long-running code to listeners, through the logger alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from bench.progress import LOGGER, Forwarder, report, stage

Seen = list[tuple[str, int, int]]


@pytest.fixture
def seen() -> Iterator[Seen]:
    found: Seen = []
    handler = Forwarder(lambda name, done, total: found.append((name, done, total)))
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    yield found
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(level)


def test_a_stage_has_no_steps_and_a_report_has(seen: Seen) -> None:
    stage("fit")
    report("epoch", 2, 5)
    assert seen == [("fit", 0, 0), ("epoch", 2, 5)]


def test_names_are_text_and_never_a_format(seen: Seen) -> None:
    stage("50 % done %s")
    report("loss 3 %d", 1, 2)
    assert seen == [("50 % done %s", 0, 0), ("loss 3 %d", 1, 2)]


def test_a_plain_message_of_an_adapter_is_a_stage(seen: Seen) -> None:
    LOGGER.info("level %d of the flow", 3)
    assert seen == [("level 3 of the flow", 0, 0)]


def test_details_below_info_are_not_forwarded(seen: Seen) -> None:
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.debug("noise")
    assert seen == []


def test_without_a_listener_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    stage("fit")
    report("epoch", 1, 2)
    assert capsys.readouterr() == ("", "")
