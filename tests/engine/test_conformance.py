"""What every operator and every algorithm keeps, over the registries: a new one is tested without a new test."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.algorithms import ALGORITHMS
from gqlab.engine import cpu
from gqlab.engine.layout import OWN_OPERATORS
from gqlab.lab.execute import PLACES
from gqlab.operators import OPERATORS
from gqlab.operators.switch import Switch, join_operators
from gqlab.rules.dispatch import at
from gqlab.rules.gradient import act, improve

S, A = 5, 3

# --- Operators ------------------------------------------------------------------------------------------------------

#: What operators without defaults are made from.
OPERATOR_ARGUMENTS: dict[type, dict[str, Any]] = {
    gq.FixedPolicy: {"table": np.random.default_rng(0).dirichlet(np.ones(A), size=S)}
}


def operator_of(kind: type[gq.Operator]) -> gq.Operator:
    try:
        return kind(**OPERATOR_ARGUMENTS.get(kind, {}))
    except TypeError as error:
        raise AssertionError(f"{kind.__name__} has no defaults: add its arguments to OPERATOR_ARGUMENTS") from error


@pytest.fixture(params=OPERATORS, ids=lambda kind: kind.__name__)
def operator(request):
    return operator_of(request.param)


@numba.njit
def improve_all(part, q, V, w, A):
    for s in range(len(q)):
        V[s] = improve(part, s * A, q[s], w[s], A)


@numba.njit
def act_all(part, q, p, A):
    for s in range(len(q)):
        act(part, s * A, q[s], p[s], A)


def compiled_forms(operator: gq.Operator) -> dict[str, Any]:
    """The operator's compiled part alone, and behind the switch of all."""
    kinds = {"alone": (operator.compiled,), "switch": OWN_OPERATORS}
    return {name: at(join_operators([operator], [S * A], k, np.float64), 0) for name, k in kinds.items()}


def improved(part: Any, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    V, w = np.full(S, np.nan), np.full((S, A), np.nan)
    improve_all(part, q, V, w, A)
    return V, w


def action_values() -> list[np.ndarray]:
    """From almost equal to far apart, where an exponential falls below the smallest number, with ties of each kind."""
    rng = np.random.default_rng(1)
    several = [scale * rng.normal(size=(S, A)) for scale in (1e-6, 1e-2, 1.0, 30.0, 1e3, 1e5)]
    tied = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [2.0, 2.0, 2.0], [-1.0, -3.0, -1.0]])
    return [*several, tied, np.zeros((S, A)), np.array([[0.0, -708.0, -709.0]] * 4 + [[0.0, -1e4, -1e300]])]


def test_every_compiled_operator_is_its_numpy_form(operator):
    for form, part in compiled_forms(operator).items():
        for q in action_values():
            V, w = improved(part, q)
            scale = max(1.0, np.abs(q).max())
            assert np.abs(V - operator.value(q)).max() <= 1e-12 * scale, form
            assert np.abs(w - operator.weights(q)).max() <= 1e-12 * scale, form


def test_every_compiled_policy_is_the_numpy_one(operator):
    for form, part in compiled_forms(operator).items():
        for q in action_values():
            p = np.full((S, A), np.nan)
            act_all(part, q, p, A)
            assert np.abs(p - operator.policy(q)).max() <= 1e-10, form


def test_ties_go_to_the_first_maximiser():
    q = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [2.0, 2.0, 2.0], [-1.0, -3.0, -1.0]])
    first = np.eye(A)[[0, 1, 0, 0, 0]]
    for part in compiled_forms(gq.Greedy()).values():
        assert np.array_equal(improved(part, q)[1], first)
    assert np.array_equal(gq.Greedy().weights(q), first)


def apart() -> np.ndarray:
    """Action values without ties nearby."""
    rng = np.random.default_rng(2)
    return np.stack([rng.permutation([-1.3, 0.2, 1.1]) + 0.1 * rng.normal(size=3) for _ in range(S)])


def test_weights_are_the_slope_of_the_value_where_it_is_smooth(operator):
    q, h = apart(), 1e-5
    for a in range(A):
        e = h * np.eye(A)[a]
        slope = (operator.value(q + e) - operator.value(q - e)) / (2 * h)
        assert np.abs(slope - operator.weights(q)[:, a]).max() < 1e-8


def test_curvature_is_the_slope_of_the_weights_where_they_are_smooth(operator):
    q, h = apart(), 1e-5
    v = np.random.default_rng(3).normal(size=(S, A))
    slope = (operator.weights(q + h * v) - operator.weights(q - h * v)) / (2 * h)
    assert np.abs(operator.curvature(q, v) - slope).max() < 1e-7 * max(1, np.abs(slope).max())
    assert np.abs(gq.Operator.curvature(operator, q, v) - slope).max() < 1e-7 * max(1, np.abs(slope).max())


