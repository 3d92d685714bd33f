"""The problems of the study: finite ones, so that every value is known exactly, and what a log shows of their states.

A problem has a behaviour policy b (what runs now), episodes that are cut off after ``horizon`` rows, and a target
policy for each shift: (1 − share) b + share π*, with π* an optimal policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gqlab.mdp.finite import FiniteMDP
from gqlab.mdp.values import action_value, optimal_value, policy_value
from gqlab.problems.garnet import garnet
from gqlab.support.checks import FloatArray

#: How much of an optimal policy a target has.
SHIFTS = {"small": 0.3, "large": 0.9}

#: How often the behaviour acts at random, and else by its rule of thumb.
RANDOM = 0.5


@dataclass(frozen=True, eq=False)
class LoggedProblem:
    """An MDP, what runs in it now, and what its log shows."""

    name: str
    mdp: FiniteMDP
    gamma: float
    behavior: FloatArray  # (S, A)
    horizon: int
    observation: FloatArray  # (S, k)

    @cached_property
    def best(self) -> FloatArray:
        """π*, (S, A)."""
        q = action_value(self.mdp, optimal_value(self.mdp))
        return np.eye(self.mdp.n_actions)[q.argmax(axis=1)]

    def target(self, shift: str) -> FloatArray:
        """The policy that is evaluated, (S, A)."""
        share = SHIFTS[shift]
        return (1 - share) * self.behavior + share * self.best

    def exploring(self, share: float) -> FloatArray:
        """The rule of thumb of what runs now, with another share of random actions, (S, A)."""
        A = self.mdp.n_actions
        return share / A + (1 - share) * np.eye(A)[self.behavior.argmax(axis=1)]

    def value(self, policy: FloatArray) -> float:
        """The exact value of a policy from the first state on."""
        return float(policy_value(self.mdp, policy) @ self.mdp.start)

    def at(self, gamma: float) -> LoggedProblem:
        """The same with another discount."""
        mdp = FiniteMDP(self.mdp.transition, self.mdp.reward, gamma, self.mdp.terminal, self.mdp.start)
        return LoggedProblem(self.name, mdp, gamma, self.behavior, self.horizon, self.observation)


def problem(
    name: str,
    transition: FloatArray,
    reward: FloatArray,
    gamma: float,
    *,
    horizon: int,
    initial: FloatArray | None = None,
    terminal: NDArray[np.bool_] | None = None,
    habit: NDArray[np.intp] | None = None,
    observation: FloatArray | None = None,
) -> LoggedProblem:
    """A problem whose behaviour follows a habit (by default the largest immediate reward), or acts at random."""
    S, A = transition.shape[:2]
    start = np.full(S, 1 / S) if initial is None else initial
    mdp = FiniteMDP(transition, reward, gamma, terminal, start)
    usual = mdp.expected_reward.argmax(axis=1) if habit is None else habit
    behavior = RANDOM / A + (1 - RANDOM) * np.eye(A)[usual]
    shown = np.arange(S, dtype=float)[:, None] if observation is None else observation
    return LoggedProblem(name, mdp, gamma, behavior, horizon, shown)


def _masses(mean: float, most: int) -> FloatArray:
    """Probabilities of 0 … most: Poisson's, with the tail on the last."""
    k = np.arange(most + 1)
    p = np.exp(-mean) * np.cumprod(np.concatenate([[1.0], mean / k[1:]]))
    p[-1] += 1 - p.sum()
    return p


# --- Finite problems, as tables --------------------------------------------------------------------------------------


def random_problem(seed: int, n_states: int, n_actions: int, branching: int, gamma: float) -> LoggedProblem:
    """A Garnet, begun in one of its first three states."""
    mdp = garnet(n_states, n_actions, branching, gamma, seed=seed)
    first = np.where(np.arange(n_states) < 3, 1 / 3, 0.0)
    return problem(f"garnet-{seed}", mdp.transition, mdp.reward, gamma, horizon=100, initial=first)


def random_episodes(seed: int, n_states: int, n_actions: int, branching: int, gamma: float) -> LoggedProblem:
    """A Garnet that ends with probability 0.04 at every step."""
    mdp = garnet(n_states, n_actions, branching, gamma, seed=seed)
    P = np.zeros((n_states + 1, n_actions, n_states + 1))
    P[:-1, :, :-1], P[:-1, :, -1], P[-1, :, -1] = 0.96 * mdp.transition, 0.04, 1.0
    r = np.zeros_like(P)
    r[:-1, :, :-1] = mdp.reward
    ends = np.arange(n_states + 1) == n_states
    first = np.where(np.arange(n_states + 1) < 3, 1 / 3, 0.0)
    return problem(f"ending-garnet-{seed}", P, r, gamma, horizon=200, initial=first, terminal=ends)


