"""What the fuzz tests call, and with what: drawn from the signatures of everything public.

A call takes one argument, or a few, from ``HOSTILE`` and the others from ``VALID``, both by the name of the parameter.
A new function is covered when its parameters have known names; where one has not, a test says so.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st
from scipy import sparse

import gqlab as gq
from gqlab import theory
from gqlab.encoders import ENCODERS, Encoder, Flattener, as_encoder, discrete_actions, encoder_from_dict
from gqlab.exact.exact import Exact

S, A, D = 5, 3, 4  # d = 4, A = 3: one of the usual sizes


class Three(enum.IntEnum):
    THREE = 3


class Odd:
    """Something that NumPy asks for an array, and that has none."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array,\nbut two lines")


MDP = gq.garnet(S, A, 2, seed=3)
ENDING = gq.FiniteMDP(MDP.transition, MDP.reward, 0.9, np.arange(S) == S - 1, [0.5, 0.5, 0.0, 0.0, 0.0])
SPARSE = sparse.csr_array(MDP.transition.reshape(S * A, S))
ARCS = dict(zip(("s", "a", "s_next"), np.nonzero(MDP.transition), strict=True))
ARCS |= {"probability": MDP.arcs.probability, "reward": MDP.arcs.reward, "discount": np.full(len(ARCS["s"]), 0.9)}
PHI = gq.random_features(MDP, D, seed=1)
SMALL = gq.Problem(MDP, PHI)
PROBLEMS = [SMALL, gq.Problem(ENDING, PHI), *(gq.Problem(MDP, PHI, target=o) for o in (gq.Greedy(), gq.Mellowmax(2.0)))]
EVALUATION = gq.Problem(MDP, PHI, target=gq.FixedPolicy(np.full((S, A), 1 / A)))
CODER = gq.TileCoder(n_tilings=2, bins=2, low=[-1.2, -0.07], high=[0.6, 0.07]).fit([[0.0, 0.0]])
OPERATORS = [gq.Softmax(2.0), gq.Mellowmax(3.0), gq.Greedy(), gq.EpsilonGreedy(0.2), EVALUATION.target]


@functools.cache
def result() -> gq.RunResult:
    return gq.run(SMALL, gq.GreedyGQ(), 40, n_runs=2, record_every=10)


@functools.cache
def batched() -> gq.RunResult:
    return gq.run(SMALL, gq.VRGreedyGQ(batch_size=20), 40, n_runs=2, record_every=10)


@functools.cache
def sharp() -> Any:
    return theory.sharp_constants(EVALUATION, 10.0)


@functools.cache
def grid() -> gq.GridResult:
    return gq.grid([SMALL], gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.02]), 20, n_runs=1)


#: What encoders are fitted to: whole numbers, for those that need them.
OBSERVATIONS = np.array([[0.0, 1.0, 2.0], [3.0, 2.0, 5.0], [1.0, 1.0, 0.0]])


def encoder(kind: type[Encoder]) -> Encoder:
    return kind().fit(OBSERVATIONS)


def fitted(kind: type[Encoder]) -> Callable[..., Any]:
    """The constructor of an encoder, and its fit: encoders check their parameters there."""

    def make(**arguments: Any) -> Any:
        return kind(**arguments).fit(OBSERVATIONS).encode_batch(OBSERVATIONS)

    make.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return make


@functools.cache
def logged() -> gq.Transitions:
    states = np.arange(40) % S
    return gq.Transitions.from_arrays(
        states,
        np.arange(40) // 3 % A,
        np.sin(states),
        (states + 1) % S,
        np.arange(40) % 10 == 9,
        probabilities=np.full(40, 1 / A),
    )


@functools.cache
def frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"obs": [0.0, 1.0], "action": [0, 1], "reward": [0.0, 1.0], "done": [False, True]})


@functools.cache
def messy() -> Any:
    """Two units, mixed, with text, dates and a null."""
    import pandas as pd

    return pd.DataFrame(
        {
            "unit": ["a", "b"] * 3,
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]).repeat(2),
            "obs": ["x", "y", "x", None, "y", "y"],
            "action": ["go", "stay"] * 3,
            "reward": range(6),
        }
    )


@functools.cache
def log_file(ending: str) -> str:
    """A log on disk."""
    import tempfile

    path = os.path.join(tempfile.mkdtemp(), f"log.{ending}")
    messy().to_csv(path, index=False) if ending == "csv" else messy().to_parquet(path)
    return path


