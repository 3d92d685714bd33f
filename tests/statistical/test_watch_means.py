"""A watch that looks at every k-th update only estimates the mean over all without bias.

Seeds are fixed, so the test passes always or never. With fresh seeds a correct implementation would fail one of the
three with a probability below 1e-5: a z-score beyond 5.2 each, of a mean over 4,000 runs.
"""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq


@pytest.mark.parametrize("quantity", ["gradient", "mspbe", "reward"])
def test_the_mean_of_every_tenth_look_is_unbiased(garnet_problem, quantity):
    """100 iterates: every offset sees ten of them."""
    theta0 = np.array([3.0, -2.0, 1.0, 2.0])  # far away: early looks see much more than late ones
    runs = {
        every: gq.run(
            garnet_problem,
            gq.GreedyGQ(0.1, 0.05),
            99,
            n_runs=4000,
            theta0=theta0,
            watch=gq.Watch(quantity, every, n_steps=5),
        )
        for every in (1, 10)
    }
    error = runs[10].watched[quantity].mean[:, -1] - runs[1].watched[quantity].mean[:, -1]
    assert error.std() > 0
    assert abs(error.mean()) < 5.2 * error.std(ddof=1) / np.sqrt(len(error))
