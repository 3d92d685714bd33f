"""Bad input gets one clear message that names the argument, the place and the value."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from helpers.refusals import refused

P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])  # two states, two actions
R = np.zeros((2, 2))
PHI = np.random.default_rng(0).random((2, 2, 2))


def changed(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


def mdp(**new):
    return gq.FiniteMDP(**{"transition": P, "reward": R, "discount": 0.9, **new})


def problem(**new):
    return gq.Problem(**{"mdp": mdp(), "features": PHI, **new})


def run(**new):
    settings = {"n_samples": 100, "n_runs": 2, **new}
    return gq.run(settings.pop("problem", problem()), settings.pop("algorithm", gq.GreedyGQ()), **settings)


two_classes = np.broadcast_to(np.eye(4)[:, None], (4, 2, 4))

CASES = {
    "kernel row": (lambda: mdp(transition=changed(P, (1, 0, 1), 0.9)), "transition[1, 0] sums to 0.9, expected 1"),
    "negative": (
        lambda: mdp(transition=changed(P, (0, 0), [1.5, -0.5])),
        "transition[0, 0, 1] is -0.5, a negative probability",
    ),
    "NaN in the kernel": (
        lambda: mdp(transition=changed(P, (0, 1, 0), np.nan)),
        "transition[0, 1, 0] is nan, expected a finite number",
    ),
    "infinite reward": (lambda: mdp(reward=changed(R, (1, 1), np.inf)), "reward[1, 1] is inf, expected a finite number"),
    "kernel shape": (lambda: mdp(transition=np.ones((2, 2, 3)) / 3), "transition has shape (2, 2, 3), expected (2, 2, 2)"),
    "kernel axes": (lambda: mdp(transition=np.eye(2)), "transition has shape (2, 2), expected (*, *, *)"),
    "no numbers": (lambda: mdp(transition="kernel"), "transition is not an array of numbers"),
    "empty": (lambda: mdp(transition=np.zeros((0, 2, 0))), "transition has shape (0, 2, 0)"),
    "reward shape": (lambda: mdp(reward=np.zeros((3, 2))), "reward has shape (3, 2), expected (2, 2)"),
    "reward axes": (lambda: mdp(reward=np.zeros(2)), "reward has shape (2,), expected (2, 2, 2)"),
    "discount 1": (lambda: mdp(discount=1.0), "discount is 1.0, expected a finite number at least 0 and below 1"),
    "discount below 0": (lambda: mdp(discount=-0.1), "discount is -0.1, expected a finite number at least 0 and below 1"),
    "discount NaN": (lambda: mdp(discount=float("nan")), "discount is nan"),
    "one discount": (
        lambda: mdp(discount=changed(np.full((2, 2, 2), 0.5), (1, 0, 1), 1.5)),
        "discount[1, 0, 1] is 1.5, expected at least 0 and below 1",
    ),
    "discount shape": (lambda: mdp(discount=np.zeros((2, 2))), "discount has shape (2, 2), expected (2, 2, 2)"),
    "terminal shape": (lambda: mdp(terminal=[True]), "terminal has shape (1,), expected (2,)"),
    "terminal dtype": (lambda: mdp(terminal=[0, 1]), "terminal has dtype int64, expected bool"),
    "all terminal": (lambda: mdp(terminal=[True, True], initial=[0.5, 0.5]), "terminal is True everywhere"),
    "initial needed": (lambda: mdp(terminal=[False, True]), "initial is needed"),
    "initial sum": (lambda: mdp(initial=[0.5, 0.6]), "initial sums to 1.1, expected 1"),
    "initial on terminal": (
        lambda: mdp(terminal=[False, True], initial=[0.5, 0.5]),
        "initial[1] is 0.5, but state 1 is terminal",
    ),
    "recurrent classes": (
        lambda: gq.Problem(gq.FiniteMDP(two_classes, np.zeros((4, 2)), 0.9), np.random.default_rng(0).random((4, 2, 2))).exact,
        "behavior: its chain has 4 recurrent classes, expected 1: states {0} and {1}",
    ),
    "garnet branching": (lambda: gq.garnet(5, 3, 6), "branching is 6, expected at least 1 and below 6"),
    "garnet not ergodic": (lambda: gq.garnet(30, 1, 1), "branching is 1: no ergodic kernel in 10000 draws"),
    "garnet seed": (lambda: gq.garnet(seed=-1), "seed is -1, expected at least 0"),
    "garnet states": (lambda: gq.garnet(2.5), "n_states is 2.5, expected a whole number"),
    "feature kind": (lambda: gq.random_features(mdp(), kind="cosine"), "kind is 'cosine', expected one of 'uniform', 'gaussian'"),
    "feature dim": (lambda: gq.random_features(mdp(), dim=0), "dim is 0, expected at least 1"),
    "feature shape": (lambda: problem(features=PHI[0]), "features has shape (2, 2), expected (2, 2, *)"),
    "feature NaN": (
        lambda: problem(features=changed(PHI, (0, 1, 1), np.nan)),
        "features[0, 1, 1] is nan, expected a finite number",
    ),
    "singular C": (lambda: problem(features=np.ones((2, 2, 3))).exact, "features: C = E[φφᵀ] is singular (rank 1 of 3)"),
    "behavior shape": (lambda: problem(behavior=np.ones((3, 2)) / 2), "behavior has shape (3, 2), expected (2, 2)"),
    "behavior sum": (lambda: problem(behavior=[[0.5, 0.5], [0.5, 0.4]]), "behavior[1] sums to 0.9, expected 1"),
    "target": (lambda: problem(target="softmax"), "target is 'softmax', expected an operator such as gqlab.Softmax(1.0)"),
    "target shape": (
        lambda: problem(target=gq.FixedPolicy(np.ones((3, 2)) / 2)),
        "target: the policy's table has shape (3, 2), expected (2, 2)",
    ),
    "sigma": (lambda: gq.Softmax(-1.0), "sigma is -1.0, expected a finite number at least 0"),
    "kappa": (lambda: gq.Mellowmax(0.0), "kappa is 0.0, expected a finite number above 0"),
    "watch": (lambda: gq.run(problem(), gq.GreedyGQ(), 10, watch=np.array(3)), "watch is array(3), expected one such as"),
    "keep": (lambda: gq.VRGreedyGQ(keep=np.ones(3)), "keep is array([1., 1., 1.]), expected one of 'new', 'all'"),
    "probability": (
        lambda: gq.FiniteMDP.from_transitions([0], [0], [0], 3.0, reward=[1.0], discount=0.9),
        "probability: transition[0, 0] sums to 3, expected 1",
    ),
    "epsilon": (lambda: gq.EpsilonGreedy(1.5), "epsilon is 1.5, expected a finite number at least 0 and at most 1"),
    "fixed policy": (lambda: gq.FixedPolicy([[0.5, 0.6]]), "table[0] sums to 1.1, expected 1"),
    "eta_theta": (lambda: gq.GreedyGQ(eta_theta=0.0), "eta_theta is 0.0, expected a finite number above 0"),
    "eta_omega": (lambda: gq.VRGreedyGQ(eta_omega=-1), "eta_omega is -1, expected a finite number above 0"),
    "eta text": (lambda: gq.GreedyGQ(eta_theta="fast"), "eta_theta is 'fast', expected a number"),
    "eta infinite": (lambda: gq.GreedyGQ(eta_theta=np.inf), "eta_theta is inf, expected a finite number above 0"),
    "radius": (lambda: gq.GreedyGQ(radius=0), "radius is 0, expected a number above 0"),
    "batch size": (lambda: gq.VRGreedyGQ(batch_size=0), "batch_size is 0, expected at least 1"),
    "batch size float": (lambda: gq.VRGreedyGQ(batch_size=10.0), "batch_size is 10.0, expected a whole number"),
    "batch too large": (
        lambda: run(algorithm=gq.VRGreedyGQ(batch_size=101)),
        "batch_size is 101, more than n_samples = 100: not one epoch fits",
    ),
    "device": (lambda: run(device="tpu"), "device is 'tpu', expected one of 'cpu'"),
    "algorithm": (lambda: run(algorithm="gq"), "algorithm is 'gq', expected one such as gqlab.VRGreedyGQ()"),
    "n_samples": (lambda: run(n_samples=0), "n_samples is 0, expected at least 1"),
    "n_runs": (lambda: run(n_runs=0), "n_runs is 0, expected at least 1"),
    "seed": (lambda: run(seed=2**64), "seed is 18446744073709551616, expected at least 0 and below"),
    "record_every": (lambda: run(record_every=0), "record_every is 0, expected at least 1"),
    "threads": (lambda: run(threads=0), "threads is 0, expected at least 1"),
    "theta0 shape": (lambda: run(theta0=np.zeros((3, 2))), "theta0 has shape (3, 2), expected (2, 2)"),
    "theta0 NaN": (lambda: run(theta0=[0, np.nan]), "theta0[1] is nan, expected a finite number"),
    "theta0 outside": (
        lambda: run(algorithm=gq.GreedyGQ(radius=1.0), theta0=[3.0, 4.0]),
        "theta0 has norm 5, outside the ball of radius 1",
    ),
    "omega0 outside": (
        lambda: run(algorithm=gq.GreedyGQ(radius=1.0), omega0=[[0, 0], [0, 2]]),
        "omega0[1] has norm 2, outside the ball of radius 1",
    ),
    "resume nothing": (lambda: run(resume="result.npz"), "resume is 'result.npz', expected a RunResult"),
    "resume problem": (
        lambda: run(problem=problem(target=gq.Greedy()), resume=run()),
        "resume: that result is of another problem",
    ),
    "resume algorithm": (
        lambda: run(algorithm=gq.GreedyGQ(0.5), resume=run()),
        "resume: that result is of GreedyGQ(eta_theta=0.02",
    ),
    "resume seed": (lambda: run(seed=3, resume=run()), "resume: that result has seed = 0, not 3"),
    "resume shorter": (lambda: run(n_samples=50, resume=run()), "n_samples is 50, but the result to resume has made 100"),
    "resume theta0": (lambda: run(theta0=[0, 0], resume=run()), "theta0 and omega0 come from the result"),
    "theta": (lambda: problem().exact.gradient(np.zeros(3)), "theta has shape (3,), expected (..., 2)"),
    "sample": (lambda: gq.check.pseudo_gradient(problem(), [0, 0], [0, 0], (0, 5, 0)), "sample[0] is (0, 5, 0): a is out of range"),
    "sample shape": (lambda: gq.check.pseudo_gradient(problem(), [0, 0], [0, 0], (0, 1)), "sample has shape (1, 2)"),
    "terminal sample": (
        lambda: gq.check.greedy_gq_steps(
            gq.Problem(mdp(terminal=[False, True], initial=[1.0, 0.0]), PHI[:, :, :1]), gq.GreedyGQ(), [0], [0], [[1, 0, 0]]
        ),
        "trajectory[0] is (1, 0, 0): s is a terminal state",
    ),
    "indices": (
        lambda: gq.check.svrg_epoch(problem(), gq.VRGreedyGQ(), [0, 0], [0, 0], [[0, 0, 0]], [0, 1]),
        "indices[1] is 1, expected at least 0 and below 1",
    ),
    "no indices": (lambda: gq.check.batch_indices(gq.GreedyGQ(), 10), "draws no indices: it has no batches"),
    "operator class": (lambda: problem(target=gq.Greedy), "expected an operator such as gqlab.Softmax(1.0)"),
    "algorithm class": (lambda: run(algorithm=gq.GreedyGQ), "expected one such as gqlab.VRGreedyGQ()"),
    "not a problem": (lambda: gq.run("lake", gq.GreedyGQ()), "problem is 'lake', expected a Problem"),
    "trajectory of an mdp": (lambda: gq.trajectory(mdp(), 5), "expected a Problem"),
    "not an mdp": (lambda: gq.Problem("lake", PHI), "mdp is 'lake', expected a FiniteMDP"),
    "features of nothing": (lambda: gq.random_features("lake"), "mdp is 'lake', expected a FiniteMDP"),
    "steps of nothing": (lambda: gq.check.greedy_gq_steps(problem(), "gq", [0, 0], [0, 0], [[0, 0, 0]]), "algorithm is 'gq'"),
    "indices of nothing": (lambda: gq.check.batch_indices("vr", 10), "algorithm is 'vr', expected one such as"),
    "records without end": (lambda: run(n_samples=10**14, record_every=10), "record_every is 10: that makes up to"),
    "record_every too large": (lambda: run(record_every=2**63), "record_every is 9223372036854775808, expected"),
    "run number": (lambda: gq.trajectory(problem(), 5, run=2**70), "run is 1180591620717411303424, expected"),
    "dtype list": (lambda: run(dtype=[1]), "dtype is [1], expected one of 'float64', 'float32'"),
    "policy theta": (lambda: problem().policy(np.zeros(3)), "theta has shape (3,), expected (..., 2)"),
    "policy text": (lambda: problem().policy("theta"), "theta is not an array of numbers"),
    "ragged reward": (lambda: mdp(reward=[[1.0], [1.0, 2.0]]), "reward is not an array"),
    "ragged theta0": (lambda: run(theta0=[[0.0], [1.0, 2.0]]), "theta0 is not an array"),
    "float32 theta0": (lambda: run(theta0=[1e100, 0.0], dtype="float32"), "theta0 holds a number too large for float32"),
    "float32 eta": (lambda: run(algorithm=gq.GreedyGQ(1e-60), dtype="float32"), "eta_theta is too small for float32"),
    "no such environment": (lambda: gq.FiniteMDP.from_gymnasium("Nope-v0"), "env_id is 'Nope-v0'"),
    "no such version": (
        lambda: gq.FiniteMDP.from_gymnasium("Taxi-v2"),
        "env_id is 'Taxi-v2': Environment version v2 for `Taxi` is deprecated. Please use `Taxi-v4` instead.",
    ),
    "no such version of the lake": (
        lambda: gq.FiniteMDP.from_gymnasium("FrozenLake-v0"),
        "env_id is 'FrozenLake-v0': Environment version v0 for `FrozenLake` is deprecated. Please use `FrozenLake-v1`",
    ),
    "no version yet": (lambda: gq.FiniteMDP.from_gymnasium("Taxi-v99"), "env_id is 'Taxi-v99': Environment version `v99`"),
    "no name": (lambda: gq.FiniteMDP.from_gymnasium("a b!"), "env_id is 'a b!': Malformed environment ID"),
    "a number": (lambda: gq.FiniteMDP.from_gymnasium(5), "env_id is 5, expected the name of an environment"),
    "no such module": (
        lambda: gq.FiniteMDP.from_gymnasium("no_such_module:Lake-v1"),
        "env_id is 'no_such_module:Lake-v1': ModuleNotFoundError: No module named 'no_such_module'",
    ),
    "no such map": (
        lambda: gq.FiniteMDP.from_gymnasium("FrozenLake-v1", map_name="9x9"),
        "map_name is '9x9', which FrozenLake-v1 does not have",
    ),
    "no such keyword": (
        lambda: gq.FiniteMDP.from_gymnasium("FrozenLake-v1", wet=True),
        "env_id is 'FrozenLake-v1', wet is True: TypeError: FrozenLakeEnv.__init__() got an unexpected keyword",
    ),
    "no such map, drawn": (
        lambda: gq.FiniteMDP.from_gymnasium("FrozenLake-v1", desc=np.array("SFFG")),
        "env_id is 'FrozenLake-v1', desc is array('SFFG', dtype='<U4'): ValueError: not enough values to unpack",
    ),
    "a passenger who is not in the table": (
        lambda: gq.FiniteMDP.from_gymnasium("Taxi-v4", fickle_passenger=True),
        "fickle_passenger is True: the table P of Taxi-v4 does not describe it, expected False",
    ),
    "not toy text": (
        lambda: gq.FiniteMDP.from_gymnasium("CartPole-v1"),
        "CartPole-v1 has no table P with an initial distribution",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_message(case):
    call, message = case
    with refused(message):
        call()


def test_terminal_rows_are_not_read():
    kernel = changed(P, (1, 0), [0.0, 0.0])
    assert gq.FiniteMDP(kernel, R, 0.9, terminal=[False, True], initial=[1.0, 0.0]).n_states == 2
