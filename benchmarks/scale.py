"""Large finite problems: what building them, their exact quantities and a step cost, and the memory that this takes.

Times are of the processor, of one core: on a shared machine the clock on the wall tells of the others as well.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gqlab as gq
from benchmarks.table import Table

N_ACTIONS, BRANCHING, DIM, DISCOUNT = 4, 5, 20, 0.95
#: States of the tables, and for the peers those at which each of them still ends in reasonable time.
SIZES = (1000, 10_000, 100_000)


def least(call: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def one_size(n_states: int) -> dict[str, float]:
    """Seconds of each part for one Garnet, and the largest memory of the process in MB."""
    found: dict[str, float] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        begin = time.process_time()
        out = call()
        found[name] = time.process_time() - begin
        return out

    mdp = timed("build", lambda: gq.garnet(n_states, N_ACTIONS, BRANCHING, DISCOUNT))
    problem = gq.Problem(mdp, gq.random_features(mdp, DIM))
    uniform = np.full((n_states, N_ACTIONS), 1 / N_ACTIONS)
    mu = timed("mu", lambda: mdp.stationary(uniform))
    found["bound"] = _bound(mdp, uniform)
    moved = mdp.sparse_chain(uniform).T @ mu
    found["residual"] = float(np.abs(moved - mu).sum() / 2)
    timed("exact", lambda: problem.exact.gradient(np.ones(DIM)))
    found["gradient"] = least(lambda: problem.exact.gradient(np.ones(DIM)), 9)
    timed("value", lambda: problem.exact.value(np.ones(DIM)))
    timed("optimal", lambda: problem.exact.optimal_value)
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def _bound(mdp: gq.FiniteMDP, policy: Any) -> float:
    """The certified error of μ in total variation; 0 stands for elimination, which needs no such bound."""
    from gqlab.mdp import large_chains

    return 0.0 if mdp.is_small else large_chains._corrected(mdp.sparse_chain(policy))[1]


def costs(table: Table, scale: float, million: bool, peer: Path | None) -> None:
    """All of it; ``peer`` is a virtual environment with QuantEcon and pymdptoolbox."""
    sizes = (*SIZES, 10**6) if million else SIZES
    table.section(f"Garnets with {N_ACTIONS} actions and {BRANCHING} successors, d = {DIM}, one core, a process each")
    for n_states in sizes:
        code = f"import json; from benchmarks.scale import one_size; print(json.dumps(one_size({n_states})))"
        found = json.loads(_child(sys.executable, code))
        where = f"{n_states:,} states"
        note = f"certified to {found['bound']:.1e}, residual {found['residual']:.1e}"
        table.row(f"{where}: built and checked", found["build"], "s")
        table.row(f"{where}: μ", found["mu"], "s", note)
        table.row(f"{where}: one exact gradient", 1e3 * found["gradient"], "ms", f"the first {found['exact']:.3g} s")
        table.row(f"{where}: a policy's value", found["value"], "s")
        table.row(f"{where}: optimal values", found["optimal"], "s")
        table.row(f"{where}: largest memory", found["peak"], "MB")
    steps(table, scale)
    if peer is None:
        table.note("QuantEcon and pymdptoolbox: skipped, --peer mdp=PATH names a virtual environment with them")
    else:
        peers(table, peer)


def _child(python: str, code: str, *arguments: str) -> str:
    done = subprocess.run([python, "-c", code, *arguments], capture_output=True, text=True, env=_one_core())
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def _one_core() -> dict[str, str]:
    import os

    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, "1")}


def steps(table: Table, scale: float) -> None:
    """A step of Greedy-GQ: the time of a long run less that of a short one, so that preparing it does not count."""
    table.section(f"One step of Greedy-GQ by the number of states, d = {DIM}, one thread")
    few = ""
    for n_states in (5, *SIZES):
        mdp = gq.garnet(n_states, N_ACTIONS, min(BRANCHING, n_states), DISCOUNT)
        problem = gq.Problem(mdp, gq.random_features(mdp, DIM, kind="gaussian"))
        short, long = 200_000, 200_000 + max(200_000, int(2_000_000 * scale))

        def seconds(n: int, problem: gq.Problem = problem) -> float:
            algorithm = gq.GreedyGQ(0.02, 0.01)
            return least(lambda: gq.run(problem, algorithm, n, n_runs=1, record_every=10**9, threads=1), 5)

        name = f"{n_states:,} states: a step"
        seconds(short)
        table.row(name, (seconds(long) - seconds(short)) / (long - short) * 1e9, "ns")
        few = few or name
        table.note(f"{'':<6}{table.ratio(name, few)}" if name != few else "")


# --- Other libraries ------------------------------------------------------------------------------------------------

PEER = """
import sys, time, json
import numpy as np
from scipy import sparse
x = np.load(sys.argv[1])
S, A, gamma = int(x["S"]), int(x["A"]), float(x["gamma"])
P = sparse.csr_matrix((x["probability"], x["s_next"], x["first"]), shape=(S * A, S))
r, policy, out = x["reward"], np.zeros(S, dtype=int), {}
def timed(name, call):
    times = []
    for _ in range(3):
        begin = time.process_time()
        value = call()
        times.append(time.process_time() - begin)
    out[name] = [min(times), float(np.abs(np.asarray(value) - x["optimal" if "optimal" in name else "zero"]).max())]
