"""Encoders: observations ↦ features of the state, as scikit-learn transformers that are compiled.

``spaces`` needs no scikit-learn, and so nothing here is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gqlab.encoders.actions import discrete_actions
    from gqlab.encoders.base import Encoder, encode_row
    from gqlab.encoders.foreign import Foreign
    from gqlab.encoders.fourier import Fourier
    from gqlab.encoders.identity import Identity
    from gqlab.encoders.one_hot import OneHot
    from gqlab.encoders.rbf import RBF
    from gqlab.encoders.registry import ENCODERS, as_encoder, encoder_from_dict
    from gqlab.encoders.spaces import Flattener
    from gqlab.encoders.tiles import TileCoder

LAZY = {
    "ENCODERS": "gqlab.encoders.registry",
    "RBF": "gqlab.encoders.rbf",
    "Encoder": "gqlab.encoders.base",
    "Flattener": "gqlab.encoders.spaces",
    "Foreign": "gqlab.encoders.foreign",
    "Fourier": "gqlab.encoders.fourier",
    "Identity": "gqlab.encoders.identity",
    "OneHot": "gqlab.encoders.one_hot",
    "TileCoder": "gqlab.encoders.tiles",
    "as_encoder": "gqlab.encoders.registry",
    "discrete_actions": "gqlab.encoders.actions",
    "encode_row": "gqlab.encoders.base",
    "encoder_from_dict": "gqlab.encoders.registry",
}


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'gqlab.encoders' has no attribute {name!r}")
    value = getattr(import_module(LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})


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
