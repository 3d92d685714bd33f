"""Encoders: observations ↦ features of the state, as scikit-learn transformers that are compiled."""

from gqlab.encoders.base import Encoder, encode_row
from gqlab.encoders.foreign import Foreign
from gqlab.encoders.fourier import Fourier
from gqlab.encoders.identity import Identity
from gqlab.encoders.one_hot import OneHot
from gqlab.encoders.rbf import RBF
from gqlab.encoders.registry import ENCODERS, as_encoder, encoder_from_dict
from gqlab.encoders.spaces import Flattener, discrete_actions
from gqlab.encoders.tiles import TileCoder

__all__ = [
    "ENCODERS",
    "RBF",
    "Encoder",
    "Flattener",
    "Foreign",
    "Fourier",
    "Identity",
    "OneHot",
    "TileCoder",
    "as_encoder",
    "discrete_actions",
    "encode_row",
    "encoder_from_dict",
]
