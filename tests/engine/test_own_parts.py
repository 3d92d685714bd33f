"""An operator and an estimator in a user's own file run compiled, and never as what the file said before."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.estimators.plain import Plain
from gqlab.rules.memory import near
from gqlab.samples.streams import draw
from helpers.plain_loops import greedy_gq, pseudo_gradients
from helpers.refusals import refused

OWN_FILE = '''
"""An ε-softmax operator, and STORM: v_t = F_x(z_t) + (1 − a)(v_{t−1} − F_x(z_{t−1}))."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import gqlab as gq
import numpy as np
from scipy.special import softmax
from gqlab.rules.boltzmann import boltzmann
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import near
from gqlab.rules.point import descend_along
from gqlab.samples.streams import draw


class EpsilonSoftmaxRule(NamedTuple):
    sigma: float
    epsilon: float

    def improve(self, row, q, w, A):
        top, over_Z, mean = boltzmann(q, self.sigma, w, A)
        each = self.epsilon / q.dtype.type(A)
        rest = q.dtype.type(1) - self.epsilon
        V = rest * (top + mean)
        for a in range(A):
            p = w[a] * over_Z
            w[a] = rest * (p + p * self.sigma * (q[a] - top - mean)) + each
            V += each * q[a]
        return V


@dataclass(frozen=True)
class EpsilonSoftmax(gq.Operator):
    compiled: ClassVar[type] = EpsilonSoftmaxRule
    sigma: float = 1.0
    epsilon: float = 0.2

    def policy(self, q):
        return (1 - self.epsilon) * softmax(self.sigma * q, axis=-1) + self.epsilon / q.shape[-1]

    def weights(self, q):
        p = softmax(self.sigma * q, axis=-1)
        w = p * (1 + self.sigma * (q - (p * q).sum(axis=-1, keepdims=True)))
        return (1 - self.epsilon) * w + self.epsilon / q.shape[-1]