def test_a_switch_that_does_not_know_its_number_gives_no_number():
    parts = compiled_forms(gq.EpsilonGreedy())["switch"].operators
    for code in (-1, len(parts), 99):
        switch = Switch(code, parts)
        V, _ = improved(switch, apart())
        assert np.isnan(V).all()
        assert np.isnan(Switch.improve(switch, 0, apart()[0], np.empty(A), A))


def test_a_run_whose_operator_is_not_known_diverges_at_once(monkeypatch, garnet_problem):
    def unknown(operators, n_rows, kinds, dtype):
        switch = join_operators(operators, n_rows, kinds, dtype)
        return switch._replace(code=switch.code + 50) if isinstance(switch, Switch) else switch

    monkeypatch.setattr("gqlab.samples.tables.join_operators", unknown)
    result = gq.run(garnet_problem, gq.GreedyGQ(), 100, n_runs=3)
    assert result.diverged_at.tolist() == [0, 0, 0]
    assert not result.theta.any()


def test_operators_of_a_kind_that_is_not_listed_cannot_be_joined():
    with pytest.raises(ValueError, match=r"the compiled code does not know the operator Softmax\(sigma=1.0\)"):
        join_operators([gq.Softmax()], [S * A], [gq.Mellowmax.compiled, gq.Greedy.compiled], np.float64)
    with pytest.raises(ValueError, match=r"the compiled code does not know the operator Softmax\(sigma=1.0\)"):
        join_operators([gq.Softmax()], [S * A], [gq.Mellowmax.compiled], np.float64)


# --- Algorithms -----------------------------------------------------------------------------------------------------

OWN_ALGORITHMS = [
    kind
    for kind in ALGORITHMS.values()
    if kind.__module__.startswith("gqlab.algorithms.") and PLACES["cpu"].takes(kind)
]

#: How far two forms of one run may be apart; a solution is known to what its tolerance leaves.
APART = {"LeastSquaresGreedyGQ": 1e-8}

#: Parameters that suit runs of some hundred samples, for the algorithms that have them.
SMALL = {"eta_theta": 0.1, "eta_omega": 0.05, "radius": 3.0, "batch_size": 20, "n_trajectories": 2, "horizon": 5,
         "radius_omega": 2.0, "first": 15, "inner_steps": 5}  # fmt: skip
OTHER = {"eta_theta": 0.3, "eta_omega": 0.2, "radius": 9.0, "batch_size": 30, "n_trajectories": 3, "horizon": 4,
         "radius_omega": 7.0, "first": 10, "inner_steps": 7, "a": 0.7, "power": 0.6, "growth": 1.4}  # fmt: skip

WATCHES = (gq.Watch("gradient"), gq.Watch("mspbe", every=3), gq.Watch("reward", n_steps=5))
SAMPLES = 400


#: Their step sizes decay by themselves, and here: constant ones would be code of its own to compile.
DECAYING = (gq.AveragedGreedyGQ, gq.SAGAGreedyGQ, gq.StreamingGreedyGQ, gq.STORMGreedyGQ, gq.SARAHGreedyGQ)


def algorithm_of(kind: type[gq.Algorithm], parameters: dict[str, Any]) -> gq.Algorithm:
    names = {field.name for field in fields(kind)}
    if kind in DECAYING:
        parameters = parameters | {name: gq.Decay(parameters[name]) for name in ("eta_theta", "eta_omega")}
    try:
        return kind(**{name: value for name, value in parameters.items() if name in names})
    except TypeError as error:
        raise AssertionError(f"{kind.__name__} has no defaults: add its parameters to SMALL and OTHER") from error


#: Those of the family are tested in test_conformance_family.py, and Sarsa with the agents.
KINDS = [kind for kind in OWN_ALGORITHMS if kind.__module__ != "gqlab.algorithms.family"]

#: A watch sees what an estimator answers, and nothing else of it: θ, with and without batches, a mean, or a policy's θ.
WATCHED = [gq.GreedyGQ, gq.VRGreedyGQ, gq.AveragedGreedyGQ, gq.PolicyGradient]

#: What compiles every algorithm once more is done for these each time, for the others by `make long`.
ALWAYS = (gq.GreedyGQ,)
WATCHED_ALWAYS = (gq.VRGreedyGQ,)


