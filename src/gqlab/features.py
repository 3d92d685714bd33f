"""Feature tables φ(s,a), shape (S, A, d), with rows of unit length (the paper's Assumption 1)."""

from __future__ import annotations

import numpy as np

from gqlab import checks
from gqlab.checks import FloatArray
from gqlab.mdp import FiniteMDP


def random_features(mdp: FiniteMDP, dim: int = 4, kind: str = "uniform", seed: int = 0) -> FloatArray:
    """Random unit rows, (S, A, dim): uniform on [0, 1] or gaussian before they are scaled.

    Examples
    --------
    >>> import gqlab as gq
    >>> phi = gq.random_features(gq.garnet(seed=0), dim=4)
    >>> phi.shape
    (5, 3, 4)
    """
    checks.instance("mdp", mdp, FiniteMDP, "a FiniteMDP")
    d = checks.integer("dim", dim, least=1)
    rng = np.random.default_rng([checks.integer("seed", seed, least=0), 1])
    shape = (mdp.n_states, mdp.n_actions, d)
    if kind == "uniform":
        rows = 1 - rng.random(shape)  # in (0, 1]: no row vanishes
    elif kind == "gaussian":
        rows = rng.standard_normal(shape)
    else:
        raise ValueError(f"kind is {kind!r}, expected 'uniform' or 'gaussian'")
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
