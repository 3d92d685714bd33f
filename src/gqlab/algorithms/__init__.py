"""The algorithms: an estimator and its parameters, as plain data."""

from gqlab.algorithms.base import ALGORITHMS, Algorithm, check_algorithm, from_dict
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
from gqlab.algorithms.greedy_gq import QRC, GreedyGQ, QLearning, Sarsa, VRGreedyGQ
from gqlab.algorithms.policy_search import ActorCritic, PolicyGradient

__all__ = [
    "ALGORITHMS",
    "QRC",
    "ActorCritic",
    "Algorithm",
    "AveragedGreedyGQ",
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
    "check_algorithm",
    "from_dict",
]
