"""Parameters without a sense are refused, and the message names them."""

import math

import pytest

from methods.cadp import CADP
from methods.cvae import CVAE
from methods.distilled import Distilled
from methods.dp_glow import DPGlow
from methods.dp_image import DPImage
from methods.dp_merf import DPMERF
from methods.dp_sgd import DPSGD
from methods.dp_simple import DPSimple
from methods.etc_blocks import EtCBlocks
from methods.instahide import InstaHide
from methods.k_same import KSame
from methods.mosaic import DPPix, Mosaic
from methods.neuracrypt import NeuraCrypt
from methods.prichexy_net import PriCheXyNet, PrivacyNet
from methods.private_evolution import PrivateEvolution
from methods.syfer import Syfer


@pytest.mark.parametrize(
    ("method", "choices", "message"),
    [
        (CADP, {"variant": "ours"}, "variant must be one of paper, corrected, official-code; got 'ours'"),
        (CADP, {"coupling": "nice"}, "coupling must be gin or glow"),
        (CADP, {"epsilon": 0.0}, "epsilon must be positive and finite, got 0"),
        (CADP, {"sensitivity": math.inf}, "sensitivity must be positive and finite"),
        (CADP, {"batch": 0}, "batch must be at least 1, got 0"),
        (CADP, {"condition": "sex"}, 'condition must be "labels" or columns'),
        (CADP, {"splits": "1+half"}, "splits must be shares in"),
        (CADP, {"splits": "1+0"}, "splits must be shares in"),
        (CADP, {"splits": "0.5+0.5", "levels": 3}, "splits must be a share for each of 3 levels"),
        (CADP, {"input_noise": -1.0}, "input_noise must be at least 0"),
        (CVAE, {"variant": "wrong"}, "corrected or official-code, got 'wrong'"),
        (CVAE, {"publish": "both"}, "publish must be set or decoder, got 'both'"),
        (CVAE, {"variance": -1.0}, "variance must be at least 0 and finite, got -1.0"),
        (CVAE, {"latent": 0}, "latent must be at least 1, got 0"),
        (CVAE, {"held_out": 0.0}, "held_out must be above 0 and below 1, got 0.0"),
        (CVAE, {"beta": math.nan}, "beta must be at least 0 and finite, got nan"),
        (Distilled, {"per_class": 0}, "per_class must be at least 1, got 0"),
        (Distilled, {"start": "means"}, "start must be rows or noise, got 'means'"),
        (DPGlow, {"epsilon": 1.0, "epsilon_per_pixel": 1.0}, "not both"),
        (DPGlow, {"epsilon": 0.0}, "epsilon must be positive and finite, got 0"),
        (DPGlow, {"epsilon_per_pixel": math.inf}, "epsilon_per_pixel must be positive and finite"),
        (DPGlow, {"alpha": -0.4}, "alpha must be positive"),
        (DPGlow, {"variant": "fixed"}, "variant must be one of paper, corrected, clip-only, no-clip; got 'fixed'"),
        (DPGlow, {"variant": "clip-only", "epsilon": 1.0}, "clip-only adds no noise: leave epsilon out, got 1.0"),
        (DPGlow, {"levels": 0}, "levels must be at least 1, got 0"),
        (DPGlow, {"steps": 0}, "steps must be at least 1, got 0"),
        (DPImage, {"scale": 1.0, "epsilon": 1.0, "clip": 1.0}, "not both"),
        (DPImage, {"epsilon": 1.0}, "without a clip"),
        (DPImage, {"scale": 0.0}, "scale must be positive and finite, got 0"),
        (DPImage, {"clip": math.inf}, "clip must be positive and finite, got inf"),
        (DPImage, {"width": 0}, "width must be at least 1, got 0"),
        (DPImage, {"batch": 1}, "batch must be at least 2, got 1"),
        (DPMERF, {"epsilon": 0.0}, r"epsilon must be in \[0.001, 500\], got 0"),
        (DPMERF, {"delta": 1.0}, "delta must be above 0 and below 1"),
        (DPMERF, {"features": 7}, "features must be even"),
        (DPMERF, {"label_share": 0.0}, "label_share must be above 0"),
        (DPMERF, {"network": "deep"}, "network must be dense or convolutional, got 'deep'"),
        (DPMERF, {"length": -1.0}, "length must be positive and finite"),
        (DPSimple, {"scale": 1.0, "epsilon": 1.0}, "not both"),
        (DPSimple, {"scale": 0.0}, "scale must be positive and finite, got 0"),
        (DPSimple, {"epsilon": math.inf}, "epsilon must be positive and finite"),
        (DPSimple, {"epsilon": 1.0, "clip": False}, "without a clip"),
        (DPSGD, {"epsilon": 1e-3}, r"epsilon must be in \[0.01, 500\]"),
        (DPSGD, {"epsilon": 1e3}, r"epsilon must be in \[0.01, 500\]"),
        (DPSGD, {"epsilon": math.nan}, "epsilon must be in"),
        (DPSGD, {"clip_norm": math.inf}, "clip_norm must be positive and finite"),
        (DPSGD, {"delta": 1.0}, "delta must be above 0 and below 1"),
        (DPSGD, {"epochs": 0}, "epochs must be at least 1"),
        (DPSGD, {"width": 6}, "multiple of 4"),
        (DPSGD, {"pretrain": -1}, "pretrain must be"),
        (EtCBlocks, {"patch_size": 0}, "patch_size must be at least 1, got 0"),
        (EtCBlocks, {"keys": "two"}, "keys must be one or per-image, got 'two'"),
        (
            EtCBlocks,
            {"scramble": False, "turn": False, "negate": False, "shuffle_channels": False},
            "at least one of scramble",
        ),
        (InstaHide, {"k": 1}, "k must be at least 2, got 1"),
        (InstaHide, {"query": "mixed"}, "plain or signed, got 'mixed'"),
        (InstaHide, {"largest": 0.0}, "above 0 and at most 1, got 0.0"),
        (InstaHide, {"k": 2, "largest": 0.5}, "0.5 leaves 0.00% for k 2"),
        (InstaHide, {"k": 4, "largest": 0.26}, "at least 1% of the weights"),
        (PriCheXyNet, {"mu": 0.0}, "mu must be positive and finite, got 0"),
        (PrivacyNet, {"opponent": 4}, "opponent must be at least 8, got 4"),
        (PrivacyNet, {"batch": 1}, "batch must be at least 2, got 1"),
        (PrivacyNet, {"classify": -1.0}, "classify must be at least 0, got -1"),
        (KSame, {"k": 1}, "k must be at least 2, got 1"),
        (KSame, {"variant": "code"}, "variant must be within-class or paper"),
        (
            KSame,
            {"variant": "paper", "small_classes": "merge"},
            "variant=paper makes clusters across classes, whatever",
        ),
        (Mosaic, {"cell": 0}, "cell must be at least 1 pixel, got 0"),
        (Mosaic, {"epsilon": math.inf}, "epsilon must be positive and finite, got inf"),
        (Mosaic, {"epsilon": 1.0, "neighbour_pixels": 0}, "neighbour_pixels must be at least 1, got 0"),
        (DPPix, {"epsilon": None}, "without one, the method is mosaic"),
        (Mosaic, {"neighbour_pixels": 4}, "give an epsilon too"),
        (NeuraCrypt, {"depth": 2}, "depth must be at least 3, got 2"),
        (NeuraCrypt, {"batch": 1}, "batch must be at least 2, got 1"),
        (NeuraCrypt, {"statistics": "running"}, "batch or fixed, got 'running'"),
        (PrivateEvolution, {"epsilon": 0.0}, r"epsilon must be in \[0.001, 500\], got 0"),
        (PrivateEvolution, {"rounds": 0}, "rounds must be at least 1, got 0"),
        (PrivateEvolution, {"candidates": 1}, "candidates must be at least 2, got 1"),
        (PrivateEvolution, {"threshold": math.inf}, "threshold must be in"),
        (Syfer, {"width": 48}, "even square such as 64, 144 or 256, got 48"),
        (Syfer, {"blocks": 0}, "blocks must be at least 1, got 0"),
        (Syfer, {"labels": "secret"}, "labels must be encoded or raw, got 'secret'"),
        (Syfer, {"unbalanced": "drop"}, "unbalanced must be error or withhold, got 'drop'"),
        (Syfer, {"steps": 1}, "steps must be at least 2, got 1"),
        (Syfer, {"lambda_rec": -1.0}, "lambda_rec must be at least 0"),
        (Syfer, {"learning_rate": 0.0}, "learning_rate must be positive"),
        (Syfer, {"opponent_width": 30}, "multiple of 4"),
    ],
)
def test_senseless_choices_are_refused(method, choices, message):
    with pytest.raises(ValueError, match=message):
        method(**choices)
