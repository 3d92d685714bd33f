"""Encoders that are fitted to logged data, a part of it at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gqlab.data.arrow import needed
from gqlab.data.transitions import Transitions
from gqlab.support.checks import FloatArray


def fit_encoder(encoder: Any, data: Transitions) -> Any:
    """The encoder itself, or a copy that is fitted to all observations of the data, the next ones among them.

    Of a scikit-learn transformer that is not fitted all observations are needed at once.
    """
    needed("sklearn", "an encoder")
    from sklearn.base import clone

    from gqlab.encoders import Foreign, OneHot, TileCoder, as_encoder

    made = as_encoder(encoder)
    if not hasattr(made, "n_features_out_"):
        made = clone(made)
        names = (data.layout and data.layout.names) or data.observation_names
        if isinstance(made, TileCoder):
            made.describe(names, getattr(data.layout, "categories", {}))
        if isinstance(made, Foreign):
            made.names = names
            made.fit(np.concatenate(list(_observations(data))))
        else:
            made.fit(_values(data) if isinstance(made, OneHot) else _bounds(data))
    if made.n_features_in_ != data.observation_size:
        raise ValueError(
            f"encoder takes observations of {made.n_features_in_} numbers, and those of data have "
            f"{data.observation_size}"
        )
    return made


#: The rows that medians are taken of: the first so many.
MOST_MEDIAN = 100_000


def typical_observation(data: Transitions) -> list[float]:
    """The median of each number of an observation, in the first chunk of data."""
    chunk = next(iter(data.chunks()))
    found: list[float] = np.median(np.asarray(chunk.observations[:MOST_MEDIAN], dtype=np.float64), axis=0).tolist()
    return found


def _observations(data: Transitions) -> Iterator[FloatArray]:
    """All observations; nothing is bootstrapped from what a terminated row leads to."""
    for chunk in data.chunks():
        yield np.asarray(chunk.observations, dtype=np.float64)
        yield np.asarray(chunk.next_observations, dtype=np.float64)[~chunk.terminated]


def _bounds(data: Transitions) -> FloatArray:
    """The least and the largest numbers, (2, size)."""
    rows = [np.stack([part.min(axis=0), part.max(axis=0)]) for part in _observations(data) if len(part)]
    every = np.concatenate(rows)
    return np.stack([every.min(axis=0), every.max(axis=0)])


def _values(data: Transitions) -> FloatArray:
    """Every value of each number, (n, size); short columns end with their last value again."""
    found = [np.empty(0)] * data.observation_size
    for part in _observations(data):
        found = [np.union1d(values, column) for values, column in zip(found, part.T, strict=True)]
    longest = max(map(len, found))
    return np.stack([np.pad(values, (0, longest - len(values)), mode="edge") for values in found], axis=1)
