"""One compiled part for several operators: a number that the compiled code reads says which one a problem uses.

The operators of gqlab go to the CPU behind this switch, so that one compilation serves them all, at the
cost of one branch that is always predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from gqlab.operators.base import Operator
from gqlab.rules.dispatch import OPTIONS, annotated, is_parameter, written
from gqlab.rules.gradient import act, improve


class Switch(NamedTuple):
    """The operator number ``code`` of ``operators``; another number gives NaN, which no update accepts."""

    code: int
    operators: Any  # a tuple of parts

    def improve(self, row, q, w, A):
        return improve_by(self.code, self.operators, row, q, w, A)

    def act(self, row, q, p, A):
        act_by(self.code, self.operators, row, q, p, A)


def improve_by(code, operators, row, q, w, A):
    """``improve`` of operator number ``code``."""
    return improve(operators[code], row, q, w, A) if 0 <= code < len(operators) else q.dtype.type(np.nan)


def act_by(code, operators, row, q, p, A):
    """``act`` of operator number ``code``."""
    if 0 <= code < len(operators):
        act(operators[code], row, q, p, A)


@overload(improve_by, jit_options=OPTIONS, prefer_literal=True)
def _improve_by(code, operators, row, q, w, A):
    cases = [f"improve(operators[{k}], row, q, w, A) if code == {k} else" for k in range(len(operators))]
    text = f"{' '.join(cases)} q.dtype.type(nan)"
    return written("code, operators, row, q, w, A", text, {"improve": improve, "nan": np.nan})


@overload(act_by, jit_options=OPTIONS, prefer_literal=True)
def _act_by(code, operators, row, q, p, A):
    cases = [f"act(operators[{k}], row, q, p, A) if code == {k} else" for k in range(len(operators))]
    return written("code, operators, row, q, p, A", f"{' '.join(cases)} None", {"act": act})


def join_operators(operators: Sequence[Operator], n_rows: Iterable[int], kinds: Sequence[type], dtype: Any) -> Any:
    """One part for the operators of several problems with so many rows: a switch, or the part itself if all are alike.

    ``kinds`` are the compiled parts that the switch knows; a single one needs no switch.
    """
    unknown = [operator for operator in operators if operator.compiled not in kinds]
    if unknown:
        raise ValueError(f"the compiled code does not know the operator {unknown[0]!r}")
    parts = tuple(_join(kind, operators, n_rows, dtype) for kind in kinds)
    if len(kinds) == 1:
        return parts[0]
    codes: Any = np.array([list(kinds).index(operator.compiled) for operator in operators])
    return Switch(code=codes, operators=parts)


def _join(kind: Any, operators: Sequence[Operator], n_rows: Iterable[int], dtype: Any) -> Any:
    """The operators of one kind; problems with another kind have zeros there."""
    alike = [operator.compiled is kind for operator in operators]

    def column(field: str) -> np.ndarray:
        if is_parameter(kind, field):
            number = np.int64 if annotated(kind, field) == "int" else dtype
            return np.array([getattr(o, field) if k else 0 for o, k in zip(operators, alike, strict=True)], number)
        if not any(alike):
            return np.zeros(1, dtype)
        rows = zip(operators, alike, n_rows, strict=True)
        return np.concatenate([np.ravel(getattr(o, field)) if k else np.zeros(n) for o, k, n in rows]).astype(dtype)

    return kind(*(column(field) for field in kind._fields))
