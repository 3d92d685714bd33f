"""Updates that touch the nonzero features alone are the updates that touch all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import gqlab as gq
from gqlab.learn.fit.passes import Passes, values_of
from gqlab.operators.switch import join_operators
from gqlab.rules.blocks import BinaryBlocks, DenseBlocks
from gqlab.rules.gradient import Samples
from gqlab.rules.memory import Sizes
from gqlab.rules.vectors import LEAST_STEPS
from gqlab.samples.tables import per_problem

S, A, K, ACTIVE = 12, 3, 7, 3
N = 3 * LEAST_STEPS  # so that vectors are written out on the way


def state_features(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where they are and what they are, (S, n) each, and all of them, (S, K)."""
    rng = np.random.default_rng(5)
    n = K if kind == "dense" else ACTIVE
    index = np.stack([rng.permutation(K)[:n] for _ in range(S)]) if kind != "dense" else np.tile(np.arange(K), (S, 1))
    value = np.full((S, n), 1 / np.sqrt(n)) if kind == "binary" else rng.normal(size=(S, n)) / np.sqrt(n)
    x = np.zeros((S, K))
    np.put_along_axis(x, index, value, axis=1)
    return index, value, x


def problem_of(x: np.ndarray, terminal: bool) -> gq.Problem:
    """A finite MDP whose features are x(s) in the block of the action."""
    mdp = gq.garnet(S, A, branching=3, discount=0.9, seed=3)
    if terminal:
        end = np.zeros(S, dtype=bool)
        end[0] = True
        mdp = gq.FiniteMDP(mdp.transition, mdp.reward, 0.9, terminal=end, initial=np.eye(S)[1])
    phi = np.einsum("sk,ab->sabk", x, np.eye(A)).reshape(S, A, A * K)
    return gq.Problem(mdp, phi, target=gq.Greedy())  # as logged data have it by default


def table_of(kind: str, problem: gq.Problem, x: gq.Trajectory) -> Samples:
    """The samples of a trajectory, on features of that kind."""
    index, value, _ = state_features(kind)
    sizes = {"n_active": per_problem([index.shape[1]]), "n_features": per_problem([K]), "n_actions": per_problem([A])}
    features = {
        "binary": lambda: BinaryBlocks(index.astype(np.int32).ravel(), value[0, :1].copy(), **sizes),
        "dense": lambda: DenseBlocks(value.ravel(), **sizes),
    }[kind]()
    return Samples(
        features=features,
        operator=join_operators([problem.target], [S * A], [problem.target.compiled], np.float64),
        row=(x.s * A + x.a).astype(np.uint32),
        next_row=(x.s_next * A).astype(np.uint32),
        reward=problem.mdp.reward[x.s, x.a, x.s_next],
        discount=problem.mdp.discount[x.s, x.a, x.s_next],
        behavior=np.zeros(1),
        first_row=per_problem([0]),
        first_sample=per_problem([0]),
    )


def passes_over(samples: Samples, n_observations: int, algorithm: gq.Algorithm, seed: int, n_updates: int) -> Passes:
    kind = algorithm.estimator
    sizes = Sizes(A * K, A, n_observations, len(samples.row), n_updates)
    return Passes(samples, sizes, algorithm, kind, values_of(algorithm, kind), seed)


ALGORITHMS = {
    "Greedy-GQ": lambda R: gq.GreedyGQ(0.1, 0.05, radius=R),
    "QRC": lambda R: gq.QRC(0.1, 0.05, beta=0.7, radius=R),
    "Q-learning": lambda R: gq.QLearning(0.1, radius=R),
    "averaged": lambda R: gq.AveragedGreedyGQ(0.1, 0.05, radius=R),
    "SVRG": lambda R: gq.VRGreedyGQ(0.1, 0.05, batch_size=512, radius=R),
    "streaming": lambda R: gq.StreamingGreedyGQ(gq.Decay(0.2), gq.Decay(0.1), radius=R),
    "SARAH": lambda R: gq.SARAHGreedyGQ(gq.Decay(0.01), gq.Decay(0.01), batch_size=512, growth=1.5, radius=R),
    "STORM": lambda R: gq.STORMGreedyGQ(gq.Decay(0.02), gq.Decay(0.02), radius=R),
    "STORM, constant": lambda R: gq.STORMGreedyGQ(gq.Decay(0.2), gq.Decay(0.1), a=0.1, power=0.0, radius=R),
    "STORM, forgetful": lambda R: gq.STORMGreedyGQ(gq.Decay(0.2), gq.Decay(0.1), a=1.0, power=0.0, radius=R),
}


