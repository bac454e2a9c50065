"""Parameters without a sense are refused, and the message names them."""

import math

import pytest

from attacks.absolute_correlation import AbsoluteCorrelation
from attacks.contrastive import Contrastive
from attacks.leverage import Leverage
from attacks.moments import Moments
from attacks.nearest_neighbour import NearestNeighbour
from attacks.relational import Relational


@pytest.mark.parametrize(
    ("attack", "choices", "message"),
    [
        (AbsoluteCorrelation, {"shortlist": 0}, "shortlist must be at least 1, got 0"),
        (AbsoluteCorrelation, {"rounds": 0}, "rounds must be at least 1, got 0"),
        (AbsoluteCorrelation, {"restarts": -1}, "restarts must be at least 0, got -1"),
        (Contrastive, {"encoder": "vgg"}, "one of sau, vit, resnet18; got 'vgg'"),
        (Contrastive, {"steps": 0}, "steps must be at least 1, got 0"),
        (Contrastive, {"least": 0}, "least must be at least 1, got 0"),
        (Contrastive, {"batch": 1}, "batch must be at least 2, got 1"),
        (Contrastive, {"learning_rate": 0.0}, "learning_rate must be positive"),
        (Leverage, {"keys": 1}, "keys must be at least 2, got 1"),
        (Leverage, {"tolerance": 0.0}, "tolerance must be above 0 and below 1, got 0"),
        (Leverage, {"tolerance": math.inf}, "tolerance must be above 0"),
        (Moments, {"steps": 0}, "steps must be at least 1, got 0"),
        (Moments, {"batch": 1}, "batch must be at least 2, got 1"),
        (Moments, {"learning_rate": 0.0}, "learning_rate must be positive"),
        (NearestNeighbour, {"width": 1}, "width must be at least"),
        (Relational, {"keys": 1}, "keys must be at least 2, got 1"),
        (Relational, {"held_out": 0}, "held_out must be at least 1, got 0"),
        (Relational, {"reading": "tea leaves"}, "got 'tea leaves'"),
        (Relational, {"refine_up_to": -1}, "refine_up_to must be at least 0, got -1"),
    ],
)
def test_senseless_choices_are_refused(attack, choices, message):
    with pytest.raises(ValueError, match=message):
        attack(**choices)