def seldom(kinds: list[Any], always: tuple[Any, ...]) -> list[Any]:
    return [kind if kind in always else pytest.param(kind, marks=pytest.mark.long) for kind in kinds]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def algorithm(request):
    return algorithm_of(request.param, SMALL)


@pytest.fixture(params=seldom(KINDS, ALWAYS), ids=lambda kind: kind.__name__)
def compiled_again(request):
    return algorithm_of(request.param, SMALL)


@pytest.fixture(params=seldom(WATCHED, WATCHED_ALWAYS), ids=lambda kind: kind.__name__)
def watched_algorithm(request):
    return algorithm_of(request.param, SMALL)


def everything(result: gq.RunResult) -> dict[str, np.ndarray]:
    plain = ("theta", "omega", "samples", "updates", "gradient_evaluations", "output", "output_update", "diverged_at",
             "state", "next_output")  # fmt: skip
    return {
        **{name: getattr(result, name) for name in plain},
        **{f"memory {name}": array for name, array in result.memory.items()},
        **{f"watched {name}": np.stack(seen) for name, seen in result.watched.items()},
    }


def assert_same(one: gq.RunResult, other: gq.RunResult) -> None:
    a, b = everything(one), everything(other)
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(a[name], b[name], equal_nan=True), name


def test_the_same_seed_is_the_same_run_and_another_one_is_not(algorithm, garnet_problem):
    one, again, other = (gq.run(garnet_problem, algorithm, SAMPLES, n_runs=3, seed=seed) for seed in (5, 5, 6))
    assert_same(one, again)
    assert (one.theta[:, -1] != other.theta[:, -1]).any(axis=-1).all()
    assert (one.theta[0, -1] != one.theta[1, -1]).any()


def assert_part_of(part: gq.RunResult, whole: gq.RunResult, tolerance: float = 0.0) -> None:
    """The first runs of ``whole``, at the updates that ``part`` recorded."""
    n_runs = len(part.theta)
    for name in ("theta", "omega"):
        expected = getattr(whole, name)[:n_runs, part.updates]
        assert np.abs(getattr(part, name) - expected).max() <= tolerance, name
    for name in ("output_update", "next_output", "state"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)[:n_runs]), name


def test_a_run_does_not_depend_on_the_others_on_threads_or_on_records(algorithm, garnet_problem):
    assert_independent(algorithm, garnet_problem, None)


def test_nor_does_one_that_is_watched(watched_algorithm, garnet_problem):
    assert_independent(watched_algorithm, garnet_problem, WATCHES)


def assert_independent(algorithm: gq.Algorithm, garnet_problem: gq.Problem, watch: Any) -> None:
    whole = gq.run(garnet_problem, algorithm, SAMPLES, n_runs=7, record_every=1, threads=1, watch=watch)
    for n_runs, threads, every in ((7, 4, 1), (3, 2, 7), (1, 1, 1000)):
        part = gq.run(
            garnet_problem, algorithm, SAMPLES, n_runs=n_runs, threads=threads, record_every=every, watch=watch
        )
        assert_part_of(part, whole)
        assert np.array_equal(part.output, whole.output[:n_runs])


def test_a_run_does_not_depend_on_what_is_watched(watched_algorithm, garnet_problem):
    """Bit for bit on what; to the last digits on whether: that is other compiled code."""
    watched = gq.run(garnet_problem, watched_algorithm, SAMPLES, n_runs=3, record_every=1, watch=WATCHES)
    assert_part_of(
        gq.run(garnet_problem, watched_algorithm, SAMPLES, n_runs=3, record_every=1, watch=WATCHES[1]), watched
    )
    assert_part_of(gq.run(garnet_problem, watched_algorithm, SAMPLES, n_runs=3, record_every=1), watched, 1e-12)


def test_resuming_from_files_at_several_stops_is_the_run_that_never_stopped(algorithm, garnet_problem, tmp_path):
    assert_resumable(algorithm, garnet_problem, tmp_path, None)


def test_resuming_a_run_that_is_watched_is_the_one_that_never_stopped(watched_algorithm, garnet_problem, tmp_path):
    assert_resumable(watched_algorithm, garnet_problem, tmp_path, WATCHES)


def assert_resumable(algorithm: gq.Algorithm, garnet_problem: gq.Problem, tmp_path: Path, watch: Any) -> None:
    whole = gq.run(
        garnet_problem, algorithm, SAMPLES, n_runs=3, seed=2, theta0=np.full(4, 0.5), record_every=17, watch=watch
    )
    part = gq.run(garnet_problem, algorithm, 60, n_runs=3, seed=2, theta0=np.full(4, 0.5), record_every=17, watch=watch)
    for n in (61, 135, 250, SAMPLES):
        part.save(tmp_path / "part.npz")
        part = gq.run(garnet_problem, algorithm, n, resume=gq.RunResult.load(tmp_path / "part.npz"))
    assert_same(part, whole)
    assert_same(gq.run(garnet_problem, algorithm, SAMPLES, resume=whole), whole)