def arrays(*shape: int) -> st.SearchStrategy[Any]:
    """Numbers of such a shape, of every size that float64 holds."""
    number = st.sampled_from([0.0, 1.0, -0.5, 1e-300, 1e3, -1e150, 1e308, 3])
    count = math.prod(shape)
    return st.lists(number, min_size=count, max_size=count).map(lambda v: np.array(v, float).reshape(shape))


def one(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


THETA = arrays(D) | arrays(2, D) | st.builds(np.zeros, st.just((0, D)))
SAMPLES = one([[0, 0, 1], [1, 1, 2]], gq.Trajectory(*np.array([[0, 1], [0, 1], [1, 2]])), np.zeros((3, 3), np.int8))
STEP = one(0.02, 0.5, 1e-320, 1e300, gq.Decay(0.3), gq.Decay(1.0, after=1e-300, power=3.0))
RADIUS = one(math.inf, 1.0, 1e-300, 1e300)

#: ``make fuzz`` asks for 100,000 calls.
CASES = int(os.environ.get("GQLAB_FUZZ_CASES", "250"))

#: A campaign notes what it finds and goes on; a short run stops at the first, and Hypothesis makes it small.
CAMPAIGN = CASES > 1000

#: Half a minute for each precision: for campaigns alone.
SLOW_TO_COMPILE = [gq.LeastSquaresGreedyGQ(first=1)] if CAMPAIGN else []

#: By the name of a parameter: what it may be given. ``Owner.name`` goes before ``name``.
VALID: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
    "problem": lambda: one(*PROBLEMS, EVALUATION),
    "problems": lambda: one(SMALL, [SMALL], [SMALL, SMALL]),
    "mdp": lambda: one(MDP, ENDING),
    "algorithm": lambda: one(
        gq.GreedyGQ(),
        gq.VRGreedyGQ(batch_size=10),
        gq.QRC(),
        gq.QLearning(0.1),
        gq.GreedyGQ(1e200, 1e200),
        gq.SAGAGreedyGQ(),
        gq.VRGreedyGQ(batch_size=2, growth=1.5, keep="all"),
        *SLOW_TO_COMPILE,
    ),
    "analyse.algorithm": lambda: one(gq.VRGreedyGQ(batch_size=10, radius=5.0), gq.VRGreedyGQ(1e-5, 1e-3, 100, 1e3)),
    "analyse_greedy.algorithm": lambda: one(gq.GreedyGQ(radius=5.0), gq.GreedyGQ(1e-9, 1e-4, 1e3)),
    "batch_indices.algorithm": lambda: one(gq.VRGreedyGQ(batch_size=10)),
    "algorithms": lambda: one(gq.GreedyGQ(), [gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=5)]),
    "kind": lambda: one("uniform", "gaussian"),
    "vary.kind": lambda: one(gq.GreedyGQ, gq.VRGreedyGQ),
    "n_samples": lambda: one(1, 20, 40, np.int16(30), Three.THREE),
    "n_runs": lambda: one(1, 2, None),
    "grid.n_runs": lambda: one(1, 2),
    "n_epochs": lambda: one(1, 100, 10**12),
    "n_draws": lambda: one(1, 10),
    "n_steps": lambda: one(1, 10),
    "n_states": lambda: one(1, 3, 6),
    "n_actions": lambda: one(1, 2),
    "n_trajectories": lambda: one(1, 3),
    "branching": lambda: one(1, 2),
    "horizon": lambda: one(1, 5),
    "dim": lambda: one(1, 3),
    "batch_size": lambda: one(1, 10, 3000),
    "epoch_updates": lambda: one(1, 10, 3000),
    "record_every": lambda: one(1, 7, 1000),
    "every": lambda: one(1, 7),
    "order": lambda: one(1, 2),
    "seed": lambda: one(0, 5, 2**63),
    "seeds": lambda: one(0, [0, 1]),
    "run": lambda: one(0, 7),
    "threads": lambda: one(1, 2, None),
    "progress": lambda: one(False, None),
    "device": lambda: one("cpu"),
    "dtype": lambda: one("float64", "float32", np.dtype("float64"), np.float32, None),
    "grid.dtype": lambda: one("float64", np.dtype("float32")),
    "watch": lambda: one(None, gq.Watch("mspbe")),
    "quantity": lambda: one("gradient", "mspbe", "reward"),
    "resume": lambda: one(None, result()),
    "result": lambda: one(result(), batched()),
    "analyse.result": lambda: one(None),
    "theta": lambda: THETA,
    "omega": lambda: THETA,
    **{
        f"{f}.{p}": lambda: arrays(D)
        for f in ("pseudo_gradient", "greedy_gq_steps", "svrg_epoch")
        for p in ("theta", "omega")
    },
    "floor.theta": lambda: one(None) | arrays(D),
    "theta0": lambda: one(None) | arrays(D),
    "omega0": lambda: one(None) | arrays(D),
    "sample": lambda: one((0, 0, 1), np.array([1, 1, 2], np.uint8)),
    "trajectory": lambda: SAMPLES,
    "batch": lambda: SAMPLES,
    "indices": lambda: one([0, 1, 0], np.zeros(2, np.uint8)),
    "q": lambda: arrays(S, A),
    "v": lambda: arrays(S, A),
    "t": lambda: one(0, 10, 1e300),
    "policy": lambda: one(np.full((S, A), 1 / A), [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]]),
    "behavior": lambda: one(None, np.full((S, A), 1 / A)),
    "target": lambda: one(None, *OPERATORS),
    "groups": lambda: one(np.zeros(S, int), np.arange(S), np.arange(S * A).reshape(S, A)),
    "table": lambda: one(np.full((S, A), 1 / A)),
    "transition": lambda: one(MDP.transition, MDP.transition.tolist(), SPARSE, [SPARSE[a::A] for a in range(A)]),
    "reward": lambda: one(MDP.reward, np.zeros((S, A)), np.full((S, A), 1e308), 0.5, SPARSE),
    **{
        f"from_transitions.{name}": functools.partial(one, column)
        for name, column in zip(ARCS, ARCS.values(), strict=True)
    },
    "from_transitions.n_states": lambda: one(None, S, S + 1),
    "from_transitions.n_actions": lambda: one(None, A),
    "discount": lambda: one(0.0, 0.9, 1 - 2.0**-53),
    "terminal": lambda: one(None, np.arange(S) == 3),
    "initial": lambda: one(None, [0.5, 0.5, 0, 0, 0]),
    "features": lambda: one(
        PHI, sparse.csr_array(PHI.reshape(S * A, D)), np.ones((S, A, 1)), np.zeros((S, A, 2)), 1e200 * PHI
    ),
    "env_id": lambda: one("FrozenLake-v1"),
    "eta": lambda: one(0.1, 1e300),
    "eta_theta": lambda: STEP,
    "eta_omega": lambda: STEP,
    "mapping.eta_theta": lambda: one(0.1, 1e-10),
    "after": lambda: one(1.0, 1e300),
    "power": lambda: one(0.0, 0.5, 1e3),
    "a": lambda: one(0.1, 1.0, 1e300),
    "growth": lambda: one(1.5, 2, 1000.0),
    "keep": lambda: one("new", "all"),
    "first": lambda: one(1, 50),
    "inner_steps": lambda: one(1, 20),
    "radius": lambda: RADIUS,
    "radius_omega": lambda: one(None, 5.0, 1e3),
    **{
        f"{f}.radius": lambda: one(1.0, 100.0, 1e6, 1e-3)
        for f in ("schedule", "step_sizes", "sharp_constants", "mapping", "try_steps")
    },
    "beta": lambda: one(0.0, 1.0, 1e300),
    "sigma": lambda: one(0.0, 1e-300, 1.0, 1e100),
    "kappa": lambda: one(1e-300, 1.0, 1e100),
    "epsilon": lambda: one(0.0, 0.5, 1.0),
    **{f"{f}.epsilon": lambda: one(0.1, 1e-4) for f in ("schedule", "least_samples")},
    "version": lambda: one("printed", "corrected"),
    "sampling": lambda: one("markov", "iid"),
    "theorem": lambda: one("interior", "projected"),
    "c": lambda: one(sharp()),
    "start": lambda: one((1.0, 1.0), (0.0, 0.0)),
    "theta0_norm": lambda: one(0.0, 0.5, 1e3),
    "name": lambda: one("policy"),
    "path": lambda: one("no/such/folder/file.npz"),
    "parameters": lambda: one({}, {"eta_theta": [0.1, 0.2]}, {"radius": 2.0, "eta_omega": 0.5}),
    "labels": lambda: one({}, {"seed": 0}, {"eta_theta": 0.01}),
    "X": lambda: one(OBSERVATIONS, OBSERVATIONS[:1].tolist(), OBSERVATIONS.astype(np.float32)),
    "y": lambda: one(None),
    "observation": lambda: one(*OBSERVATIONS, [0, 1, 0]),
    "Flattener.observation": lambda: one(np.zeros(3), [0, 1, 0]),
    "flatten_batch.observation": lambda: one(np.zeros((2, 3)), [[0, 1, 0]]),
    "space": lambda: one(spaces.Box(-1, 1, (3,)), spaces.MultiDiscrete([2, 2, 2])),
    "discrete_actions.space": lambda: one(spaces.Discrete(3)),
    "n_tilings": lambda: one(1, 8),
    "bins": lambda: one(1, 8, [1, 2, 3]),
    "low": lambda: one(None, -3, [-3.0, None, 0.0], np.full(3, -1e20)),
    "high": lambda: one(None, 6, [6.0, 1e20, None]),
    "TileCoder.groups": lambda: one(None, [(0, 1), (2,)]),
    "hash_size": lambda: one(None, 100),
    "max_interactions": lambda: one(None, 1, 2),
    "n_centers": lambda: one(1, 3, [1, 2, 3]),
    "centers": lambda: one(None, np.zeros((2, 3)), [[0, 1e9, 1]]),
    "width": lambda: one(None, 0.5, [0.1, 1, 1e300]),
    "n_values": lambda: one(None, 10, [6, 7, 8]),
    "bias": lambda: one(True, False),
    "scale": lambda: one(True, False),
    "values": lambda: one(*(encoder(kind).to_dict() for kind in ENCODERS)),
    "encoder": lambda: one(gq.TileCoder()),
    "data": lambda: one(logged()),
    "health.encoder": lambda: one(None, gq.Fourier(2), gq.TileCoder(2, 3), gq.OneHot(S)),
    "health.target": lambda: one(None, EVALUATION.target, lambda x: np.full((len(x), A), 1 / A)),
    "env": lambda: one("FrozenLake-v1", "CartPole-v1"),
    "collect.policy": lambda: one(None, lambda rows: np.ones(len(rows), int)),
    "observations": lambda: one([0, 1, 2], np.zeros((3, 2)), np.ones((3, 1), np.float32)),
    "next_observations": lambda: one(None, [1, 2, 3], np.zeros((3, 2))),
    "actions": lambda: one([0, 1, 0], np.zeros((3, 1)), ["go", "stay", "go"]),
    "rewards": lambda: one([0, 0, 1.5], np.full(3, 1e308)),
    "terminated": lambda: one(None, [0, 0, 1], np.zeros(3, bool)),
    "truncated": lambda: one(None, [0, 1, 0], np.zeros(3, bool)),
    "episodes": lambda: one(None, [0, 0, 1], ["a", "a", "a"]),
    "probabilities": lambda: one(None, [0.5, 1.0, 1e-300]),
    "df": lambda: one(frame(), messy()),
    "columns": lambda: one(
        None, {}, {"reward": "obs"}, {"episode": "unit"}, {"observation": ["day", "obs"], "episode": "unit"}
    ),
    "Transitions.from_csv.path": lambda: one(log_file("csv"), [log_file("csv")] * 2, "no/such.csv"),
    "Transitions.from_parquet.path": lambda: one(log_file("parquet"), "no/such.parquet"),
    "Transitions.from_files.path": lambda: one(
        log_file("csv"), log_file("parquet"), [log_file("csv"), log_file("parquet")]
    ),
    "options": lambda: one(
        {}, {"sort": True, "ends": "truncated"}, {"time": "day", "gap": "P1D", "drop_nulls": "rows"}
    ),
    "time": lambda: one(None, "day", "reward"),
    "times": lambda: one(None, [0, 1, 2], np.array(["2024-01-01", "2024-01-02", "2024-02-01"], "M8[D]")),
    "gap": lambda: one(None, 1, "P1D", np.timedelta64(36, "h")),
    "sort": lambda: one(None, True, False, "day", ["unit", "day"]),
    "ends": lambda: one(None, "truncated", "terminated"),
    "drop_nulls": lambda: one(None, "rows", "episodes"),
    "action_labels": lambda: one(None, ["go", "stay"], ("stay", "go", "run"), [0, 1], [1.5, 0]),
    "like": lambda: one(None, logged()),
    "delimiter": lambda: one(None, ",", ";"),
    "decimal": lambda: one(".", ","),
    "encoding": lambda: one("utf8", "latin1"),
    "dataset": lambda: one("no/such-v0"),
    "share": lambda: one(0.5, 0.01, 0.999),
    "trace": lambda: one(0.0, 0.5, 1.0),
    "last": lambda: one(0.0, 1.0),
    "LinearDecay.first": lambda: one(0.1, 1.0),
    "over": lambda: one(1.0, 1e6),
    "Agent.env": lambda: one("MountainCar-v0"),
    "EvalCallback.env": lambda: one(None, "MountainCar-v0"),
    "Agent.encoder": lambda: one(CODER, gq.Fourier(order=1)),
    "LinearQ.encoder": lambda: one(CODER),
    "LinearQ.theta": lambda: arrays(3, CODER.n_features_out_),
    "LinearQ.space": lambda: one(
        None, spaces.Box(-1, 1, (2,)), spaces.Dict(a=spaces.Discrete(3), b=spaces.Discrete(2))
    ),
    "LinearQ.history": lambda: one({}),
    "LinearQ.metadata": lambda: one({}),
    "Agent.algorithm": lambda: one(gq.Sarsa(0.1, trace=0.9), gq.VRGreedyGQ(batch_size=10), gq.QRC(trace=0.5)),
    "Agent.target": lambda: one(None, gq.Greedy(), gq.Softmax(2.0)),
    "Agent.epsilon": lambda: one(0.1, gq.LinearDecay(0.1, 0.0, over=100)),
    "Agent.seed": lambda: one(0, 5),
    "Agent.replay": lambda: one(None),
    "initial_value": lambda: one(0.0, -20.0),
    "updates": lambda: one(16, 0.25),
    "n_step": lambda: one(1, 5),
    "size": lambda: one(None, 100),
    "Replay.sampling": lambda: one("uniform", "recent"),
    "cut": lambda: one(True, False),
    "average": lambda: one(0.0, 0.002),
    "offset": lambda: one(0.0, -20.0),
    "n_episodes": lambda: one(1, 2),
    "best": lambda: one(None, "no/such/folder/model.npz"),
    "folder": lambda: one("no/such/folder"),
    "threshold": lambda: one(-110.0, 0.0),
    "ridge": lambda: one(0.0, 1e-3),
    "n_iterations": lambda: one(1, 5),
    "pessimism": lambda: one(0.0, 1.0),
    "fit.encoder": lambda: one(gq.OneHot(S), gq.Fourier(1)),
    "fit.algorithm": lambda: one(gq.QLearning(0.1), gq.VRGreedyGQ(batch_size=3), gq.Sarsa(), gq.SAGAGreedyGQ()),
    "fit.target": lambda: one(None, gq.Greedy(), lambda x: np.full((len(x), A), 1 / A)),
    "n_passes": lambda: one(1, 3),
    "rows": lambda: one(None, "shuffled", "drawn", "in order"),
    "checkpoint": lambda: one(None, "no/such/folder/passes.npz"),
    "fit.theta0": lambda: one(None),
    "evaluate.policy": lambda: one(lambda rows: np.zeros(len(rows), int)),
    "importance_sampling.policy": lambda: one(lambda x: np.full((len(x), A), 1 / A)),
    "policies": lambda: one({"uniform": lambda x: np.full((len(x), A), 1 / A), "table": np.full((S, A), 1 / A)}),
    "decide.features": lambda: one("tabular", "trees", gq.Fourier(1)),
    "baseline": lambda: one("log", "table"),
    "methods": lambda: one(("solve",), ["solve", "wpdis", "dr", "wdr"], "wdr"),
    "confidence": lambda: one(0.9, 0.99),
    "reward_range": lambda: one(None, (-2, 2)),
    "candidates": lambda: one({"plain": gq.FittedQ(n_iterations=3), "LSPI": (gq.LSPI(), gq.Fourier(1))}),
    "select.encoder": lambda: one(gq.OneHot(S), gq.Fourier(1)),
    "importance_sampling.features": lambda: one("tabular", None),
    "select.features": lambda: one("tabular", "trees"),
    "split": lambda: one(0.5, 0.3),
    "refit": lambda: one(True, False),
    "decide.discount": lambda: one(0.9, 0.0, 1.0),
    "engine": lambda: one(None, "threads"),
    "store": lambda: one(None, "store", "another/store"),
    "partial": lambda: one(True, False),
    "GridResult.to_parquet.path": lambda: one("sweep.parquet"),
    "kwargs": lambda: one({}, {"is_slippery": False}),
    "metric": lambda: one("gradient", "mspbe", lambda r: r.theta[:, :, 0]),
    "RunResult.with_problem.problem": lambda: one(SMALL),
    "RunResult.load.problem": lambda: one(None, SMALL),
    "purpose": lambda: one("a metric"),
    "results": lambda: one({"one": result()}, {"one": result(), "two": result()}),
    "metrics": lambda: one((), "reward", ["mspbe", "value"]),
    "x": lambda: one("samples", "updates"),
    "GridResult.plot.x": lambda: one("samples", "eta_theta"),
    "open_grid.problems": lambda: one(None, SMALL, [SMALL]),
    "per": lambda: one("algorithm", ["problem", "seed"]),
    "by": lambda: one(None, "eta_theta", ["algorithm", "seed"]),
    "largest": lambda: one(None, True),
    "iterates": lambda: one(True, False),
    "band": lambda: one(0.0, 0.5),
    "label": lambda: one(None, "a name"),
    "shape": lambda: one(None, (5, 1), [1, 5]),
    "ax": lambda: one(None),
    "Problem.plot.theta": lambda: one(None, np.zeros(D), [1, 2, 3, 4]),
}

