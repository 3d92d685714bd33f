"""Encoders written as text, for the command line.

    NAME                      tiles, fourier, rbf, onehot or identity, with its defaults
    NAME:NUMBER               its main parameter: tilings, order, centers for each dimension, number of values
    NAME:NUMBER,KEY=VALUE,…   and others by name

A VALUE is a number, yes or no, or one number for each dimension: 8/8/4. So ``tiles:16,bins=8/4,low=-1/-2,high=1/2`` is
``TileCoder(16, bins=[8, 4], low=[-1, -2], high=[1, 2])``.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

#: By name: the class, and the parameter that follows the colon.
KINDS = {
    "tiles": ("TileCoder", "n_tilings"),
    "fourier": ("Fourier", "order"),
    "rbf": ("RBF", "n_centers"),
    "onehot": ("OneHot", "n_values"),
    "identity": ("Identity", "bias"),
}


def encoder_from_text(text: str) -> Any:
    """An encoder of gqlab, not yet fitted, from its name and parameters.

    Examples
    --------
    >>> from gqlab.encoders.specs import encoder_from_text
    >>> encoder_from_text("tiles:16,bins=8/4")
    TileCoder(bins=[8, 4], n_tilings=16)
    >>> encoder_from_text("fourier:3")
    Fourier()
    >>> encoder_from_text("rbf:3,width")
    Traceback (most recent call last):
    ValueError: encoder 'rbf:3,width': 'width' is not of the form KEY=VALUE
    """
    if not isinstance(text, str):
        raise ValueError(f"encoder is {text!r}, expected text such as 'tiles:16,bins=8' or 'fourier:3'")
    name, colon, rest = text.strip().partition(":")
    if name not in KINDS:
        raise ValueError(
            f"encoder is {text!r}, expected one of {', '.join(KINDS)}, as in 'tiles:16,bins=8' or 'fourier:3'"
        )
    kind = getattr(import_module("gqlab.encoders"), KINDS[name][0])
    known = inspect.signature(kind).parameters
    given: dict[str, Any] = {}
    for place, part in enumerate(rest.split(",") if colon else []):
        key, equals, value = part.partition("=")
        if not equals:
            if place:
                raise ValueError(f"encoder {text!r}: {part!r} is not of the form KEY=VALUE")
            key, value = KINDS[name][1], part
        if key not in known or key in given:
            raise ValueError(f"encoder {text!r}: {key!r} is not one of {', '.join(known)}, or is given twice")
        given[key] = _value(text, value)
    return kind(**given)


def _value(text: str, value: str) -> Any:
    """A number, a truth value, or a list of numbers."""
    words = {"yes": True, "no": False}
    if value in words:
        return words[value]
    parts = [_number(text, part) for part in value.split("/")]
    return parts if "/" in value else parts[0]


def _number(text: str, part: str) -> int | float:
    try:
        return int(part)
    except ValueError:
        pass
    try:
        return float(part)
    except ValueError:
        raise ValueError(f"encoder {text!r}: {part!r} is not a number") from None
