"""Actor-critic and policy gradient: estimators whose direction is not (G_x, H_x)."""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.needs import Need, Needs
from gqlab.rules.dispatch import rule
from gqlab.rules.memory import Array, Sizes, far, near
from gqlab.rules.point import descend_along
from gqlab.rules.policies import actor_critic, policy_gradient_add, policy_tables
from gqlab.samples.random import EPISODE, EPISODE_START, word
from gqlab.samples.streams import begin_anew, draw, is_terminal, key, transition

#: Samples of a trajectory between two looks at the stop flag, a power of 2.
STOP_LOOK = 1024


class ActorCriticStep(NamedTuple):
    """One step of actor and critic for each sample of the trajectory."""

    G: Any  # (d,)
    H: Any  # (d,)
    q: Any  # (A,)
    p: Any  # (A,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.BEHAVIOR})

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {"G": near(n.d), "H": near(n.d), "q": near(n.A), "p": near(n.A)}

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        sigma = world.samples.operator.sigma
        actor_critic(world.samples, x, point, sigma, self.q, self.p, self.G, self.H, d, A)
        return descend_along(point, self.G, self.H, rates, d), cursor


class PolicyGradientStep(NamedTuple):
    """n_trajectories trajectories of ``horizon`` samples for each update."""

    n_trajectories: int
    horizon: int
    q: Any  # (A,)
    p: Any  # (A,)
    g: Any  # (d,)  the sum of the estimates
    still: Any  # (d,)  zeros: ω does not move
    score: Any  # (d,)  Σ_{k≤t} ∇ log π of one trajectory
    ratio: Any  # (S · A,)  π_θ/π_b
    scores: Any  # (S · A · d,)  ∇ log π_θ

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.STATES, Need.BEHAVIOR, Need.SIMULATION})

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **dict.fromkeys(("q", "p"), near(n.A)),
            **dict.fromkeys(("g", "still", "score"), near(n.d)),
            "ratio": far(n.states * n.A),
            "scores": far(n.states * n.A * n.d),
        }

    def step(self, world, point, cursor, u, rates, d, A):
        """θ ← Π_R[θ + η_θ · mean g] over the trajectories of update u."""
        samples, n = world.samples, self.n_trajectories
        policy_tables(samples, world.stream.n_states, point.theta, samples.operator.sigma, self, d, A)
        for i in range(d):
            self.g[i] = self.g.dtype.type(0)
        for k in range(n):
            if world.stop[0] == 0:
                add_trajectory(self, world, u * n + k, d)
        for i in range(d):
            self.g[i] /= -self.g.dtype.type(n)
        return descend_along(point, self.g, self.still, rates, d), cursor


@rule
def add_trajectory(work, world, number, d):
    """Draw trajectory ``number`` and add its estimate to ``g``; it takes the words number·horizon + t."""
    samples, stream = world.samples, world.stream
    for i in range(d):
        work.score[i] = work.score.dtype.type(0)
    weight = work.g.dtype.type(1)
    s = begin_anew(stream, key(world.run, EPISODE_START), number)
    for t in range(work.horizon):
        if t & (STOP_LOOK - 1) == 0 and world.stop[0] != 0:
            break
        x = transition(stream, s, word(key(world.run, EPISODE), number * work.horizon + t))
        weight = policy_gradient_add(samples, x, weight, work, d)
        s = stream.next_state[x]
        if is_terminal(stream, s):  # γ = 0: nothing follows
            break