#: For parameters that are not plainly wrong when they are large: they would only take long, or all memory.
LARGE = [2**48, 2**63, 2**64, 2**70, 10**400]

HOSTILE: list[Any] = [
    None, True, -1, 0, 1.5, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e-320, 5e-324, *LARGE,
    Three.THREE, Fraction(1, 3), Decimal("0.5"), Decimal("NaN"), 1j, np.float32(0.5), np.int8(3), np.bool_(True), np.datetime64("2020"),
    "", "text", "0.5", b"bytes", "two\nlines", [], {}, {1: 2}, set(), (), [None], [[1], [1, 2]], [10**400], ["a"], [1j], [[]],
    object(), Odd(), int, len, lambda: 1, range(3), np.array(3), np.array([]), np.array([0.5]), np.zeros((0, D)), np.zeros((2, 3, 5)),
    np.full(D, np.nan), np.array([1, 2, 3, np.inf]), np.ones(D, complex), np.ones(D, np.float32), np.ones(D, np.longdouble),
    np.ones(D, ">f8"), np.ones(D, bool), np.array(["x", "y", "z", "t"]), np.array([object()]), np.ma.array(np.ones(D), mask=[0, 1, 0, 0]),
    np.ma.array(np.ones(D)), np.zeros((S, A, S)), np.ones(2 * D)[::2], np.array(["2020"], "M8[D]"),
    np.zeros(2, [("a", float)]), np.arange(S), np.full((S, A), 0.5), np.full(D, 1e308), MDP, SMALL, gq.GreedyGQ(), gq.Softmax(),
]  # fmt: skip