def test_a_second_call_with_other_parameters_compiles_nothing(algorithm, garnet_problem):
    gq.run(garnet_problem, algorithm, SAMPLES, n_runs=2)
    before = list(cpu.advance_block.signatures)
    other = algorithm_of(type(algorithm), OTHER)
    problem = gq.Problem(garnet_problem.mdp, 0.5 * garnet_problem.features, target=gq.Softmax(2.0))
    gq.run(problem, other, 2 * SAMPLES, n_runs=5, seed=9, theta0=np.ones(4), record_every=3, threads=2)
    assert cpu.advance_block.signatures == before


def test_single_precision_stays_close(compiled_again, garnet_problem):
    single, double = (
        gq.run(garnet_problem, compiled_again, SAMPLES, n_runs=2, dtype=t) for t in ("float32", "float64")
    )
    assert single.theta.dtype == np.float32
    assert 0 < np.abs(single.theta - double.theta).max() < 1e-4


def for_fixed_policy(problem: gq.Problem) -> gq.Problem:
    return gq.Problem(problem.mdp, problem.features, target=operator_of(gq.FixedPolicy))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if algorithm_of(kind, SMALL).reads_operator])
def test_a_fixed_target_policy_is_refused_where_a_policy_is_learned(kind, garnet_problem):
    with pytest.raises(ValueError, match=r"^target is FixedPolicy\(5 states, 3 actions\), but \w+ needs a softmax"):
        gq.run(for_fixed_policy(garnet_problem), algorithm_of(kind, SMALL), SAMPLES, n_runs=2)


def test_a_fixed_target_policy_is_accepted_elsewhere(compiled_again, garnet_problem):
    if not compiled_again.reads_operator:
        assert not gq.run(for_fixed_policy(garnet_problem), compiled_again, SAMPLES, n_runs=2).diverged.any()


def test_a_saved_algorithm_is_the_same_one(algorithm):
    assert gq.algorithms.from_dict(algorithm.to_dict()) == algorithm


def test_names_that_go_away_warn():
    with pytest.warns(DeprecationWarning, match=r"Operator.parameter is deprecated: use sigma, kappa or epsilon"):
        assert gq.Softmax(2.5).parameter == 2.5


def seen_of(kind: type[gq.Algorithm]) -> tuple[gq.Watch, ...] | None:
    """What the runs of an algorithm are watched for where all are run: mostly nothing, to compile less."""
    return WATCHES if kind in WATCHED_ALWAYS else None


PURE_PYTHON = """
import sys, warnings
import numpy as np
warnings.filterwarnings("ignore", "overflow")  # random words are products modulo 2**64
sys.path.insert(0, sys.argv[1])
import gqlab as gq
from test_conformance import OWN_ALGORITHMS, SMALL, algorithm_of, everything, seen_of
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
for kind in [kind for kind in OWN_ALGORITHMS if kind.__name__ in sys.argv[3:]]:
    seen = seen_of(kind)
    result = gq.run(problem, algorithm_of(kind, SMALL), 60, n_runs=2, theta0=np.full(4, 0.4), record_every=7, watch=seen)
    np.savez(f"{sys.argv[2]}/{kind.__name__}.npz", **everything(result))
"""


@pytest.fixture(scope="module")
def pure_python(tmp_path_factory, request) -> Path:
    folder = tmp_path_factory.mktemp("pure")
    here = Path(__file__).parent
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([str(here.parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PURE_PYTHON, here, folder, *(k.__name__ for k in request.module.KINDS)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_source_without_the_compiler_gives_the_same_run(algorithm, garnet_problem, pure_python):
    """The compiled run, with all that it watches and keeps, is that of the text on the page."""
    seen = seen_of(type(algorithm))
    compiled = everything(
        gq.run(garnet_problem, algorithm, 60, n_runs=2, theta0=np.full(4, 0.4), record_every=7, watch=seen)
    )
    with np.load(pure_python / f"{type(algorithm).__name__}.npz") as interpreted:
        assert set(interpreted) == set(compiled)
        for name, expected in compiled.items():
            known = ~np.isnan(expected)
            assert np.array_equal(np.isnan(interpreted[name]), ~known), name
            if known.any():
                assert_close(interpreted[name][known], expected[known], APART.get(type(algorithm).__name__, 1e-12))