def inventory(capacity: int, mean: float, price: float, cost: float, holding: float, gamma: float) -> LoggedProblem:
    """Order 0, 2, 4 or 6 pieces of a good before the day's demand; what runs now orders when few are left."""
    orders, demand = np.array([0, 2, 4, 6]), _masses(mean, 3 * capacity)
    P, r = np.zeros((capacity + 1, 4, capacity + 1)), np.zeros((capacity + 1, 4))
    for s in range(capacity + 1):
        for a, order in enumerate(orders):
            stock = min(capacity, s + order)
            for d, p in enumerate(demand):
                sold = min(stock, d)
                P[s, a, stock - sold] += p
                r[s, a] += p * (price * sold - holding * (stock - sold))
            r[s, a] -= cost * (stock - s) + (0.8 if stock > s else 0.0)
    habit = np.where(np.arange(capacity + 1) <= capacity // 3, 2, 0)
    full = np.eye(capacity + 1)[-1]
    return problem(f"inventory-{capacity}", P, r, gamma, horizon=60, initial=full, habit=habit)


def maintenance(levels: int, wear: float, repair: float, replace: float, gamma: float) -> LoggedProblem:
    """A machine that wears: let it run, repair it by two levels, or replace it; worn out it earns nothing."""
    P, r = np.zeros((levels, 3, levels)), np.zeros((levels, 3))
    for s in range(levels):
        for a, base in enumerate((s, max(0, s - 2), 0)):
            P[s, a, min(levels - 1, base + 1)] += wear
            P[s, a, min(levels - 1, base + 2)] += wear / 3
            P[s, a, base] += 1 - 4 * wear / 3
            earned = 0.0 if base == levels - 1 else 1 - (base / (levels - 1)) ** 2
            r[s, a] = earned - (0.0, repair, replace)[a]
    habit = np.where(np.arange(levels) >= levels - 2, 2, 0)
    return problem(f"maintenance-{levels}", P, r, gamma, horizon=80, initial=np.eye(levels)[0], habit=habit)


def queue(room: int, arrival: float, slow: float, fast: float, price: float, gamma: float) -> LoggedProblem:
    """Customers wait: serve slowly, or fast at a price."""
    P, r = np.zeros((room + 1, 2, room + 1)), np.zeros((room + 1, 2))
    for s in range(room + 1):
        for a, served in enumerate((slow, fast)):
            done = served if s > 0 else 0.0
            P[s, a, min(room, s + 1)] += arrival * (1 - done)
            P[s, a, max(0, s - 1)] += done * (1 - arrival)
            P[s, a, s] += arrival * done + (1 - arrival) * (1 - done)
            r[s, a] = -s / room - price * a
    habit = (np.arange(room + 1) > 3 * room // 4).astype(np.intp)
    return problem(f"queue-{room}", P, r, gamma, horizon=100, initial=np.eye(room + 1)[0], habit=habit)


def river(length: int, along: float, back: float, gamma: float) -> LoggedProblem:
    """A swimmer against a current: a little at the lower end, much at the upper one; what runs now drifts."""
    P, r = np.zeros((length, 2, length)), np.zeros((length, 2))
    for s in range(length):
        P[s, 0, max(0, s - 1)] = 1.0
        P[s, 1, min(length - 1, s + 1)] += along
        P[s, 1, max(0, s - 1)] += back
        P[s, 1, s] += 1 - along - back
    r[0, 0], r[-1, 1] = 0.02, 1.0
    habit = np.zeros(length, dtype=np.intp)
    return problem(f"river-{length}", P, r, gamma, horizon=100, initial=np.eye(length)[1], habit=habit)


def lake(rows: tuple[str, ...], gamma: float, horizon: int) -> LoggedProblem:
    """A map of Gymnasium's FrozenLake, explored at random."""
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1", gamma, desc=list(rows))
    return at_random(f"lake-{len(rows)}x{len(rows[0])}", mdp, gamma, horizon)


def cliff(width: int, height: int, fall: float, gamma: float, horizon: int) -> LoggedProblem:
    """A walk along a cliff, explored at random: every step costs 1, a fall much, and leads back to where it began.

    Nothing is random, and few episodes reach the end.
    """
    n, moves = width * height, ((0, -1), (0, 1), (-1, 0), (1, 0))
    P, r = np.zeros((n, 4, n)), np.zeros((n, 4))
    start, goal = (height - 1) * width, n - 1
    for s in range(n):
        y, x = divmod(s, width)
        for a, (down, right) in enumerate(moves):
            to = min(max(y + down, 0), height - 1) * width + min(max(x + right, 0), width - 1)
            falls = start < to < goal
            P[s, a, start if falls else to] = 1.0
            r[s, a] = -fall if falls else -1.0
    P[goal], r[goal] = np.eye(n)[goal], 0.0
    mdp = FiniteMDP(P, r, gamma, np.arange(n) == goal, np.eye(n)[start])
    return at_random(f"cliff-{width}x{height}", mdp, gamma, horizon)


def at_random(name: str, mdp: FiniteMDP, gamma: float, horizon: int) -> LoggedProblem:
    """A problem in which what runs now does anything as often as anything else."""
    S, A = mdp.n_states, mdp.n_actions
    shown = np.arange(S, dtype=float)[:, None]
    return LoggedProblem(name, mdp, gamma, np.full((S, A), 1 / A), horizon, shown)


#: The finite problems: none of them, and none of their numbers, was used to find the method or to mend it.
FINITE: tuple[Callable[[], LoggedProblem], ...] = (
    lambda: random_problem(400, 10, 2, 4, 0.9),
    lambda: random_problem(401, 14, 3, 2, 0.95),
    lambda: random_problem(402, 22, 2, 4, 0.98),
    lambda: random_problem(403, 18, 4, 3, 0.9),
    lambda: random_problem(404, 26, 3, 5, 0.95),
    lambda: random_problem(405, 28, 2, 3, 0.98),
    lambda: random_problem(406, 13, 4, 3, 0.95),
    lambda: random_problem(407, 16, 3, 4, 0.9),
    lambda: random_problem(408, 23, 2, 2, 0.95),
    lambda: random_problem(409, 32, 3, 4, 0.98),
    lambda: random_episodes(410, 12, 3, 4, 0.95),
    lambda: random_episodes(411, 18, 2, 3, 0.98),
    lambda: random_episodes(412, 15, 4, 2, 0.9),
    lambda: inventory(11, 2.7, 2.8, 1.0, 0.15, 0.95),
    lambda: inventory(16, 3.6, 2.1, 0.8, 0.05, 0.98),
    lambda: maintenance(8, 0.37, 0.3, 0.8, 0.95),
    lambda: maintenance(13, 0.4, 0.2, 1.0, 0.98),
    lambda: queue(8, 0.38, 0.42, 0.7, 0.18, 0.95),
    lambda: queue(13, 0.48, 0.5, 0.85, 0.25, 0.98),
    lambda: river(7, 0.5, 0.08, 0.9),
    lambda: river(9, 0.42, 0.05, 0.95),
    lambda: lake(("SFFF", "FHFF", "FFFH", "HFFG", "FFFF"), 0.95, 100),
    lambda: cliff(7, 3, 35.0, 0.95, 120),
    lambda: lake(("SFFFFF", "FFHFFF", "FFFFHF", "FHFFFF", "FFFHFG"), 0.98, 120),
)


# --- Problems whose log shows numbers --------------------------------------------------------------------------------


def shop(capacity: int, gamma: float) -> LoggedProblem:
    """Stock and season: order 0, 5, 10 or 15; demand is twice as large in season, which comes and goes."""
    S, seasons = capacity + 1, ((_masses(3.5, 40), 0.1), (_masses(7.5, 40), 0.12))
    P, r = np.zeros((2 * S, 4, 2 * S)), np.zeros((2 * S, 4))
    for season, (demand, turns) in enumerate(seasons):
        for s in range(S):
            for a, order in enumerate((0, 5, 10, 15)):
                stock = min(capacity, s + order)
                for d, p in enumerate(demand):
                    sold = min(stock, d)
                    for other, q in ((season, 1 - turns), (1 - season, turns)):
                        P[season * S + s, a, other * S + stock - sold] += p * q
                    r[season * S + s, a] += p * (2.3 * sold - 0.07 * (stock - sold))
                r[season * S + s, a] -= 1.0 * (stock - s) + (1.6 if stock > s else 0.0)
    shown = np.stack([np.tile(np.arange(S), 2), np.repeat([0, 1], S)], axis=1).astype(float)
    habit = np.where(shown[:, 0] <= 6, 2, 0)
    return problem("shop", P, r, gamma, horizon=80, initial=np.eye(2 * S)[S - 1], habit=habit, observation=shown)


def two_queues(room: int, gamma: float) -> LoggedProblem:
    """Two lines of customers and one server, who serves the first line by habit; the second is dearer."""
    n = room + 1
    P, r = np.zeros((n * n, 2, n * n)), np.zeros((n * n, 2))
    shown = np.array([(i, j) for i in range(n) for j in range(n)], dtype=float)
    for i in range(n):
        for j in range(n):
            for a, line in enumerate((i, j)):
                done = 0.75 if line > 0 else 0.0
                for left, p in ((1, done), (0, 1 - done)):
                    for come, q in ((0, 0.35), (1, 0.4), (2, 0.25)):
                        x = min(room, max(0, i - left * (a == 0)) + (come == 1))
                        y = min(room, max(0, j - left * (a == 1)) + (come == 2))
                        P[i * n + j, a, x * n + y] += p * q
                r[i * n + j, a] = -(i + 3.0 * j) / (4.0 * room)
    habit = (shown[:, 0] == 0).astype(np.intp)
    return problem("two queues", P, r, gamma, horizon=100, initial=np.eye(n * n)[0], habit=habit, observation=shown)


def two_parts(levels: int, gamma: float) -> LoggedProblem:
    """Two parts of a machine wear: do nothing, or renew one or both; it stops where either is worn out."""
    n = levels
    P, r = np.zeros((n * n, 4, n * n)), np.zeros((n * n, 4))
    shown = np.array([(i, j) for i in range(n) for j in range(n)], dtype=float)
    for i in range(n):
        for j in range(n):
            for a in range(4):
                x, y = (0 if a & 1 else i), (0 if a & 2 else j)
                works = x < n - 1 and y < n - 1
                r[i * n + j, a] = (1.0 - 0.4 * (x + y) / (2 * n)) * works - (0.0, 0.6, 0.9, 1.3)[a]
                for dx, p in ((0, 0.55), (1, 0.3), (2, 0.15)):
                    for dy, q in ((0, 0.65), (1, 0.35)):
                        P[i * n + j, a, min(n - 1, x + dx) * n + min(n - 1, y + dy)] += p * q
    worn = (shown >= n - 2).astype(np.intp)
    habit = worn[:, 0] + 2 * worn[:, 1]
    return problem("two parts", P, r, gamma, horizon=80, initial=np.eye(n * n)[0], habit=habit, observation=shown)


def reservoir(levels: int, gamma: float) -> LoggedProblem:
    """Water in four seasons: release 0 to 3 units for power; floods and drought cost. The season is a number 0 to 3."""
    n, seasons = levels + 1, (0.5, 1.3, 2.1, 1.2)
    P, r = np.zeros((4 * n, 4, 4 * n)), np.zeros((4 * n, 4))
    for season, mean in enumerate(seasons):
        inflow = _masses(mean, 12)
        for s in range(n):
            for a in range(4):
                out = min(s, a)
                for d, p in enumerate(inflow):
                    full = s - out + d
                    for other, q in ((season, 0.88), ((season + 1) % 4, 0.12)):
                        P[season * n + s, a, other * n + min(levels, full)] += p * q
                    r[season * n + s, a] -= 0.7 * p * max(0, full - levels)
                r[season * n + s, a] += np.sqrt(out) * (0.6 + 0.4 * s / levels) - (1.0 if s <= 2 else 0.0)
    shown = np.stack([np.tile(np.arange(n), 4), np.repeat(np.arange(4), n)], axis=1).astype(float)
    habit = np.where(shown[:, 0] > levels / 2, 2, 1)
    first = np.eye(4 * n)[levels // 2]
    return problem("reservoir", P, r, gamma, horizon=80, initial=first, habit=habit, observation=shown)


def sale(stock: int, weeks: int, gamma: float) -> LoggedProblem:
    """Sell a stock before a date, at one of four prices; the log shows what is left of both."""
    n, prices = stock + 1, (1.0, 1.5, 2.1, 2.8)
    S = n * (weeks + 1)
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4))
    shown = np.array([(s, w) for w in range(weeks + 1) for s in range(n)], dtype=float)
    ends = (shown[:, 0] == 0) | (shown[:, 1] == 0)
    for k, (s, w) in enumerate(shown.astype(int)):
        if ends[k]:
            P[k, :, k] = 1.0
            continue
        for a, price in enumerate(prices):
            for d, p in enumerate(_masses(4.6 * np.exp(-0.7 * price) * (1.5 if w <= 3 else 1.0), 12)):
                sold = min(s, d)
                P[k, a, (w - 1) * n + s - sold] += p
                r[k, a] += p * price * sold
    first = np.eye(S)[weeks * n + stock]
    habit = np.where(shown[:, 1] > 3, 1, 0)
    return problem("sale", P, r, gamma, horizon=weeks + 1, initial=first, terminal=ends, habit=habit, observation=shown)


#: The problems whose log shows numbers.
NUMERIC: tuple[Callable[[], LoggedProblem], ...] = (
    lambda: shop(38, 0.95),
    lambda: two_queues(10, 0.95),
    lambda: two_parts(8, 0.95),
    lambda: reservoir(21, 0.95),
    lambda: sale(17, 9, 0.99),
)


@cache
def finite(k: int) -> LoggedProblem:
    """The k-th finite problem."""
    return FINITE[k]()


@cache
def numeric(k: int) -> LoggedProblem:
    """The k-th problem whose log shows numbers."""
    return NUMERIC[k]()
