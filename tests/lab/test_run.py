"""``run`` is Algorithm 1 on one Markov trajectory and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, assert_close, problem_of, vector_name
from gqlab.engine import cpu

SEED, RUNS = 7, 3
#: A ball that is hit, and one that is not.
RADII = (0.3, 50.0)


def start(problem: gq.Problem, radius: float) -> tuple[np.ndarray, np.ndarray]:
    theta, omega = np.random.default_rng(1).standard_normal((2, RUNS, problem.dim))
    scale = 0.9 * min(radius, 2.0)
    return tuple(scale * x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (theta, omega))


@pytest.mark.parametrize("radius", RADII)
def test_greedy_gq_equals_its_steps_on_the_exported_trajectory(vector, radius):
    problem = problem_of(vector)
    algorithm = gq.GreedyGQ(0.2, 0.1, radius)
    theta0, omega0 = start(problem, radius)
    result = gq.run(problem, algorithm, 120, n_runs=RUNS, seed=SEED, theta0=theta0, omega0=omega0, record_every=50)
    hit = False
    for k in range(RUNS):
        x = gq.trajectory(problem, 120, SEED, k)
        for j, u in enumerate(result.updates):
            part = gq.Trajectory(*(column[:u] for column in x))
            expected = (
                gq.check.greedy_gq_steps(problem, algorithm, theta0[k], omega0[k], part)
                if u
                else (theta0[k], omega0[k])
            )
            assert_close(result.theta[k, j], expected[0], 1e-12)
            assert_close(result.omega[k, j], expected[1], 1e-12)
        hit |= np.isclose(np.linalg.norm(result.theta[k], axis=-1), radius).any()
    assert hit == (radius == RADII[0])


@pytest.mark.parametrize("radius", RADII)
def test_vr_greedy_gq_equals_its_epochs_on_the_exported_trajectory_and_indices(vector, radius):
    problem = problem_of(vector)
    M, epochs = 25, 4
    algorithm = gq.VRGreedyGQ(0.2, 0.1, M, radius)
    theta0, omega0 = start(problem, radius)
    result = gq.run(
        problem, algorithm, M * epochs + 3, n_runs=RUNS, seed=SEED, theta0=theta0, omega0=omega0, record_every=M
    )
    assert result.updates[-1] == M * epochs
    for k in range(RUNS):
        x = np.stack(gq.trajectory(problem, M * epochs, SEED, k), axis=1).reshape(epochs, M, 3)
        indices = gq.check.batch_indices(algorithm, M * epochs + 3, SEED, k)
        theta, omega = theta0[k], omega0[k]
        for m in range(epochs):
            theta, omega = gq.check.svrg_epoch(problem, algorithm, theta, omega, x[m], indices[m])
            assert_close(result.theta[k, m + 1], theta, 1e-12)
            assert_close(result.omega[k, m + 1], omega, 1e-12)
    every = gq.run(problem, algorithm, M * epochs, n_runs=RUNS, seed=SEED, theta0=theta0, omega0=omega0, record_every=1)
    for iterate in (every.theta, every.omega):
        assert np.isclose(np.linalg.norm(iterate, axis=-1), radius).any() == (radius == RADII[0])


def test_batch_size_one_is_greedy_gq(vector):
    problem = problem_of(vector)
    theta0, omega0 = start(problem, 5.0)
    plain = gq.run(
        problem, gq.GreedyGQ(0.2, 0.1, 5.0), 200, n_runs=RUNS, seed=SEED, theta0=theta0, omega0=omega0, record_every=10
    )
    vr = gq.run(
        problem,
        gq.VRGreedyGQ(0.2, 0.1, 1, 5.0),
        200,
        n_runs=RUNS,
        seed=SEED,
        theta0=theta0,
        omega0=omega0,
        record_every=10,
    )
    assert_close(vr.theta, plain.theta, 1e-12)
    assert_close(vr.omega, plain.omega, 1e-12)
    assert_close(vr.output, plain.output, 1e-12)


@pytest.mark.parametrize("vector", [VECTORS[0], VECTORS[6]], ids=vector_name)
def test_samples_chain_across_batches_and_restart_after_a_terminal_state(vector):
    problem = problem_of(vector)
    mdp = problem.mdp
    x = gq.trajectory(problem, 5000, seed=3, run=2)
    ended = mdp.terminal[x.s_next[:-1]]
    assert (x.s[1:][~ended] == x.s_next[:-1][~ended]).all()
    assert not mdp.terminal[x.s].any()
    assert (mdp.transition[x.s, x.a, x.s_next] > 0).all()
    if mdp.terminal.any():
        assert ended.sum() > 100
        assert (mdp.initial[x.s[1:][ended]] > 0).all()
    shorter = gq.trajectory(problem, 100, seed=3, run=2)
    assert all((a == b[:100]).all() for a, b in zip(shorter, x, strict=True))


def test_large_problems_take_the_same_steps():
    """Above the unrolled sizes the compiled loops are the general ones: the same numbers."""
    mdp = gq.garnet(40, 7, 4, seed=1)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=33, kind="gaussian"))
    algorithm = gq.VRGreedyGQ(0.05, 0.02, 60, radius=2.0)
    result = gq.run(problem, algorithm, 180, n_runs=1, seed=SEED)
    x = np.stack(gq.trajectory(problem, 180, SEED), axis=1).reshape(3, 60, 3)
    theta, omega = np.zeros((2, problem.dim))
    for m, indices in enumerate(gq.check.batch_indices(algorithm, 180, SEED)):
        theta, omega = gq.check.svrg_epoch(problem, algorithm, theta, omega, x[m], indices)
    assert_close(result.theta[0, -1], theta, 1e-12)
    assert_close(result.omega[0, -1], omega, 1e-12)


@pytest.mark.parametrize("d", [5, pytest.param(1, marks=pytest.mark.long)])
def test_code_for_a_size_takes_the_steps_of_the_loops(d, request):
    mdp = gq.garnet(6, 2, 3, seed=1)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=d))
    loops = gq.run(problem, gq.GreedyGQ(0.2, 0.1, radius=2.0), 500, n_runs=RUNS, seed=SEED)
    request.getfixturevalue("every_size")
    for_size = gq.run(problem, gq.GreedyGQ(0.2, 0.1, radius=2.0), 500, n_runs=RUNS, seed=SEED)
    assert_close(for_size.theta, loops.theta, 1e-13)
    assert_close(for_size.omega, loops.omega, 1e-13)


def test_counts(garnet_problem):
    result = gq.run(garnet_problem, gq.GreedyGQ(), 2500, n_runs=2)
    assert result.updates.tolist() == [0, 1000, 2000, 2500]
    assert result.samples.tolist() == result.gradient_evaluations.tolist() == result.updates.tolist()
    result = gq.run(garnet_problem, gq.VRGreedyGQ(batch_size=400), 2500, n_runs=2, record_every=300)
    assert result.updates.tolist() == [0, 300, 600, 900, 1200, 1500, 1800, 2100, 2400]
    assert result.samples.tolist() == [0, 400, 800, 1200, 1200, 1600, 2000, 2400, 2400]
    assert result.gradient_evaluations.tolist() == [0, 1000, 2000, 3000, 3600, 4600, 5600, 6600, 7200]
    assert result.theta.shape == result.omega.shape == (2, 9, 4)


def test_the_output_is_the_iterate_that_it_says(garnet_problem):
    for algorithm in (gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=20)):
        result = gq.run(garnet_problem, algorithm, 100, n_runs=30, record_every=1)
        assert (result.output_update < 100).all()
        assert (result.output_update >= 0).all()
        assert (result.output == result.theta[np.arange(30), result.output_update]).all()


ALGORITHMS = [gq.GreedyGQ(0.1, 0.05, 3.0), gq.VRGreedyGQ(0.1, 0.05, 40, 3.0)]
FIELDS = ("theta", "omega", "samples", "updates", "gradient_evaluations", "output", "output_update", "diverged_at",
          "state", "next_output")  # fmt: skip


def assert_same(a: gq.RunResult, b: gq.RunResult) -> None:
    for name in FIELDS:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
@pytest.mark.parametrize("stops", [[200], [40, 130, 131], [90, 399]], ids=repr)
def test_resuming_is_the_same_as_not_having_stopped(algorithm, stops):
    problem = problem_of(VECTORS[6])
    whole = gq.run(problem, algorithm, 400, n_runs=5, seed=2, theta0=np.full(5, 0.5), record_every=30)
    part = gq.run(problem, algorithm, stops[0], n_runs=5, seed=2, theta0=np.full(5, 0.5), record_every=30)
    for n in [*stops[1:], 400]:
        part = gq.run(problem, algorithm, n, resume=part)
    assert_same(part, whole)
    assert_same(gq.run(problem, algorithm, 400, resume=whole), whole)


def test_resuming_from_a_file_is_the_same(tmp_path, garnet_problem):
    whole = gq.run(garnet_problem, ALGORITHMS[1], 400, n_runs=5)
    gq.run(garnet_problem, ALGORITHMS[1], 200, n_runs=5).save(tmp_path / "half.npz")
    assert_same(gq.run(garnet_problem, ALGORITHMS[1], 400, resume=gq.RunResult.load(tmp_path / "half.npz")), whole)


def alone_output(problem, algorithm):
    return gq.run(problem, algorithm, 500, n_runs=3, record_every=100).output_update


@pytest.mark.parametrize("vr", [False, True])
def test_a_diverged_run_is_frozen_and_the_others_go_on(garnet_problem, vr):
    algorithm = gq.VRGreedyGQ(0.02, 0.01, 50) if vr else gq.GreedyGQ(0.02, 0.01)
    theta0 = np.zeros((3, 4))
    theta0[1] = 1e160  # its squared norm is no number
    result = gq.run(garnet_problem, algorithm, 500, n_runs=3, theta0=theta0, record_every=100)
    assert result.diverged.tolist() == [False, True, False]
    assert result.diverged_at.tolist() == [-1, 0, -1]
    assert (result.theta[1] == 1e160).all()
    assert (result.output[1] == 1e160).all()
    assert result.output_update[1] == alone_output(garnet_problem, algorithm)[1]  # drawn from all iterates all the same
    alone = gq.run(garnet_problem, algorithm, 500, n_runs=3, record_every=100)
    assert np.array_equal(result.theta[[0, 2]], alone.theta[[0, 2]])
    longer = gq.run(garnet_problem, algorithm, 700, resume=result)
    assert_same(longer, gq.run(garnet_problem, algorithm, 700, n_runs=3, theta0=theta0, record_every=100))


@pytest.mark.parametrize("n_samples", [1, 2, 3])
def test_the_output_of_a_frozen_run_is_one_of_the_iterates_before_the_last_update(garnet_problem, n_samples):
    """Of 500 runs that diverge at once some would draw the iterate after the last update, if it were among them."""
    theta0 = np.full(4, 1e160)
    result = gq.run(garnet_problem, gq.GreedyGQ(), n_samples, n_runs=500, theta0=theta0)
    assert result.diverged.all()
    assert set(result.output_update) == set(range(n_samples))
    assert (result.next_output >= n_samples).all()
    longer = gq.run(garnet_problem, gq.GreedyGQ(), 5, resume=result)
    assert_same(longer, gq.run(garnet_problem, gq.GreedyGQ(), 5, n_runs=500, theta0=theta0))


@pytest.mark.parametrize("algorithm", [gq.GreedyGQ(30.0, 30.0), gq.VRGreedyGQ(30.0, 30.0, 50)], ids=repr)
def test_steps_that_are_too_long_diverge_to_the_last_finite_iterate(garnet_problem, algorithm):
    result = gq.run(garnet_problem, algorithm, 5000, n_runs=4, theta0=np.ones(4), record_every=1)
    assert result.diverged.all()
    assert np.isfinite(result.theta).all()
    for k, u in enumerate(result.diverged_at):
        assert 0 < u < 5000
        assert (result.theta[k, u:] == result.theta[k, u]).all()
        assert (result.theta[k, u] != result.theta[k, u - 1]).any()


def test_a_second_call_compiles_nothing(garnet_problem):
    for algorithm in ALGORITHMS:
        gq.run(garnet_problem, algorithm, 100, n_runs=2)
    before = list(cpu.advance_block.signatures)
    for algorithm in (gq.GreedyGQ(0.5, 0.2), gq.VRGreedyGQ(0.3, 0.2, 77, 10.0)):
        for operator in (
            gq.Softmax(2.0),
            gq.Mellowmax(3.0),
            gq.Greedy(),
            gq.EpsilonGreedy(),
            gq.FixedPolicy(np.full((5, 3), 1 / 3)),
        ):
            problem = gq.Problem(garnet_problem.mdp, garnet_problem.features, target=operator)
            gq.run(problem, algorithm, 500, n_runs=3, record_every=7, threads=2)
    assert cpu.advance_block.signatures == before


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=300, env={**os.environ, **env},
    )  # fmt: skip


PROBLEM = """
    import numpy as np, gqlab as gq
    mdp = gq.garnet(seed=0)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
