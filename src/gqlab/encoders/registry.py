"""Encoders by name, from what was saved of them, and from what users give."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from gqlab.encoders.base import Encoder
from gqlab.encoders.foreign import Foreign
from gqlab.encoders.fourier import Fourier
from gqlab.encoders.identity import Identity
from gqlab.encoders.one_hot import OneHot
from gqlab.encoders.rbf import RBF
from gqlab.encoders.tiles import TileCoder
from gqlab.support import checks

#: The encoders that come with gqlab.
ENCODERS: tuple[type[Encoder], ...] = (TileCoder, Fourier, RBF, OneHot, Identity)


def encoder_from_dict(values: Mapping[str, Any]) -> Encoder:
    """The encoder whose ``to_dict()`` gave ``values``, exactly.

    Examples
    --------
    >>> import gqlab as gq
    >>> from gqlab.encoders import encoder_from_dict
    >>> basis = gq.Fourier(order=2).fit([[0.0, 1.0], [2.0, 3.0]])
    >>> encoder_from_dict(basis.to_dict()).high_
    array([2., 3.])
    """
    checks.instance("values", values, Mapping, "what to_dict() gave")
    known = {kind.__name__: kind for kind in ENCODERS}
    kind = known[checks.one_of("values['encoder']", values.get("encoder"), known)]
    parameters, fitted = (_inner(values, name) for name in ("parameters", "fitted"))
    unknown = sorted(map(str, set(parameters) ^ set(kind._get_param_names())))
    if unknown:
        raise ValueError(f"values['parameters'] of {kind.__name__}: {unknown[0]} is missing or unknown")
    encoder = kind(**parameters)
    n_in = values.get("n_features_in")
    encoder.n_features_in_ = checks.integer("values['n_features_in']", n_in, least=1, below=2**31)
    names = values.get("feature_names")
    if names is not None:
        encoder.feature_names_in_ = np.array(names, object)
    encoder._restore(fitted)
    return encoder


def _inner(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner: Any = values.get(name)
    checks.instance(f"values[{name!r}]", inner, Mapping, "a dict")
    return inner


def own_copy(encoder: Encoder) -> Encoder:
    """A copy that changes no more when its caller's encoder does."""
    try:
        return copy.deepcopy(encoder)
    except Exception:  # a transformer of somebody else's that cannot be copied
        return encoder


def as_encoder(encoder: Any) -> Encoder:
    """An encoder as it is; anything else with ``transform``, such as a pipeline of scikit-learn, as a ``Foreign``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gqlab.encoders import as_encoder
    >>> as_encoder(StandardScaler().fit([[0.0], [1.0]])).kind
    'dense'
    """
    if isinstance(encoder, Encoder):
        return encoder
    if isinstance(encoder, type) or not callable(getattr(encoder, "transform", None)):
        names = ", ".join(kind.__name__ for kind in ENCODERS)
        raise ValueError(f"encoder is {checks.shown(encoder)}, expected one of {names}, or an object with transform(X)")
    return Foreign(encoder)