class STORMStep(NamedTuple):
    a: float
    v_G: Any
    v_H: Any
    theta_last: Any
    omega_last: Any
    q: Any
    w: Any
    c: Any

    @staticmethod
    def memory(n):
        kept = dict.fromkeys(("v_G", "v_H", "theta_last", "omega_last"), near(n.d, kept=True))
        return {**kept, "q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        one = point.theta.dtype.type(1)
        keep = one - self.a if u > 0 else one - one
        evaluate(world.samples, x, self.theta_last, self.omega_last, self.q, self.w, self.c, d, A)
        for i in range(d):
            self.v_G[i] *= keep
            self.v_H[i] *= keep
        scatter(world.samples, x, self.c, -keep, -keep, self.v_G, self.v_H, d, A)
        evaluate(world.samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        scatter(world.samples, x, self.c, one, one, self.v_G, self.v_H, d, A)
        for i in range(d):
            self.theta_last[i] = point.theta[i]
            self.omega_last[i] = point.omega[i]
        return descend_along(point, self.v_G, self.v_H, rates, d), cursor


@dataclass(frozen=True)
class STORM(gq.Algorithm):
    estimator: ClassVar[type] = STORMStep
    eta_theta: float = 0.02
    eta_omega: float = 0.01
    a: float = 0.1
    radius: float = 100.0
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Any:
    """The file of a user, imported."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_parts.py").write_text(OWN_FILE)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("own_parts")
    finally:
        sys.path.remove(str(folder))


@pytest.fixture
def own_problem(own, garnet_problem) -> gq.Problem:
    return gq.Problem(garnet_problem.mdp, garnet_problem.features, target=own.EpsilonSoftmax(2.0, 0.3))


N, RUNS, SEED, ETA = 60, 3, 2, (0.2, 0.1)
THETA0 = np.array([0.5, -0.5, 1.0, 0.0])


def storm(problem: gq.Problem, x: gq.Trajectory, a: float) -> np.ndarray:
    """All iterates (n + 1, 2, d), in NumPy."""
    z = np.array([THETA0, np.zeros(4)])
    out = [z]
    v = last = None
    for sample in zip(*x, strict=True):
        here = np.array(pseudo_gradients(problem, *z, *sample))
        v = here if v is None else here + (1 - a) * (v - np.array(pseudo_gradients(problem, *last, *sample)))
        last, z = z, z - np.array(ETA)[:, None] * v
        out.append(z)
    return np.array(out)


def test_an_operator_of_ones_own_runs_compiled(own_problem):
    result = gq.run(own_problem, gq.GreedyGQ(*ETA), N, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=1)
    for run in range(RUNS):
        x = gq.trajectory(own_problem, N, SEED, run)
        expected = greedy_gq(own_problem, x, THETA0, np.zeros(4), lambda t: ETA)
        assert_close(result.theta[run], expected[:, 0], 1e-12)
        assert_close(result.omega[run], expected[:, 1], 1e-12)


@pytest.mark.parametrize("a", [0.1, 0.6])
def test_an_estimator_of_ones_own_is_its_recursion(own, garnet_problem, a):
    result = gq.run(garnet_problem, own.STORM(*ETA, a), N, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=1)
    for run in range(RUNS):
        expected = storm(garnet_problem, gq.trajectory(garnet_problem, N, SEED, run), a)
        assert_close(result.theta[run], expected[:, 0], 1e-11)
        assert_close(result.omega[run], expected[:, 1], 1e-11)


def test_storm_that_forgets_at_once_is_greedy_gq(own, garnet_problem):
    result = gq.run(garnet_problem, own.STORM(*ETA, a=1.0), N, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=1)
    plain = gq.run(garnet_problem, gq.GreedyGQ(*ETA), N, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=1)
    assert_close(result.theta, plain.theta, 1e-12)
    assert_close(result.omega, plain.omega, 1e-12)


def test_what_an_estimator_of_ones_own_keeps_is_saved_and_resumed_bit_for_bit(own, garnet_problem, tmp_path):
    algorithm = own.STORM(*ETA)
    whole = gq.run(garnet_problem, algorithm, N, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=7)
    part = gq.run(garnet_problem, algorithm, 13, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=7)
    for n in (14, 35, N):
        assert set(part.memory) == {"theta", "v_G", "v_H", "theta_last", "omega_last"}
        part.save(tmp_path / "part.npz")
        part = gq.run(garnet_problem, algorithm, n, resume=gq.RunResult.load(tmp_path / "part.npz"))
    for name in ("theta", "omega", "output", "output_update"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)), name
    for name, kept in whole.memory.items():
        assert np.array_equal(part.memory[name], kept), name


@pytest.mark.long
def test_own_and_built_in_parts_share_a_grid(own, own_problem, garnet_problem):
    problems = [garnet_problem, own_problem]
    algorithms = [gq.GreedyGQ(*ETA), own.STORM(*ETA), own.STORM(*ETA, a=0.5)]
    grid = gq.grid(problems, algorithms, N, n_runs=RUNS, seeds=SEED, record_every=20)
    assert len(grid) == 6
    for label, result in grid:
        [algorithm] = [a for a in algorithms if a == result.algorithm]
        alone = gq.run(problems[label["problem"]], algorithm, N, n_runs=RUNS, seed=SEED, record_every=20)
        assert np.array_equal(result.theta, alone.theta)
        assert np.array_equal(result.omega, alone.omega)
    assert len({result.theta.tobytes() for result in grid.results}) == 6


def test_a_subclass_without_a_word_more_is_the_algorithm_under_another_name(garnet_problem, tmp_path):
    kind = type("PlainAgain", (gq.GreedyGQ,), {})
    result = gq.run(garnet_problem, kind(0.1), 100, n_runs=2)
    assert np.array_equal(result.theta, gq.run(garnet_problem, gq.GreedyGQ(0.1), 100, n_runs=2).theta)
    result.save(tmp_path / "r.npz")
    assert type(gq.RunResult.load(tmp_path / "r.npz").algorithm) is kind


def test_a_reward_cannot_be_watched_where_the_operator_cannot_act(own_problem):
    message = "watch: 'reward' needs a compiled policy, and EpsilonSoftmaxRule has no method act(self, row, q, p, A)"
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        gq.run(own_problem, gq.GreedyGQ(), 10, n_runs=1, watch=gq.Watch("reward"))


class WalkStep(NamedTuple):
    pace: float

    def step(self, world, point, cursor, u, rates, d, A):
        _, cursor = draw(world.stream, world.run, cursor, u)
        for i in range(d):
            point.theta[i] += self.pace
        return True, cursor


@dataclass(frozen=True)
class Walk(gq.Algorithm):
    """No arrays of its own, one parameter, and a θ that goes straight on."""

    estimator: ClassVar[type] = WalkStep
    eta_theta: float = 1.0
    pace: float = 0.5


@pytest.mark.long
def test_an_estimator_needs_no_arrays_of_its_own(garnet_problem):
    result = gq.run(garnet_problem, Walk(pace=0.25), N, n_runs=RUNS, seed=SEED, record_every=20)
    assert np.array_equal(result.theta, np.broadcast_to(0.25 * result.updates[:, None], result.theta.shape))
    assert np.array_equal(result.state, gq.run(garnet_problem, gq.GreedyGQ(), N, n_runs=RUNS, seed=SEED).state)
    half = gq.run(garnet_problem, Walk(pace=0.25), 30, n_runs=RUNS, seed=SEED, record_every=20)
    assert np.array_equal(gq.run(garnet_problem, Walk(pace=0.25), N, resume=half).theta, result.theta)


# --- What is missing is said in one line ----------------------------------------------------------------------------


def softmax_with(**methods) -> type:
    return type("Odd", (gq.Softmax,), methods)


class NoImprove(NamedTuple):
    sigma: float


class ShortImprove(NamedTuple):
    sigma: float

    def improve(self, q, w):
        return q[0]


class ShortAct(NamedTuple):
    sigma: float

    def improve(self, row, q, w, A):
        return q[0]

    def act(self, q):
        pass


class NoStep(NamedTuple):
    q: Any


class ShortStep(NamedTuple):
    q: Any

    def step(self, world, point):
        return True, 0


class ShortBegin(Plain):
    def begin(self, world):
        return 0


class Undeclared(NamedTuple):
    q: Any

    @staticmethod
    def memory(n):
        return {"w": near(n.A)}

    def step(self, world, point, cursor, u, rates, d, A):
        return True, cursor


def algorithm_with(estimator: Any) -> type[gq.Algorithm]:
    return type("OddAlgorithm", (gq.GreedyGQ,), {"estimator": estimator})


class WithoutCompiledForm(gq.Operator):
    def policy(self, q):
        return np.full(q.shape, 1 / q.shape[-1])

    weights = policy


class WithoutEstimator(gq.Algorithm):
    eta_theta = 0.1


MISSING = {
    "operator without a compiled form": (
        lambda problem: gq.Problem(problem.mdp, problem.features, target=WithoutCompiledForm()),
        "an operator without a compiled form: give its class a NamedTuple with a method improve(self, row, q, w, A)",
    ),
    "compiled form that is none": (
        lambda _: softmax_with(compiled=dict),
        "operator Odd: its compiled form is <class 'dict'>, expected a NamedTuple class",
    ),
    "no improve": (
        lambda _: softmax_with(compiled=NoImprove),
        "operator Odd: its compiled form NoImprove has no method improve(self, row, q, w, A)",
    ),
    "improve with other parameters": (
        lambda _: softmax_with(compiled=ShortImprove),
        "operator Odd: ShortImprove.improve takes (self, q, w), expected improve(self, row, q, w, A)",
    ),
    "act with other parameters": (
        lambda _: softmax_with(compiled=ShortAct),
        "operator Odd: ShortAct.act takes (self, q), expected act(self, row, q, p, A)",
    ),
    "weights of its own, compiled form of its base": (
        lambda _: softmax_with(weights=lambda self, q: q),
        "operator Odd: it overrides what its base class does, and needs a compiled form too",
    ),
    "algorithm without an estimator": (
        lambda problem: gq.run(problem, WithoutEstimator(), 10, n_runs=1),
        "algorithm is <",
    ),
    "no step": (
        lambda _: algorithm_with(NoStep),
        "algorithm OddAlgorithm: its compiled form NoStep has no method step(self, world, point, cursor, u, rates, d, A)",
    ),
    "step with other parameters": (
        lambda _: algorithm_with(ShortStep),
        "algorithm OddAlgorithm: ShortStep.step takes (self, world, point), expected step(self, world, point, cursor, u",
    ),
    "begin with other parameters": (
        lambda _: algorithm_with(ShortBegin),
        "algorithm OddAlgorithm: ShortBegin.begin takes (self, world), expected begin(self, world, point, cursor, u, d, A)",
    ),
    "an array that is not declared": (
        lambda problem: gq.run(problem, algorithm_with(Undeclared)(), 10, n_runs=1),
        "Undeclared: q is not in memory()",
    ),
    "the name of a built-in algorithm": (
        lambda _: type("GreedyGQ", (gq.GreedyGQ,), {}),
        "GreedyGQ is the name of an algorithm of gqlab: choose another",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING)
def test_message(case, garnet_problem):
    call, message = case
    with refused(message):
        call(garnet_problem)


# --- The cache on disk ----------------------------------------------------------------------------------------------

HALF_FILE = '''
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import gqlab as gq
import scales
from scales import SHIFT


class ScaledRule(NamedTuple):
    def improve(self, row, q, w, A):
        for a in range(A):
            w[a] = 0.0
        return 1.0 * scales.FACTOR + SHIFT


class Scaled(gq.Operator):
    """V̄ is a constant: what matters is which."""

    compiled: ClassVar[type] = ScaledRule

    def policy(self, q):
        return np.full(q.shape, 1 / q.shape[-1])

    weights = policy
'''

#: G = −δφ with δ = γ V̄, so that V̄ can be read off; then how often the code came from disk.
READ_VALUE = """
    import gqlab as gq
    from gqlab.lab import check as steps
    def value(operator):
        mdp = gq.FiniteMDP([[[1.0]]], [[0.0]], discount=0.5)
        G, _ = gq.check.pseudo_gradient(gq.Problem(mdp, [[[1.0]]], target=operator), [0.0], [0.0], (0, 0, 0))
        return float(-2 * G[0])
    def hits():
        return sum(steps._pseudo_gradient.stats.cache_hits.values())
"""


def python(code: str, folder: Path) -> list[str]:
    env = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(READ_VALUE) + textwrap.dedent(code)],
        capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.long
def test_code_from_disk_is_never_that_of_an_older_file(tmp_path):
    """Neither after an edit of the part, nor of a constant that it reads from another file, in two ways."""
    use = "import halves; print(value(halves.Scaled()), hits())"
    own_file, constants = tmp_path / "halves.py", tmp_path / "scales.py"
    own_file.write_text(HALF_FILE)
    constants.write_text("FACTOR = 2.0\nSHIFT = 0.25\n")
    assert python(use, tmp_path) == ["2.25", "0"]
    assert python(use, tmp_path) == ["2.25", "1"]
    own_file.write_text(HALF_FILE.replace("1.0 * scales", "3.0 * scales"))
    assert python(use, tmp_path) == ["6.25", "0"]
    constants.write_text("FACTOR = 4.0\nSHIFT = 0.25\n")
    assert python(use, tmp_path) == ["12.25", "0"]
    constants.write_text("FACTOR = 4.0\nSHIFT = 0.5\n")
    assert python(use, tmp_path) == ["12.5", "0"]


def test_a_part_that_is_defined_again_under_its_name_is_the_new_one():
    """As a cell of a notebook is run again after an edit; and under the name of a built-in part, with its fields."""

    def operator(value: float) -> gq.Operator:
        class SoftmaxRule(NamedTuple):
            sigma: float

            def improve(self, row, q, w, A):
                return value

        kind = type("Again", (gq.Softmax,), {"compiled": SoftmaxRule})
        return kind()

    mdp = gq.FiniteMDP([[[1.0]]], [[0.0]], discount=0.5)
    for target, value in ((gq.Softmax(), 1.0), (operator(3.0), 3.0), (operator(5.0), 5.0)):
        problem = gq.Problem(mdp, [[[1.0]]], target=target)
        G, _ = gq.check.pseudo_gradient(problem, [1.0], [0.0], (0, 0, 0))  # δ = V̄/2 − 1
        assert 2 * (1 - G[0]) == value


@pytest.mark.long
def test_parts_that_a_function_makes_are_told_apart_by_what_they_enclose(tmp_path):
    (tmp_path / "scales.py").write_text("FACTOR = 1.0\nSHIFT = 0.0\n")
    (tmp_path / "halves.py").write_text(HALF_FILE)
    (tmp_path / "made.py").write_text(
        textwrap.dedent("""
        from typing import ClassVar, NamedTuple
        import halves

        def operator(value):
            class Rule(NamedTuple):
                def improve(self, row, q, w, A):
                    return value

            class Made(halves.Scaled):
                compiled: ClassVar[type] = Rule

            return Made()
        """)
    )
    use = "import made; print(value(made.operator(3.0)), value(made.operator(5.0)), hits())"
    assert python(use, tmp_path) == ["3.0", "5.0", "0"]
    assert python(use, tmp_path) == ["3.0", "5.0", "2"]


@pytest.mark.long
def test_a_part_from_the_prompt_runs_and_leaves_nothing_on_disk(tmp_path):
    (tmp_path / "scales.py").write_text("FACTOR = 2.0\nSHIFT = 0.0\n")
    kept = tmp_path / "cache"
    assert python(textwrap.dedent(HALF_FILE) + "\nprint(value(Scaled()), hits())", tmp_path) == ["2.0", "0"]
    assert not list(kept.rglob("*_pseudo_gradient*"))
    assert python("print(value(gq.Greedy()))", tmp_path) == ["-0.0"]
    assert list(kept.rglob("*_pseudo_gradient*"))  # where a built-in one does
