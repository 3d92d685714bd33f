"""docs/extending.md, executed: the page's own files run compiled and do what the page says."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)

#: The blocks that begin with the name of a file.
FILES = {block.split("\n", 1)[0].removeprefix("# "): block for block in BLOCKS if re.match(r"# \w+\.py\n", block)}

#: A part of one's own is to be short: lines that are not blank.
MOST_LINES = {"epsilon_softmax.py": 30, "storm.py": 50}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the page's files, on the path."""
    where = tmp_path_factory.mktemp("extending")
    for name, text in FILES.items():
        (where / name).write_text(text)
    sys.path.insert(0, str(where))
    yield where
    sys.path.remove(str(where))
    for name in FILES:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.fixture(scope="module")
def operator(folder):
    return importlib.import_module("epsilon_softmax").EpsilonSoftmax(sigma=2.0, epsilon=0.2)


@pytest.fixture(scope="module")
def storm(folder):
    return importlib.import_module("storm").Storm


@pytest.fixture(scope="module")
def mdp():
    return gq.garnet(seed=3)


def problem_with(mdp, target):
    return gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=3), target=target)


def test_the_page_shows_an_operator_and_an_estimator_whole_and_short():
    assert FILES.keys() == MOST_LINES.keys()
    for name, text in FILES.items():
        assert len([line for line in text.splitlines() if line.strip()]) <= MOST_LINES[name], name


@pytest.mark.long
def test_the_other_blocks_of_the_page_run_when_pasted(folder):
    code = "\n".join(block for block in BLOCKS if block not in FILES.values())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


def epsilon_softmax(q, sigma, epsilon):
    """V̄ and w of one state, by the page's formulas."""
    p = np.exp(sigma * (q - q.max()))
    p /= p.sum()
    V = (1 - epsilon) * p @ q + epsilon * q.mean()
    return V, (1 - epsilon) * p * (1 + sigma * (q - p @ q)) + epsilon / len(q)


def pseudo_gradients(problem, improve, z, x):
    """F_x = (G_x, H_x), (2, d), by their definition."""
    (theta, omega), (s, a, s_next) = z, x
    phi, gamma = problem.features, problem.mdp.discount[x]
    V, w = improve(phi[s_next] @ theta)
    delta = problem.mdp.reward[x] + gamma * V - phi[s, a] @ theta
    G = -delta * phi[s, a] + gamma * (omega @ phi[s, a]) * (w @ phi[s_next])
    return np.array([G, (phi[s, a] @ omega - delta) * phi[s, a]])


def run_in_numpy(problem, improve, algorithm, z, run, n, a=1.0):
    """z after n updates of STORM; a = 1 is Greedy-GQ."""
    eta = np.array([[algorithm.eta_theta], [algorithm.eta_omega]])
    z_before, v = None, None
    for x in zip(*gq.trajectory(problem, n, run=run), strict=True):
        F = pseudo_gradients(problem, improve, z, x)
        v = F if v is None else F + (1 - a) * (v - pseudo_gradients(problem, improve, z_before, x))
        z_before, z = z, z - eta * v
        norm = np.linalg.norm(z, axis=1, keepdims=True)
        z = np.where(norm > algorithm.radius, z * algorithm.radius / norm, z)
    return z


def test_the_operator_runs_compiled_as_its_formulas_say(mdp, operator):
    problem = problem_with(mdp, operator)
    algorithm = gq.GreedyGQ(0.1, 0.2, radius=3.0)
    result = gq.run(problem, algorithm, n_samples=400, n_runs=3, theta0=np.ones(4))
    for k in range(3):
        z = run_in_numpy(
            problem, lambda q: epsilon_softmax(q, 2.0, 0.2), algorithm, np.array([np.ones(4), np.zeros(4)]), k, 400
        )
        np.testing.assert_allclose([result.theta[k, -1], result.omega[k, -1]], z, rtol=1e-9)


@pytest.mark.long
def test_the_operator_is_not_taken_for_another_in_a_grid(mdp, operator):
    targets = [gq.Softmax(2.0), operator, gq.EpsilonGreedy(0.2), type(operator)(1.0, 0.5)]
    problems = [problem_with(mdp, target) for target in targets]
    algorithms = [gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=50)]
    grid = gq.grid(problems, algorithms, n_samples=500, n_runs=2, theta0=np.ones(4))
    for label, result in grid:
        [algorithm] = [a for a in algorithms if type(a).__name__ == label["algorithm"]]
        alone = gq.run(problems[label["problem"]], algorithm, n_samples=500, n_runs=2, theta0=np.ones(4))
        np.testing.assert_array_equal(result.theta, alone.theta)
    ends = [result.theta[0, -1] for _, result in grid.select(algorithm="GreedyGQ")]
    assert len(np.unique(ends, axis=0)) == 4


