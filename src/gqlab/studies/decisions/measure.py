"""The tasks of the study: each makes logs of one problem and judges policies by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gqlab.algorithms import LSPI, FittedQ
from gqlab.data.transitions import Transitions
from gqlab.encoders.fourier import Fourier
from gqlab.encoders.identity import Identity
from gqlab.encoders.one_hot import OneHot
from gqlab.encoders.tiles import TileCoder
from gqlab.judge.bound import discounted_visits, efficiency_bound, logged_visits
from gqlab.judge.deciding import decide
from gqlab.judge.estimates import Estimates
from gqlab.judge.estimator import Estimator
from gqlab.judge.features import features_of
from gqlab.judge.rows import look
from gqlab.judge.selecting import select
from gqlab.learn.fit.fit import fit
from gqlab.policies import as_policy
from gqlab.studies.decisions.design import FIT_ROWS, NULL_ROWS, RARE_ROWS, VERDICT_ROWS
from gqlab.studies.decisions.logs import make_log
from gqlab.studies.decisions.problems import SHIFTS, LoggedProblem, finite, numeric
from gqlab.studies.decisions.rivals import fitted_q_evaluation, weighted_importance_sampling
from gqlab.support.checks import FloatArray

#: Of a policy's estimate in one log.
FIELDS = ("value", "low", "high", "gain", "gain_low", "gain_high", "unsupported", "effective_rows", "thin")

#: Of the rivals, each with its interval.
RIVALS = ("fqe", "fqe_low", "fqe_high", "wpdis", "wpdis_low", "wpdis_high")

CONFIDENCE = 0.95

#: What tells the parts of the study apart in their seeds.
EVALUATION, COVERAGE, NULL, VERDICTS, FITS, SELECTION, PESSIMISM = range(7)

#: The fits of the part on pessimism: plain, pessimistic, and with the ridge that one gets without asking.
FITTED = FittedQ(ridge=0.0), FittedQ(ridge=0.0, pessimism=1.0), FittedQ()


def judged(problem: LoggedProblem, data: Transitions, tables: list[FloatArray]) -> Estimates:
    """What a log says of policies (S, A) with one feature for every observation."""
    seen = look(data, 0)
    features = features_of("tabular", data, seen.sample.observations, 0)
    policies = [as_policy("policy", table, problem.mdp.n_actions) for table in tables]
    return Estimator(data, seen, features, policies, problem.gamma).estimates()


def evaluation(k: int, gamma: float, n_rows: int, n_logs: int, seed: int) -> dict[str, Any]:
    """Relative errors of the value under a small shift."""
    problem = finite(k).at(gamma)
    table = problem.target("small")
    truth = problem.value(table)
    found = [
        judged(problem, make_log(problem, n_rows, [seed, EVALUATION, k, round(1000 * gamma), j]), [table])
        for j in range(n_logs)
    ]
    return {"relative": np.array([one.policies[0].values[0].estimate / truth - 1 for one in found])}


def coverage(k: int, n_rows: int, first: int, n_logs: int, n_rival: int, seed: int) -> dict[str, Any]:
    """What logs ``first`` … say of the policies of both shifts, (n_logs, shifts, fields), and what rivals say."""
    problem = finite(k)
    tables = [problem.target(shift) for shift in SHIFTS]
    out = np.empty((n_logs, len(SHIFTS), len(FIELDS)))
    rivals = np.full((n_logs, len(SHIFTS), len(RIVALS)), np.nan)
    for j in range(n_logs):
        data = make_log(problem, n_rows, [seed, COVERAGE, k, n_rows, first + j])
        for i, one in enumerate(judged(problem, data, tables).policies):
            value, gain = one.value_range(CONFIDENCE), one.gain_range(CONFIDENCE)
            out[j, i] = (
                one.values[0].estimate, *value, one.gains[0].estimate, *gain, one.unsupported, one.effective_rows,
                one.thin,
            )  # fmt: skip
            rivals[j, i, :3] = fitted_q_evaluation(data, tables[i], problem.gamma, [seed, first + j])
            if first + j < n_rival:
                rivals[j, i, 3:] = weighted_importance_sampling(data, tables[i], problem.gamma, [seed, first + j])
    return {"estimates": out, "rivals": rivals}


def bounds(k: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The truth of a problem: efficiency bounds by row, values and gains, and what is rare in logs of such sizes."""
    problem = finite(k)
    found = [efficiency_bound(problem.mdp, problem.behavior, problem.target(s), problem.horizon) for s in SHIFTS]
    rare = [[rare_share(problem, problem.target(shift), n) for shift in SHIFTS] for n in sizes]
    return {"bounds": np.array(found), "rare": np.array(rare)}


def rare_share(problem: LoggedProblem, policy: FloatArray, n_rows: int) -> float:
    """The share of a policy's discounted reward that so many rows may not hold; rewards count from the mode."""
    mdp = problem.mdp
    visits = logged_visits(mdp, problem.behavior, problem.horizon, mdp.start)
    logged = (visits / visits.sum())[:, None, None] * problem.behavior[..., None] * mdp.transition
    wanted = discounted_visits(mdp, policy, mdp.start)[:, None, None] * policy[..., None] * mdp.transition
    kinds, number = np.unique(mdp.reward.round(12), return_inverse=True)
    in_log, in_policy = (np.bincount(number.ravel(), mass.ravel(), len(kinds)) for mass in (logged, wanted))
    size = np.abs(kinds - kinds[in_log.argmax()])
    beyond = np.array([in_log[size >= one].sum() for one in size]) * n_rows < RARE_ROWS
    return float((in_policy * size)[beyond].sum() / (in_policy * size).sum())