def functions() -> Iterator[tuple[str, Callable[..., Any], tuple[str, ...]]]:
    """Every public function, class and method: its name, the function, and the names of what it is called by."""
    for module in (gq, theory):
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or inspect.isabstract(thing) or thing in NOT_CALLED:
                continue
            is_encoder = inspect.isclass(thing) and issubclass(thing, Encoder)
            yield name, fitted(thing) if is_encoder else thing, (name,)
    for function in (encoder_from_dict, as_encoder, discrete_actions, Flattener):
        yield function.__name__, function, (function.__name__,)
    for owner, objects in METHODS.items():
        for name in public_methods(owner):
            for k, thing in enumerate(objects):
                yield f"{owner.__name__}.{name}[{k}]", getattr(thing(), name), (f"{owner.__name__}.{name}", name)


def public_methods(owner: type) -> list[str]:
    return [name for name, thing in inspect.getmembers(owner) if callable(thing) and not name.startswith("_")]


#: What only carries results, is made by no user, or (learn_many) starts processes and writes files: its own tests call it.
NOT_CALLED = {
    gq.Algorithm, gq.Callback, gq.Decision, gq.Efficiency, gq.Evaluation, gq.Floor, gq.Health, gq.ImportanceSampling, gq.Seeds, gq.Selection, gq.learn_many, gq.Trajectory, gq.UpdateError, gq.Watched, gq.RunResult, gq.GridResult, gq.Transitions, theory.Choice, theory.GreedyReport,
    theory.Attempt, theory.GreedyBound, theory.PlugIn, theory.Practical, theory.Repair, theory.Report, theory.Schedule, theory.Sharp, theory.Statement, theory.StepSizes, theory.Tried,
}  # fmt: skip

