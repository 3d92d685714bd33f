"""Features of a finite problem as sparse rows: the places and the values of their nonzero numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class SparseRows(NamedTuple):
    """Row k owns the numbers first[k] … first[k + 1] − 1; its cost is their number, whatever d is."""

    first: Any  # (n_rows + 1,)  unsigned
    places: Any  # (n,)  unsigned: where in θ
    phi: Any  # (n,)

    def dot(self, row, v, d):
        k = np.uint32(row)
        out = v.dtype.type(0)
        for j in range(self.first[k], self.first[k + np.uint32(1)]):
            out += self.phi[j] * v[self.places[j]]
        return out

    def add(self, row, c, out, d):
        k = np.uint32(row)
        for j in range(self.first[k], self.first[k + np.uint32(1)]):
            out[self.places[j]] += c * self.phi[j]