@pytest.mark.long
def test_the_operator_is_watched_exactly_and_walks_by_its_own_policy(mdp, operator):
    problem = problem_with(mdp, operator)
    watch = [gq.Watch("gradient"), gq.Watch("reward", n_steps=1000)]
    still = gq.GreedyGQ(1e-9, 1e-9)
    theta0 = np.array([4.0, -4.0, 2.0, 0.0])
    seen = gq.run(problem, still, n_samples=200, n_runs=2, theta0=theta0, watch=watch).watched
    norm_squared = (problem.exact.gradient(theta0) ** 2).sum()
    np.testing.assert_allclose(seen["gradient"].mean[:, -1], norm_squared, rtol=1e-6)
    # 201 walks of 1,000 steps with rewards in [0, 1]: a standard error of about 0.001
    np.testing.assert_allclose(seen["reward"].mean[:, -1], problem.exact.average_reward(theta0), atol=0.006)


@pytest.mark.parametrize("a", [0.05, 1.0])
def test_storm_runs_compiled_as_its_formula_says(mdp, storm, a):
    problem = problem_with(mdp, gq.Softmax(1.0))
    algorithm = storm(eta_theta=0.05, eta_omega=0.1, a=a, radius=2.5)
    result = gq.run(problem, algorithm, n_samples=400, n_runs=3, theta0=np.ones(4))
    for k in range(3):
        z = run_in_numpy(
            problem, lambda q: epsilon_softmax(q, 1.0, 0.0), algorithm, np.array([np.ones(4), np.zeros(4)]), k, 400, a
        )
        np.testing.assert_allclose([result.theta[k, -1], result.omega[k, -1]], z, rtol=1e-9)
    assert result.gradient_evaluations.tolist() == [0, 799]


def test_storm_resumes_bit_for_bit_also_from_a_file(tmp_path, mdp, storm):
    problem, settings = problem_with(mdp, gq.Softmax(1.0)), {"n_runs": 3, "theta0": np.ones(4), "record_every": 100}
    whole = gq.run(problem, storm(a=0.1), n_samples=1000, **settings)
    gq.run(problem, storm(a=0.1), n_samples=437, **settings).save(tmp_path / "half.npz")
    half = gq.RunResult.load(tmp_path / "half.npz")
    assert half.algorithm == storm(a=0.1)
    resumed = gq.run(problem, storm(a=0.1), n_samples=1000, resume=half)
    for name in ("theta", "omega", "output", "updates"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))


@pytest.mark.long
def test_storm_in_a_grid_is_what_it_is_alone(mdp, storm):
    problems = [problem_with(mdp, gq.Softmax(1.0)), problem_with(mdp, gq.Greedy())]
    algorithms = gq.vary(storm, a=[0.05, 0.5], eta_theta=[0.01, gq.Decay(0.05, after=100)])
    grid = gq.grid(problems, algorithms, n_samples=500, n_runs=2)
    for k, (label, result) in enumerate(grid):
        alone = gq.run(problems[label["problem"]], algorithms[k % len(algorithms)], n_samples=500, n_runs=2)
        np.testing.assert_array_equal(result.theta, alone.theta)


@pytest.mark.long
def test_storm_in_single_precision_stays_near_double(mdp, storm):
    problem = problem_with(mdp, gq.Softmax(1.0))
    double, single = (
        gq.run(problem, storm(), n_samples=500, n_runs=2, theta0=np.ones(4), dtype=dtype).theta
        for dtype in ("float64", "float32")
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=2e-5)


def test_both_run_as_plain_python(folder, tmp_path, mdp, operator, storm):
    code = """
import sys
import gqlab as gq, numpy as np
from epsilon_softmax import EpsilonSoftmax
from storm import Storm
mdp = gq.garnet(seed=3)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=3), target=EpsilonSoftmax(2.0, 0.2))
np.save(sys.argv[1], gq.run(problem, Storm(), n_samples=50, n_runs=2, theta0=np.ones(4)).theta)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", "-c", code, str(tmp_path / "theta.npy")],
        cwd=folder, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    compiled = gq.run(problem_with(mdp, operator), storm(), n_samples=50, n_runs=2, theta0=np.ones(4)).theta
    np.testing.assert_allclose(np.load(tmp_path / "theta.npy"), compiled, rtol=1e-12, atol=1e-14)
