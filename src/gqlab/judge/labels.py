"""Policies and the actions of a log, matched by their labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gqlab.data.transitions import Transitions
from gqlab.policies import Policy, as_policy
from gqlab.support.checks import FloatArray


class Reordered(Policy):
    """A policy whose actions stand in another order than those of the log."""

    def __init__(self, policy: Policy, order: list[int]) -> None:
        self.policy, self.order = policy, np.array(order)
        self.n_actions, self.observation_size = policy.n_actions, policy.observation_size

    def probabilities(self, observations: Any) -> FloatArray:
        return self.policy.probabilities(observations)[:, self.order]


def matched(name: str, policy: Any, data: Transitions) -> Policy:
    """A policy over the actions of the data, in their order; one with other labels is refused."""
    own, wanted = getattr(policy, "action_labels", None), data.action_labels
    made = as_policy(name, policy, data.n_actions, data.observation_size)
    if own is None or wanted is None or list(own) == list(wanted):
        return made
    if sorted(map(str, own)) != sorted(map(str, wanted)):
        raise ValueError(
            f"{name} has the actions {', '.join(map(repr, own))}, and the log has {', '.join(map(repr, wanted))}"
        )
    places = {str(label): k for k, label in enumerate(own)}
    return Reordered(made, [places[str(label)] for label in wanted])
