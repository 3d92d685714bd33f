"""The algorithms: an estimator and its parameters, as plain data."""

from gqlab.algorithms.base import ALGORITHMS, Algorithm, check_algorithm, from_dict, is_kind
from gqlab.algorithms.family import (
    AveragedGreedyGQ,
    LeastSquaresGreedyGQ,
    NestedGreedyGQ,
    SAGAGreedyGQ,
    SAGAQLearning,
    SARAHGreedyGQ,
    STORMGreedyGQ,
    StreamingGreedyGQ,
)
from gqlab.algorithms.greedy_gq import QRC, GreedyGQ, QLearning, Sarsa, VRGreedyGQ, WholeDataVRGreedyGQ
from gqlab.algorithms.policy_search import ActorCritic, PolicyGradient
from gqlab.algorithms.solvers import LSPI, FittedQ

__all__ = [
    "ALGORITHMS",
    "LSPI",
    "QRC",
    "ActorCritic",
    "Algorithm",
    "AveragedGreedyGQ",
    "FittedQ",
    "GreedyGQ",
    "LeastSquaresGreedyGQ",
    "NestedGreedyGQ",
    "PolicyGradient",
    "QLearning",
    "SAGAGreedyGQ",
    "SAGAQLearning",
    "SARAHGreedyGQ",
    "STORMGreedyGQ",
    "Sarsa",
    "StreamingGreedyGQ",
    "VRGreedyGQ",
    "WholeDataVRGreedyGQ",
    "check_algorithm",
    "from_dict",
    "is_kind",
]
