"""gqlab: off-policy control with linear function approximation, by descending an objective.

Greedy-GQ, its variance-reduced form VR-Greedy-GQ (ICLR 2021), and the exact quantities that tell how well they did.

>>> import gqlab as gq
>>> mdp = gq.garnet(n_states=5, n_actions=3, branching=2, discount=0.95, seed=0)
>>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4), target=gq.Softmax(1.0))
>>> result = gq.run(problem, gq.VRGreedyGQ(batch_size=1000), n_samples=10_000, n_runs=8)
>>> gradient = problem.exact.gradient(result.theta)  # exact, at every record of every run
>>> gradient.shape
(8, 11, 4)
"""

from __future__ import annotations

from importlib import import_module

from gqlab.version import __version__

TYPE_CHECKING = False  # type checkers take it as true: nothing is imported before the command line can hear Ctrl-C
if TYPE_CHECKING:
    from typing import Any

    from gqlab import tasks, theory
    from gqlab.algorithms import (
        LSPI,
        QRC,
        ActorCritic,
        Algorithm,
        AveragedGreedyGQ,
        FittedQ,
        GreedyGQ,
        LeastSquaresGreedyGQ,
        NestedGreedyGQ,
        PolicyGradient,
        QLearning,
        SAGAGreedyGQ,
        SAGAQLearning,
        SARAHGreedyGQ,
        Sarsa,
        STORMGreedyGQ,
        StreamingGreedyGQ,
        VRGreedyGQ,
        WholeDataVRGreedyGQ,
    )
    from gqlab.algorithms.schedules import Decay, LinearDecay
    from gqlab.data import Health, Transitions, collect, health
    from gqlab.encoders import RBF, Fourier, Identity, OneHot, TileCoder
    from gqlab.grids.grid import grid, open_grid, vary
    from gqlab.grids.grid_result import GridResult
    from gqlab.judge.deciding import decide
    from gqlab.judge.decision import Decision
    from gqlab.judge.sampling import ImportanceSampling, importance_sampling
    from gqlab.judge.selecting import Selection, select
    from gqlab.lab import check
    from gqlab.lab.check import Trajectory, trajectory
    from gqlab.lab.curves import compare_plot
    from gqlab.lab.efficiency import Efficiency, efficiency
    from gqlab.lab.floor import Floor, floor
    from gqlab.lab.results import RunResult
    from gqlab.lab.rollout import sampled_reward
    from gqlab.lab.run import run
    from gqlab.lab.variance import UpdateError, update_error
    from gqlab.learn.agent.agent import Agent
    from gqlab.learn.agent.callbacks import Callback, CheckpointCallback, EvalCallback, StopOnReward
    from gqlab.learn.agent.many import Seeds, learn_many
    from gqlab.learn.agent.replay import Refit, Replay
    from gqlab.learn.fit.fit import fit
    from gqlab.learn.linear_q import LinearQ
    from gqlab.learn.playing import Evaluation, evaluate
    from gqlab.mdp.finite import FiniteMDP
    from gqlab.measure.watch import Watch, Watched
    from gqlab.operators import EpsilonGreedy, FixedPolicy, Greedy, Mellowmax, Operator, Softmax
    from gqlab.problems.baird import baird
    from gqlab.problems.features import aggregated_features, random_features, tabular_features
    from gqlab.problems.garnet import garnet
    from gqlab.problems.problem import Problem