#: Whose methods are called, and on what.
METHODS: dict[type, list[Callable[[], Any]]] = {
    gq.Problem: [lambda: SMALL],
    Exact: [lambda: SMALL.exact, lambda: PROBLEMS[2].exact],
    gq.FiniteMDP: [lambda: MDP],
    gq.GridResult: [grid],
    gq.RunResult: [result],
    gq.Transitions: [logged],
    **{type(operator): [lambda operator=operator: operator] for operator in OPERATORS},
    **{kind: [functools.partial(encoder, kind)] for kind in ENCODERS},
    Flattener: [lambda: Flattener(spaces.Box(-1, 1, (3,)))],
}

#: Methods for the inside: they trust their callers.
INSIDE = {
    "check",
    "check_space",
    "describe",
    "numbers",
    "tables",
    "smoothness",
    "chain",
    "sparse_chain",
    "over_actions",
    "at",
    "watched_columns",
    "compiled",
    "mro",
}

#: And those of scikit-learn; and ``encode``, which does not look for NaN.
INSIDE |= {
    "encode",
    "fit_transform",
    "get_feature_names_out",
    "get_metadata_routing",
    "get_params",
    "set_output",
    "set_params",
}


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def valid(name: str, owners: tuple[str, ...]) -> st.SearchStrategy[Any]:
    for key in (*(f"{owner}.{name}" for owner in owners), name):
        if key in VALID:
            return VALID[key]()
    raise LookupError(f"no strategy for the parameter {name} of {owners[0]}: add one to VALID")


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    """A function and its arguments by name: some left at their defaults, at most two of them hostile."""
    title, function, owners = draw(st.sampled_from(TARGETS))
    given: dict[str, Any] = {}
    known = parameters(function)
    hostile = draw(st.lists(st.sampled_from(sorted(known.keys() - {"name"}) or [""]), max_size=2))
    for name, parameter in known.items():
        needed = parameter.default is inspect.Parameter.empty
        if name in hostile and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            given[name] = draw(st.sampled_from(HOSTILE))
        elif needed or draw(st.booleans()):
            given[name] = draw(valid(name, owners))
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            more = given.pop(name, {})
            if name in hostile and more:
                more = {**more, draw(st.sampled_from(sorted(more))): draw(st.sampled_from(HOSTILE))}
            given |= more
    return title, function, given


TARGETS = [target for target in functions() if target[0].partition("[")[0].rpartition(".")[2] not in INSIDE]


def finite(value: Any) -> bool:
    """Whether everything in a result is a finite number, or flagged as what it is."""
    if isinstance(value, gq.RunResult):
        return finite((value.theta, value.omega, value.output))
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, tuple | list):
        return all(finite(inner) for inner in value)
    return True


def late(value: Any, name: str) -> bool:
    """Whether an attribute is made when it is first asked for."""
    return isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property)


def snapshot(value: Any) -> Any:
    """What a caller owns, to be compared afterwards."""
    if isinstance(value, np.ndarray):
        return (
            value.dtype.str,
            value.shape,
            value.tobytes() if value.dtype.kind != "O" else repr(value),
            value.flags.writeable,
        )
    if isinstance(value, dict):
        return {repr(key): snapshot(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [snapshot(inner) for inner in value]
    if isinstance(value, gq.Problem | gq.FiniteMDP) or dataclasses.is_dataclass(value):
        return (
            {
                key: snapshot(inner)
                for key, inner in vars(value).items()
                if isinstance(inner, np.ndarray) and not late(value, key)
            }
            if hasattr(value, "__dict__")
            else None
        )
    return None
