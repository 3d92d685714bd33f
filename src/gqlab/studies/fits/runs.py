"""The design, as data, and its runs: SAGA and STORM against VR-Greedy-GQ in equal passes over the same logs.

Eight logs of uniformly random policies, Fourier features, discount 0.95; every algorithm with the same grid of step
sizes, η_ω = η_θ, rows in the same order, and as many passes. What counts is ‖∇J‖² of the data at the end, at the best
step size of each; the statistic is the geometric mean over logs of its ratio to VR-Greedy-GQ's, with Student's interval
of the logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gqlab.algorithms import SAGAGreedyGQ, STORMGreedyGQ, VRGreedyGQ
from gqlab.data import collect
from gqlab.encoders import Fourier
from gqlab.learn.fit.fit import fit

ROWS, PASSES, DISCOUNT = 2000, 30, 0.95

#: η_θ = η_ω; features have a length of at most 1.
STEP_SIZES = (0.03, 0.1, 0.3, 1.0)

#: The logs: environment, order of the features, seed of the data.
LOGS = tuple(
    (env, order, seed)
    for env, order in (("CartPole-v1", 2), ("MountainCar-v0", 3), ("Acrobot-v1", 1), ("FrozenLake-v1", 3))
    for seed in (2_026_100, 2_026_101)
)

#: For a look: a log that the study does not use.
QUICK_LOGS = (("MountainCar-v0", 3, 1000),)


@dataclass(frozen=True)
class FitRival:
    """An algorithm of the study, by its step size."""

    name: str

    def algorithm(self, eta: float) -> Any:
        """A batch of VR-Greedy-GQ is all rows, so that a pass is an epoch."""
        if self.name == "VR-Greedy-GQ":
            return VRGreedyGQ(eta, eta, batch_size=ROWS)
        return (SAGAGreedyGQ if self.name == "SAGA" else STORMGreedyGQ)(eta, eta)


#: VR-Greedy-GQ, which the others are compared with, first.
RIVALS = tuple(FitRival(name) for name in ("VR-Greedy-GQ", "SAGA", "STORM"))


def measure(env: str, order: int, seed: int, name: str) -> dict[str, Any]:
    """‖∇J‖² of the data after all passes at every step size; None where the values left the finite numbers."""
    data = collect(env, n_steps=ROWS, seed=seed)
    found = []
    for eta in STEP_SIZES:
        model = fit(
            data, Fourier(order), FitRival(name).algorithm(eta), discount=DISCOUNT, n_passes=PASSES, progress=False
        )
        found.append(None if model.metadata["diverged"] else float(model.history["gradient"][-1]))
    return {"gradient": found}
