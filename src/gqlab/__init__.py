"""gqlab: provably convergent off-policy control with linear function approximation.

Greedy-GQ, its variance-reduced form VR-Greedy-GQ (ICLR 2021), and the exact quantities that tell how well they did.

>>> import gqlab as gq
>>> mdp = gq.garnet(n_states=5, n_actions=3, branching=2, discount=0.95, seed=0)
>>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4), target=gq.Softmax(1.0))
>>> result = gq.run(problem, gq.VRGreedyGQ(batch_size=1000), n_samples=10_000, n_runs=8)
>>> gradient = problem.exact.gradient(result.theta)  # exact, at every record of every run
>>> gradient.shape
(8, 11, 4)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gqlab import sweeps, theory
from gqlab.algorithms import (
    QRC,
    ActorCritic,
    Algorithm,
    AveragedGreedyGQ,
    GreedyGQ,
    LeastSquaresGreedyGQ,
    NestedGreedyGQ,
    PolicyGradient,
    QLearning,
    SAGAGreedyGQ,
    SARAHGreedyGQ,
    Sarsa,
    STORMGreedyGQ,
    StreamingGreedyGQ,
    VRGreedyGQ,
)
from gqlab.baird import baird
from gqlab.engine.run import run
from gqlab.engine.steps import Trajectory, batch_indices, greedy_gq_steps, pseudo_gradient, svrg_epoch, trajectory
from gqlab.features import aggregation, random_features, tabular_features
from gqlab.garnet import garnet
from gqlab.grid import grid, open_sweep, sweep
from gqlab.grid_result import GridResult
from gqlab.mdp import FiniteMDP
from gqlab.measure.floor import Floor, floor
from gqlab.measure.rollout import sampled_reward
from gqlab.measure.variance import UpdateError, update_error
from gqlab.measure.watch import Watch, Watched
from gqlab.operators import EpsilonGreedy, FixedPolicy, Greedy, Mellowmax, Operator, Softmax
from gqlab.problem import Problem
from gqlab.results import RunResult
from gqlab.schedules import Decay, Linear
from gqlab.version import __version__

if TYPE_CHECKING:
    from gqlab.data import Transitions, collect, health
    from gqlab.encoders import RBF, Fourier, Identity, OneHot, TileCoder
    from gqlab.learn.agent import Agent
    from gqlab.learn.callbacks import Callback, CheckpointCallback, EvalCallback, StopOnReward
    from gqlab.learn.evaluation import importance_sampling
    from gqlab.learn.fit import fit
    from gqlab.learn.fitted import LSPI, FittedQ
    from gqlab.learn.linear_q import Evaluation, LinearQ
    from gqlab.plots.curves import compare_plot

#: The modules of the names that are imported when they are first used: they need packages that gqlab itself does not.
LAZY = {
    "Agent": "gqlab.learn.agent",
    "Callback": "gqlab.learn.callbacks",
    "CheckpointCallback": "gqlab.learn.callbacks",
    "EvalCallback": "gqlab.learn.callbacks",
    "Evaluation": "gqlab.learn.linear_q",
    "FittedQ": "gqlab.learn.fitted",
    "Fourier": "gqlab.encoders",
    "Identity": "gqlab.encoders",
    "LSPI": "gqlab.learn.fitted",
    "LinearQ": "gqlab.learn.linear_q",
    "OneHot": "gqlab.encoders",
    "RBF": "gqlab.encoders",
    "StopOnReward": "gqlab.learn.callbacks",
    "TileCoder": "gqlab.encoders",
    "Transitions": "gqlab.data",
    "collect": "gqlab.data",
    "compare_plot": "gqlab.plots.curves",
    "fit": "gqlab.learn.fit",
    "health": "gqlab.data",
    "importance_sampling": "gqlab.learn.evaluation",
}


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'gqlab' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})


__all__ = [
    "LSPI",
    "QRC",
    "RBF",
    "ActorCritic",
    "Agent",
    "Algorithm",
    "AveragedGreedyGQ",
    "Callback",
    "CheckpointCallback",
    "Decay",
    "EpsilonGreedy",
    "EvalCallback",
    "Evaluation",
    "FiniteMDP",
    "FittedQ",
    "FixedPolicy",
    "Floor",
    "Fourier",
    "Greedy",
    "GreedyGQ",
    "GridResult",
    "Identity",
    "LeastSquaresGreedyGQ",
    "Linear",
    "LinearQ",
    "Mellowmax",
    "NestedGreedyGQ",
    "OneHot",
    "Operator",
    "PolicyGradient",
    "Problem",
    "QLearning",
    "RunResult",
    "SAGAGreedyGQ",
    "SARAHGreedyGQ",
    "STORMGreedyGQ",
    "Sarsa",
    "Softmax",
    "StopOnReward",
    "StreamingGreedyGQ",
    "TileCoder",
    "Trajectory",
    "Transitions",
    "UpdateError",
    "VRGreedyGQ",
    "Watch",
    "Watched",
    "__version__",
    "aggregation",
    "baird",
    "batch_indices",
    "collect",
    "compare_plot",
    "fit",
    "floor",
    "garnet",
    "greedy_gq_steps",
    "grid",
    "health",
    "importance_sampling",
    "open_sweep",
    "pseudo_gradient",
    "random_features",
    "run",
    "sampled_reward",
    "svrg_epoch",
    "sweep",
    "sweeps",
    "tabular_features",
    "theory",
    "trajectory",
    "update_error",
]