#: Every algorithm on binary features, and those with and without a drift on dense ones.
CASES = [("binary", name) for name in ALGORITHMS] + [("dense", name) for name in ("QRC", "SVRG")]
#: By `make long` alone.
SELDOM = {("binary", "averaged"), ("binary", "streaming"), ("dense", "SVRG")}


def assert_near(one: np.ndarray, other: np.ndarray) -> None:
    """To 1e-12 of their length: STORM with a_t = 1/t makes a rounding of θ₀ a thousand times as large, dense or not."""
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, float(np.linalg.norm(other))))


@pytest.mark.parametrize("radius", [np.inf, 1.5], ids=["free", "projected"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*case, marks=[pytest.mark.long] * (case in SELDOM), id="-".join(case)) for case in CASES],
)
def test_sparse_steps_are_the_dense_ones(kind, name, radius):
    problem = problem_of(state_features(kind)[2], terminal=kind == "dense")
    algorithm = ALGORITHMS[name](radius)
    if algorithm.has_omega:
        algorithm = replace(algorithm, radius_omega=radius / 5)
    dense = gq.run(problem, algorithm, N, n_runs=1, seed=4, record_every=N // 4)
    passes = passes_over(table_of(kind, problem, gq.trajectory(problem, N, seed=4)), S, algorithm, 4, N)
    for k, updates in enumerate(dense.updates):
        passes.advance(int(updates))
        assert_near(passes.theta, dense.theta[0, k])
    assert_near(passes.omega, dense.omega[0, -1])
    assert passes.updates == dense.updates[-1]
    if np.isfinite(radius):
        assert np.linalg.norm(dense.theta[0], axis=-1).max() > 0.9 * radius


def over(kind: str, problem: gq.Problem, algorithm: gq.Algorithm) -> Passes:
    """Before the first update over a log of the binary features, as they are or written out in full."""
    samples = table_of("binary", problem, gq.trajectory(problem, LEAST_STEPS, seed=4))
    if kind == "dense":
        sizes = {"n_active": per_problem([K]), "n_features": per_problem([K]), "n_actions": per_problem([A])}
        samples = samples._replace(features=DenseBlocks(state_features("binary")[2].ravel(), **sizes))
    return passes_over(samples, S, algorithm, 4, N)


#: What a log is learned from otherwise than a trajectory, and ω that shrinks by itself, to nothing at the end.
BY_ROW = {
    "SAGA": lambda R: gq.SAGAGreedyGQ(gq.Decay(0.2), gq.Decay(0.1), radius=R),
    "SAGA, shrinking": lambda R: ShrinkingSAGA(0.1, 0.05, radius=R, shrink=3.0),
    "STORM, shrinking": lambda R: ShrinkingSTORM(0.1, 0.05, radius=R, shrink=3.0),
    "STORM, shrinking at once": lambda R: ShrinkingSTORM(0.1, 0.05, radius=R, shrink=20.0),
}


@dataclass(frozen=True)
class ShrinkingSAGA(gq.SAGAGreedyGQ):
    """With QRC's decay of ω."""

    shrink: float = 0.0

    @property
    def omega_decay(self) -> float:
        return self.shrink


@dataclass(frozen=True)
class ShrinkingSTORM(gq.STORMGreedyGQ):
    """With QRC's decay of ω."""

    shrink: float = 0.0

    @property
    def omega_decay(self) -> float:
        return self.shrink


@pytest.mark.parametrize("radius", [np.inf, 1.5], ids=["free", "projected"])
@pytest.mark.parametrize("name", [*BY_ROW])
def test_rows_are_learned_from_at_their_entries_as_in_full(name, radius):
    problem = problem_of(state_features("binary")[2], terminal=False)
    algorithm = replace(BY_ROW[name](radius), radius_omega=radius / 5)
    sparse, dense = (over(kind, problem, algorithm) for kind in ("binary", "dense"))
    assert type(sparse.point) is not type(dense.point)
    for updates in (300, N):
        sparse.advance(updates)
        dense.advance(updates)
        assert sparse.updates == dense.updates == updates
        assert_near(sparse.theta, dense.theta)
        assert_near(sparse.omega, dense.omega)
        assert np.linalg.norm(dense.theta) > 0.5
        assert np.linalg.norm(dense.omega) > (1e-3 if updates == 300 else 1e-8)


def test_a_run_that_grows_without_bound_stops_among_the_finite_numbers():
    problem = problem_of(state_features("binary")[2], terminal=False)
    samples = table_of("binary", problem, gq.trajectory(problem, 5000))
    passes = passes_over(samples, S, gq.QLearning(50.0), 0, 5000)
    passes.advance(5000)
    assert passes.diverged
    assert passes.updates < 5000
    assert np.isfinite(passes.theta).all()
    assert np.isfinite(passes.omega).all()