"""


def test_a_new_process_takes_the_compiled_code_from_disk(garnet_problem):
    gq.run(garnet_problem, gq.GreedyGQ(), 100, n_runs=2)
    done = python(PROBLEM + """
    from gqlab.engine import cpu
    gq.run(problem, gq.GreedyGQ(), 100, n_runs=2)
    print(sum(cpu.advance_block.stats.cache_hits.values()), sum(cpu.advance_block.stats.cache_misses.values()))
    """)  # fmt: skip
    assert done.stdout.split() == ["1", "0"], done.stderr


def test_only_numpy_scipy_and_numba_are_needed():
    done = python("""
    import sys
    for name in ("tqdm", "gymnasium", "matplotlib", "tyro", "hypothesis", "pandas"):
        sys.modules[name] = None  # importing it fails
    """ + PROBLEM + """
    print(gq.run(problem, gq.VRGreedyGQ(batch_size=100), 1000, n_runs=2, progress=True).theta.shape)
    """)  # fmt: skip
    assert done.stdout.strip() == "(2, 2, 4)", done.stderr


def test_the_rules_in_pure_python_give_the_same_run():
    """The very same source without the compiler: the compiled run is that of the text on the page."""
    code = (
        PROBLEM
        + """
    import warnings
    warnings.filterwarnings("ignore", "overflow")  # random words are products modulo 2**64
    for algorithm in (gq.GreedyGQ(0.2, 0.1, 1.0), gq.VRGreedyGQ(0.2, 0.1, 7, 1.0)):
        result = gq.run(problem, algorithm, 50, n_runs=2, theta0=np.full(4, 0.4), record_every=10)
        print(*result.theta.ravel(), *result.omega.ravel(), *result.output_update)
    """
    )
    compiled, interpreted = python(code), python(code, NUMBA_DISABLE_JIT="1")
    a, b = (np.array(done.stdout.split(), dtype=float) for done in (compiled, interpreted))
    assert len(a) == 2 * (2 * 2 * 6 * 4 + 2), compiled.stderr
    assert_close(b, a, 1e-12)


@pytest.mark.parametrize(
    ("batch_size", "delay"),
    [
        (3000, 0.1),
        (2 * 10**8, 1.0),
        *(pytest.param(3000, delay, marks=pytest.mark.long) for delay in (0.0, 0.02, 0.05, 1.0)),
    ],
)
def test_ctrl_c_stops_a_run_that_would_take_hours(garnet_problem, batch_size, delay):
    """In the middle of updates, in the middle of a batch, and at the very beginning."""
    gq.run(garnet_problem, gq.VRGreedyGQ(), 3000, n_runs=2)
    code = (
        PROBLEM
        + f"""
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
    try:
        print("begin", flush=True)
        gq.run(problem, gq.VRGreedyGQ(batch_size={batch_size}), 10**12, n_runs=4, record_every=10**10)
    except KeyboardInterrupt:
        print("interrupted")
    """
    )
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begin\n"
        threading.Event().wait(delay)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (out, process.returncode) == ("interrupted\n", 0)


def test_a_handler_of_the_users_own_is_left_alone(garnet_problem):
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        gq.run(garnet_problem, gq.GreedyGQ(), 1000, n_runs=2)
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [True]


def test_a_projected_iterate_can_be_the_next_first_point(garnet_problem):
    for dtype in ("float64", "float32"):
        result = gq.run(garnet_problem, gq.GreedyGQ(0.5, 0.5, 0.3), 500, n_runs=40, dtype=dtype)
        last = result.theta[:, -1]
        norm = np.linalg.norm(last.astype(float), axis=-1)
        assert (norm > 0.3).any()  # the projection rounds, and not always down
        assert (norm <= 0.3 * (1 + 1e-6)).all()
        after = gq.run(garnet_problem, gq.GreedyGQ(0.5, 0.5, 0.3), 10, n_runs=40, theta0=last, dtype=dtype)
        assert np.array_equal(after.theta[:, 0], last)
        assert not after.diverged.any()


@pytest.mark.parametrize("vr", [False, True])
def test_the_smallest_problems_and_runs(vr):
    """One state, one action, one feature; one sample; records farther apart than the run is long."""
    problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], 0.5), [[[1.0]]])
    algorithm = gq.VRGreedyGQ(0.5, 0.25, 1) if vr else gq.GreedyGQ(0.5, 0.25)
    result = gq.run(problem, algorithm, 1, n_runs=1, record_every=10**9)
    assert result.updates.tolist() == [0, 1]
    assert result.theta.ravel().tolist() == [0.0, 1.0]  # δ = 2, θ = 0.5·2
    assert result.omega.ravel().tolist() == [0.0, 0.5]  # ω = 0.25·2


def test_the_progress_bar_counts_updates(garnet_problem, capsys, monkeypatch):
    import tqdm

    seen = []
    monkeypatch.setattr(tqdm.tqdm, "update", lambda self, n=1: (seen.append(n), setattr(self, "n", self.n + n)))
    gq.run(garnet_problem, gq.GreedyGQ(), 1000, n_runs=3, progress=True)
    assert sum(seen) == 3000
    seen.clear()
    gq.run(garnet_problem, gq.GreedyGQ(), 1000, n_runs=3, progress=False)
    gq.run(garnet_problem, gq.GreedyGQ(), 1000, n_runs=3)  # not a terminal: no bar
    assert seen == []
