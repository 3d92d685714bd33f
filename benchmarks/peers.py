"""Other libraries, read from checkouts of the user's and timed on the same problem in the same run.

Each is run by a few lines in a process of its own; none of its code is here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import before
from benchmarks.cpu import GQ_STEP, VR_STEP, per_step
from benchmarks.problems import PLAIN, tabular_lake
from benchmarks.table import Table

AUTHORS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import matplotlib
matplotlib.use("Agg")
import numpy as np
from garnet import Garnet
from optimizer.greedygq import GreedyGQ_Base
from optimizer.vrgreedygq import VRGreedyGQ
from benchmarks.problems import paper_garnet
problem = paper_garnet()
environment = Garnet(5, 3, 2, 4)
environment.state_action_trans_kernel = problem.mdp.transition
environment.features = np.ascontiguousarray(np.swapaxes(problem.features, 0, 1))
for kind, settings in ((GreedyGQ_Base, {"target_policy": None}), (VRGreedyGQ, {"batch_size": 300})):
    agent = kind(environment, eta_theta=0.02, eta_omega=0.01, **settings)
    agent.set_theta(np.zeros(4))
    environment.reset()
    s = environment.current_state
    for t in range(1310):
        if t == 310:
            begin = time.perf_counter()
        s_next, reward, action = environment.step()
        agent.update(s, reward, s_next, action)
        s = s_next
    print((time.perf_counter() - begin) / 1000 * 1e9)
"""

# RLPy is from 2018: what it imports and no longer exists is put in its place, for the time of the import only.
RLPY = """
import sys, time, types
from pathlib import Path
import matplotlib
matplotlib.use("Agg")
import matplotlib.cm
import matplotlib.pyplot
import numpy as np
import scipy
time.clock = time.perf_counter
scipy.misc = sys.modules["scipy.misc"] = types.ModuleType("scipy.misc")
matplotlib.cm.register_cmap = lambda **_: None
matplotlib.pyplot.switch_backend = lambda *_: None
for name in ("rlpy", "rlpy.Agents", "rlpy.Representations"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [str(Path(sys.argv[1], *name.split(".")))]
from rlpy.Agents.Greedy_GQ import Greedy_GQ
from rlpy.Representations.Tabular import Tabular
import gqlab as gq
from benchmarks.problems import tabular_lake

class Lake:
    statespace_limits = np.array([[0.0, 15.0]])
    continuous_dims, DimNames = [], ["s"]
    actions_num, state_space_dims, discount_factor, episodeCap = 4, 1, 0.95, 1000
    def possibleActions(self, s=None):
        return np.arange(4)

problem = tabular_lake()
x = gq.trajectory(problem, 5001)
agent = Greedy_GQ(object(), Tabular(Lake(), discretization=16), discount_factor=0.95,
                  initial_learn_rate=0.1, learn_rate_decay_mode="const", BetaCoef=0.5)
actions = np.arange(4)
begin = time.perf_counter()
for t in range(5000):
    reward = problem.mdp.reward[x.s[t], x.a[t], x.s_next[t]]
    agent.learn(x.s[t : t + 1], actions, int(x.a[t]), reward, x.s_next[t : t + 1], actions, int(x.a[t + 1]), False)
print((time.perf_counter() - begin) / 5000 * 1e9)
"""


def parse(choices: list[str]) -> dict[str, Path]:
    """``NAME=PATH`` as a dictionary, checked."""
    out = {}
    for choice in choices:
        name, _, path = choice.partition("=")
        if name not in PEERS:
            raise ValueError(f"--peer {choice}: expected NAME=PATH with NAME one of {', '.join(PEERS)}")
        if not Path(path).is_dir():
            raise ValueError(f"--peer {choice}: no folder {path!r}")
        out[name] = Path(path).resolve()
    return out


def _figures(table: Table, name: str, code: str, path: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        table.note(f"{name} does not run here: {done.stderr.strip().splitlines()[-1]}")
        return []
    return [float(figure) for figure in done.stdout.split()]


def authors(table: Table, path: Path) -> None:
    """The paper authors' Python, on the same Garnet kernel and features."""
    table.section("The paper authors' code on the same kernel and features")
    for name, ours, figure in zip(
        ("Greedy-GQ", "VR-Greedy-GQ"), (GQ_STEP, VR_STEP), _figures(table, "authors", AUTHORS, path), strict=False
    ):
        what = f"authors: {name} step"
        table.row(what, figure, "ns")
        table.note(f"{'':<6}{table.ratio(what, ours)}")


def rlpy(table: Table, path: Path) -> None:
    """RLPy's Greedy-GQ with a tabular representation of Frozen Lake."""
    table.section("RLPy's Greedy-GQ, tabular Frozen Lake (16 states, 4 actions)")
    for figure in _figures(table, "rlpy", RLPY, path):
        table.row("RLPy: Greedy-GQ update", figure, "ns")
        table.row("gqlab: Greedy-GQ step, one-hot features", per_step(tabular_lake(), PLAIN, 200_000, 4), "ns")
        table.note(f"{'':<6}{table.ratio('RLPy: Greedy-GQ update', 'gqlab: Greedy-GQ step, one-hot features')}")


def sb3(table: Table, path: Path) -> None:
    """Stable-Baselines3's DQN stands beside the agents: see :mod:`benchmarks.agents`."""


def mdp(table: Table, path: Path) -> None:
    """QuantEcon and pymdptoolbox stand beside large problems: see :mod:`benchmarks.scale`."""


PEERS: dict[str, Callable[[Table, Path], None]] = {
    "authors": authors,
    "rlpy": rlpy,
    "before": before.compare,
    "sb3": sb3,
    "mdp": mdp,
}
