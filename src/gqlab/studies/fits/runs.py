"""The design, as data, and its runs: SAGA and STORM against VR-Greedy-GQ in equal passes over the same logs.

Eight logs of uniformly random policies, Fourier features, discount 0.95; every algorithm with the same grid of step
sizes, η_ω = η_θ, and as many passes, over rows in one order (the default) and over rows that are drawn anew for every
update. What counts is ‖∇J‖² of the data at the end, at the best step size of each; the statistic is the geometric mean
over logs of its ratio to that of VR-Greedy-GQ over rows in one order, with Student's interval of the logarithms.

An earlier run, on other logs (seeds 2,026,100 and 2,026,101), had rows in one order only.
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
    for seed in (2_026_200, 2_026_201)
)

#: For a look: a log that the study does not use.
QUICK_LOGS = (("MountainCar-v0", 3, 1000),)


@dataclass(frozen=True)
class FitRival:
    """An algorithm of the study, by its step size, and the order of its rows."""

    name: str
    rows: str = "shuffled"

    @property
    def label(self) -> str:
        """The name, and the order where it is not the default."""
        return self.name if self.rows == "shuffled" else f"{self.name}, rows {self.rows}"

    def algorithm(self, eta: float) -> Any:
        """A batch of VR-Greedy-GQ is all rows, so that a pass is an epoch."""
        if self.name == "VR-Greedy-GQ":
            return VRGreedyGQ(eta, eta, batch_size=ROWS)
        return (SAGAGreedyGQ if self.name == "SAGA" else STORMGreedyGQ)(eta, eta)


#: VR-Greedy-GQ in one order, which the others are compared with, first.
RIVALS = tuple(FitRival(name, rows) for rows in ("shuffled", "drawn") for name in ("VR-Greedy-GQ", "SAGA", "STORM"))


def measure(env: str, order: int, seed: int, name: str, rows: str) -> dict[str, Any]:
    """‖∇J‖² of the data after all passes at every step size; None where the values left the finite numbers."""
    data = collect(env, n_steps=ROWS, seed=seed)
    found = []
    for eta in STEP_SIZES:
        algorithm = FitRival(name).algorithm(eta)
        model = fit(data, Fourier(order), algorithm, discount=DISCOUNT, n_passes=PASSES, rows=rows, progress=False)
        found.append(None if model.metadata["diverged"] else float(model.history["gradient"][-1]))
    return {"gradient": found}