from quantecon.markov import DiscreteDP
ddp = DiscreteDP(r, P, gamma, np.repeat(np.arange(S), A), np.tile(np.arange(A), S))
ddp.solve(method="modified_policy_iteration", epsilon=1e-3)
if S <= int(sys.argv[2]):
    timed("QuantEcon: a policy's value", lambda: ddp.evaluate_policy(policy))
timed("QuantEcon: optimal values, modified policy iteration", lambda: ddp.solve(method="modified_policy_iteration", epsilon=1e-9, max_iter=10**6).v)
if S <= int(sys.argv[2]):
    import mdptoolbox.mdp as toolbox
    each = [P[a::A] for a in range(A)]
    def solved():
        solver = toolbox.PolicyIterationModified(each, r.reshape(S, A), gamma, epsilon=1e-9, max_iter=10**6)
        solver.run()
        return solver.V
    timed("pymdptoolbox: optimal values, modified policy iteration", solved)
print(json.dumps(out))
"""

#: States above which QuantEcon's sparse LU of a random chain, and pymdptoolbox, no longer end in reasonable time.
MOST_STATES = 3000


def peers(table: Table, environment: Path) -> None:
    """Policy evaluation and optimal values, on the same problem in the same run."""
    from gqlab.mdp import values

    for n_states in SIZES:
        table.section(f"QuantEcon's DiscreteDP (sparse) and pymdptoolbox, {n_states:,} states, one core")
        mdp = gq.garnet(n_states, N_ACTIONS, BRANCHING, DISCOUNT)
        policy = np.eye(N_ACTIONS)[np.zeros(n_states, dtype=int)]
        V, best = values.policy_value(mdp, policy), values.optimal_value(mdp)
        ours = {
            "gqlab: a policy's value": least(partial(values.policy_value, mdp, policy)),
            "gqlab: optimal values": least(partial(values.optimal_value, mdp)),
        }
        for name, seconds in ours.items():
            table.row(name, seconds, "s")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "problem.npz"
            x = mdp.arcs
            np.savez(path, S=n_states, A=N_ACTIONS, gamma=DISCOUNT, first=x.first, s_next=x.s_next, zero=V, optimal=best,
                     probability=x.probability, reward=mdp.expected_reward.reshape(-1))  # fmt: skip
            found = json.loads(_child(str(environment / "bin" / "python"), PEER, str(path), str(MOST_STATES)))
        for name, (seconds, difference) in found.items():
            table.row(name, seconds, "s", f"differs by {difference:.1e}")
        if n_states > MOST_STATES:
            table.note(f"QuantEcon's evaluation of a policy, and pymdptoolbox: skipped above {MOST_STATES:,} states")
