"""Policy-improvement operators: one state's action values q ↦ V̄(q), its gradient w, and the policy π(·; q)."""

from gqlab.operators.base import Operator, Smoothness
from gqlab.operators.epsilon_greedy import EpsilonGreedy, Greedy
from gqlab.operators.fixed_policy import FixedPolicy
from gqlab.operators.mellowmax import Mellowmax
from gqlab.operators.softmax import Softmax

#: The operators that come with gqlab. Compiled code for one of them serves all: a switch chooses at run time.
OPERATORS: tuple[type[Operator], ...] = (Softmax, Mellowmax, Greedy, EpsilonGreedy, FixedPolicy)

__all__ = ["OPERATORS", "EpsilonGreedy", "FixedPolicy", "Greedy", "Mellowmax", "Operator", "Smoothness", "Softmax"]
