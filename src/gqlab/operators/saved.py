"""Operators in files: by their name and numbers. A user's own is read back only where its class is given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from gqlab.operators import OPERATORS
from gqlab.operators.base import Operator
from gqlab.operators.fixed_policy import FixedPolicy
from gqlab.rules.dispatch import parameters
from gqlab.support import checks
from gqlab.support.files import one_line


def name_of(kind: type[Operator]) -> str:
    """What a file calls an operator: the name of one of gqlab's, ``module:Class`` of another."""
    return kind.__name__ if kind in OPERATORS else f"{kind.__module__}:{kind.__qualname__}"


def operator_to_dict(operator: Operator) -> dict[str, Any]:
    """The name and the numbers of an operator, ready for JSON; the table of a FixedPolicy is not among them.

    Examples
    --------
    >>> import gqlab as gq
    >>> from gqlab.operators.saved import operator_to_dict
    >>> operator_to_dict(gq.Softmax(2.0))
    {'name': 'Softmax', 'sigma': 2.0}
    """
    kind = type(operator)
    if isinstance(operator, FixedPolicy):
        return {"name": name_of(kind)}
    if operator.tables():
        raise ValueError(f"target is {checks.shown(operator)}, an operator with tables, which are not saved")
    names = parameters(kind.compiled)
    values = asdict(operator) if is_dataclass(operator) else {name: getattr(operator, name) for name in names}
    try:
        return {"name": name_of(kind), **json.loads(json.dumps(values, default=lambda number: number.item()))}
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"target is {checks.shown(operator)}, which cannot be saved: {one_line(error)}") from None


def operator_from_dict(values: Any, own: Sequence[type[Operator]] | None = None) -> Operator:
    """What :func:`operator_to_dict` wrote. No file has a module imported: a user's own class must be in ``own``.

    A class is known by ``module:Class``, or by the name of the class alone: scripts are called ``__main__``.
    """
    checks.instance("target", values, Mapping, "the name and the numbers of an operator")
    name, given = str(values.get("name")), _classes(own)
    kind = _own(name, given) if ":" in name else {kind.__name__: kind for kind in OPERATORS}.get(name)
    if kind is None:
        names = ", ".join(kind.__name__ for kind in OPERATORS)
        raise ValueError(f"target is {checks.shown(name)}, expected one of the operators {names}")
    try:
        return kind(**{key: value for key, value in values.items() if key != "name"})
    except TypeError as error:
        raise ValueError(f"target is {name}, which cannot be made of what was saved: {one_line(error)}") from None


def _own(name: str, given: list[type[Operator]]) -> type[Operator]:
    """The class among those given that a file calls ``module:Class``."""
    short = name.rpartition(":")[2]
    for kind in (*(k for k in given if name_of(k) == name), *(k for k in given if k.__qualname__ == short)):
        return kind
    raise ValueError(f"target is {name}, an operator that is not gqlab's: give its class, operators=[{short}]")


def _classes(own: Any) -> list[type[Operator]]:
    given = [] if own is None else checks.several("operators", own)
    for kind in given:
        if not isinstance(kind, type) or not issubclass(kind, Operator):
            raise ValueError(f"operators: {checks.shown(kind)} is no class of operators")
    return given