#: The modules of the public names, imported when a name is first used: ``import gqlab`` is quick, and agents, logs and
#: figures need packages that runs do not.
LAZY = {
    "ActorCritic": "gqlab.algorithms",
    "Agent": "gqlab.learn.agent.agent",
    "Algorithm": "gqlab.algorithms",
    "AveragedGreedyGQ": "gqlab.algorithms",
    "Callback": "gqlab.learn.agent.callbacks",
    "CheckpointCallback": "gqlab.learn.agent.callbacks",
    "Decay": "gqlab.algorithms.schedules",
    "Decision": "gqlab.judge.decision",
    "Efficiency": "gqlab.lab.efficiency",
    "EpsilonGreedy": "gqlab.operators",
    "EvalCallback": "gqlab.learn.agent.callbacks",
    "Evaluation": "gqlab.learn.playing",
    "FiniteMDP": "gqlab.mdp.finite",
    "FittedQ": "gqlab.algorithms",
    "FixedPolicy": "gqlab.operators",
    "Floor": "gqlab.lab.floor",
    "Fourier": "gqlab.encoders",
    "Greedy": "gqlab.operators",
    "GreedyGQ": "gqlab.algorithms",
    "GridResult": "gqlab.grids.grid_result",
    "Health": "gqlab.data",
    "Identity": "gqlab.encoders",
    "ImportanceSampling": "gqlab.judge.sampling",
    "LSPI": "gqlab.algorithms",
    "LeastSquaresGreedyGQ": "gqlab.algorithms",
    "LinearDecay": "gqlab.algorithms.schedules",
    "LinearQ": "gqlab.learn.linear_q",
    "Mellowmax": "gqlab.operators",
    "NestedGreedyGQ": "gqlab.algorithms",
    "OneHot": "gqlab.encoders",
    "Operator": "gqlab.operators",
    "PolicyGradient": "gqlab.algorithms",
    "Problem": "gqlab.problems.problem",
    "QLearning": "gqlab.algorithms",
    "QRC": "gqlab.algorithms",
    "RBF": "gqlab.encoders",
    "Refit": "gqlab.learn.agent.replay",
    "Replay": "gqlab.learn.agent.replay",
    "RunResult": "gqlab.lab.results",
    "SAGAGreedyGQ": "gqlab.algorithms",
    "SAGAQLearning": "gqlab.algorithms",
    "SARAHGreedyGQ": "gqlab.algorithms",
    "STORMGreedyGQ": "gqlab.algorithms",
    "Sarsa": "gqlab.algorithms",
    "Seeds": "gqlab.learn.agent.many",
    "Selection": "gqlab.judge.selecting",
    "Softmax": "gqlab.operators",
    "StopOnReward": "gqlab.learn.agent.callbacks",
    "StreamingGreedyGQ": "gqlab.algorithms",
    "TileCoder": "gqlab.encoders",
    "Trajectory": "gqlab.lab.check",
    "Transitions": "gqlab.data",
    "UpdateError": "gqlab.lab.variance",
    "VRGreedyGQ": "gqlab.algorithms",
    "Watch": "gqlab.measure.watch",
    "Watched": "gqlab.measure.watch",
    "WholeDataVRGreedyGQ": "gqlab.algorithms",
    "aggregated_features": "gqlab.problems.features",
    "baird": "gqlab.problems.baird",
    "collect": "gqlab.data",
    "compare_plot": "gqlab.lab.curves",
    "decide": "gqlab.judge.deciding",
    "efficiency": "gqlab.lab.efficiency",
    "evaluate": "gqlab.learn.playing",
    "fit": "gqlab.learn.fit.fit",
    "floor": "gqlab.lab.floor",
    "garnet": "gqlab.problems.garnet",
    "grid": "gqlab.grids.grid",
    "health": "gqlab.data",
    "learn_many": "gqlab.learn.agent.many",
    "importance_sampling": "gqlab.judge.sampling",
    "open_grid": "gqlab.grids.grid",
    "random_features": "gqlab.problems.features",
    "run": "gqlab.lab.run",
    "sampled_reward": "gqlab.lab.rollout",
    "select": "gqlab.judge.selecting",
    "tabular_features": "gqlab.problems.features",
    "trajectory": "gqlab.lab.check",
    "update_error": "gqlab.lab.variance",
    "vary": "gqlab.grids.grid",
}

#: The public names that are modules.
MODULES = {
    "check": "gqlab.lab.check",
    "tasks": "gqlab.tasks",
    "theory": "gqlab.theory",
}

#: Names that were given up, with those that replace them.
RENAMED = {
    "Linear": "LinearDecay",
    "aggregation": "aggregated_features",
    "batch_indices": "check.batch_indices",
    "greedy_gq_steps": "check.greedy_gq_steps",
    "open_sweep": "open_grid",
    "pseudo_gradient": "check.pseudo_gradient",
    "svrg_epoch": "check.svrg_epoch",
    "sweep": "vary",
    "sweeps": "tasks",
}


def __getattr__(name: str) -> Any:
    if name in RENAMED:
        raise AttributeError(f"gqlab.{name} is called gqlab.{RENAMED[name]} now")
    if name in MODULES:
        value: Any = import_module(MODULES[name])
    elif name in LAZY:
        value = getattr(import_module(LAZY[name]), name)
    else:
        raise AttributeError(f"module 'gqlab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY, *MODULES})


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
    "Decision",
    "Efficiency",
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
    "Health",
    "Identity",
    "ImportanceSampling",
    "LeastSquaresGreedyGQ",
    "LinearDecay",
    "LinearQ",
    "Mellowmax",
    "NestedGreedyGQ",
    "OneHot",
    "Operator",
    "PolicyGradient",
    "Problem",
    "QLearning",
    "Refit",
    "Replay",
    "RunResult",
    "SAGAGreedyGQ",
    "SAGAQLearning",
    "SARAHGreedyGQ",
    "STORMGreedyGQ",
    "Sarsa",
    "Seeds",
    "Selection",
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
    "WholeDataVRGreedyGQ",
    "__version__",
    "aggregated_features",
    "baird",
    "check",
    "collect",
    "compare_plot",
    "decide",
    "efficiency",
    "evaluate",
    "fit",
    "floor",
    "garnet",
    "grid",
    "health",
    "importance_sampling",
    "learn_many",
    "open_grid",
    "random_features",
    "run",
    "sampled_reward",
    "select",
    "tabular_features",
    "tasks",
    "theory",
    "trajectory",
    "update_error",
    "vary",
]