def null(k: int, n_logs: int, seed: int) -> dict[str, Any]:
    """Verdicts on a policy that is what runs now."""
    problem = finite(k)
    verdicts = []
    for j in range(n_logs):
        data = make_log(problem, NULL_ROWS, [seed, NULL, k, j])
        decision = decide(data, {"same": problem.behavior}, problem.gamma, features="tabular")
        verdicts.append(decision["same"].verdict)
    return {"verdicts": verdicts}


# --- Policies that were fitted with wrong features --------------------------------------------------------------------


def wrong_encoders(problem: LoggedProblem) -> dict[str, Any]:
    """Encoders that cannot hold the values of a problem."""
    low, high = problem.observation.min(axis=0), problem.observation.max(axis=0)
    return {
        "linear": Identity(),
        "Fourier 1": Fourier(1, low=low, high=high),
        "Fourier 2": Fourier(2, low=low, high=high),
        "tiles 2": TileCoder(1, 2, low=low, high=high),
        "tiles 4": TileCoder(1, 4, low=low, high=high),
    }


def fitted_policies(problem: LoggedProblem, seed: list[int]) -> dict[str, Any]:
    """Models of a log of their own, by the names of their features."""
    data = make_log(problem, FIT_ROWS, seed)
    return {
        name: fit(data, encoder, FittedQ(), discount=problem.gamma, progress=False)
        for name, encoder in wrong_encoders(problem).items()
    }


def verdicts(k: int, first: int, n_logs: int, known: bool, seed: int) -> dict[str, Any]:
    """Verdicts on fitted policies by trees, with what is true of them."""
    problem = numeric(k)
    n = problem.mdp.n_actions
    now = problem.value(problem.behavior)
    found: list[str] = []
    truth = []
    for j in range(first, first + n_logs):
        policies = fitted_policies(problem, [seed, FITS, k, j])
        data = make_log(problem, VERDICT_ROWS, [seed, VERDICTS, k, j], known=known)
        decision = decide(data, policies, problem.gamma)
        for name, policy in policies.items():
            table = as_policy(name, policy, n).probabilities(problem.observation)
            bound = efficiency_bound(problem.mdp, problem.behavior, table, problem.horizon)
            truth.append((problem.value(table) - now, bound.gain / np.sqrt(data.n_rows), decision[name].gain))
            found.append(decision[name].verdict)
    return {"verdicts": found, "truth": np.array(truth)}


# --- Selection -------------------------------------------------------------------------------------------------------


def candidates() -> dict[str, Any]:
    """What :func:`gqlab.select` chooses among."""
    return {
        "FittedQ": FittedQ(),
        "FittedQ, ridge 1e-3": FittedQ(ridge=1e-3),
        "FittedQ, ridge 1e-2": FittedQ(ridge=1e-2),
        "FittedQ, ridge 1e-1": FittedQ(ridge=1e-1),
        "LSPI": LSPI(),
        "FittedQ, pessimism 1": FittedQ(pessimism=1.0),
        "FittedQ, pessimism 3": FittedQ(pessimism=3.0),
        "LSPI, pessimism 1": LSPI(pessimism=1.0),
    }


def share_of_best(problem: LoggedProblem, table: FloatArray, behavior: FloatArray) -> float:
    """0: as good as what runs now; 1: optimal."""
    now = problem.value(behavior)
    return (problem.value(table) - now) / (problem.value(problem.best) - now)


def selection(k: int, n_rows: int, n_logs: int, seed: int) -> dict[str, Any]:
    """The gain of the choice in each log; 0 where what runs now is kept."""
    problem = finite(k)
    gains, names = [], []
    for j in range(n_logs):
        data = make_log(problem, n_rows, [seed, SELECTION, k, n_rows, j])
        chosen = select(data, candidates(), OneHot(problem.mdp.n_states), problem.gamma, features="tabular")
        names.append(chosen.choice or "")
        if chosen.choice is None:
            gains.append(0.0)
            continue
        table = as_policy("choice", chosen.model, problem.mdp.n_actions).probabilities(problem.observation)
        gains.append(share_of_best(problem, table, problem.behavior))
    return {"gain": np.array(gains), "choice": names}


# --- Pessimism -------------------------------------------------------------------------------------------------------


def pessimism(k: int, exploration: float, n_rows: int, n_logs: int, seed: int) -> dict[str, Any]:
    """The gain of each fit of FITTED over a behaviour that explores so often, (n_logs, 3): all of the same log."""
    problem = finite(k)
    behavior = problem.exploring(exploration)
    gains = np.empty((n_logs, len(FITTED)))
    for j in range(n_logs):
        data = make_log(problem, n_rows, [seed, PESSIMISM, k, round(1000 * exploration), j], behavior=behavior)
        for i, algorithm in enumerate(FITTED):
            model = fit(data, OneHot(problem.mdp.n_states), algorithm, discount=problem.gamma, progress=False)
            table = as_policy("model", model, problem.mdp.n_actions).probabilities(problem.observation)
            gains[j, i] = share_of_best(problem, table, behavior)
    return {"gain": gains}
