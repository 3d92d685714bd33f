"""Policies: whatever gives the probabilities of the actions, observations (n, size) ↦ (n, n_actions)."""

from gqlab.policies.policy import Policy, as_policy, drawn

__all__ = ["Policy", "as_policy", "drawn"]
