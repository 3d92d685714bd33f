"""decide(): is a policy better than what runs now, by how much, how sure, and where can nobody say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from gqlab.data.arrow import needed
from gqlab.data.transitions import Transitions
from gqlab.judge import importance
from gqlab.judge.decision import BETTER, CANNOT_SAY, WORSE, Decision, DecisionRow, Now, Other
from gqlab.judge.estimates import LEAST_EFFECTIVE, MOST_UNSUPPORTED, Estimate
from gqlab.judge.estimator import Estimator
from gqlab.judge.features import Features, features_of
from gqlab.judge.labels import matched
from gqlab.judge.misfit import MOST_MISFIT, misfit
from gqlab.judge.rows import LogLook, look, parts
from gqlab.judge.sums import UNSEEN, PolicyWeights, deltas
from gqlab.judge.walks import other_methods
from gqlab.policies import Policy
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.tasks.base import Engine
from gqlab.tasks.engines import engine_of

#: Observations whose support a decision keeps, for its picture.
MOST_PLACES = 5000


def decide(
    data: Transitions,
    policies: Mapping[str, Any],
    discount: float,
    *,
    features: Any = "trees",
    baseline: str = "log",
    methods: Sequence[str] = ("solve",),
    confidence: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
    engine: str | Engine | None = None,
) -> Decision:
    """What a log says of policies: their values and gains with intervals, a verdict for each, and a choice.

    A verdict is "better" or "worse" where the gain's bound is on that side of 0, and "cannot say" else: also where the
    log holds too little of what the policy does, and where the features cannot hold its values. It knows nothing
    of what the log does not show: causes of actions and rewards that were not recorded, hidden state, drift, rewards
    that never occurred.

    Parameters
    ----------
    data : Transitions
        The behaviour's probabilities are not needed.
    policies : dict
        Names with policies: models, functions of observations, tables, agents. Actions are matched by their labels.
    discount : float
        1 is possible where episodes end.
    features : {"trees", "tabular"} or encoder
        What values are linear in: leaves of random trees; a table, where observations are discrete; or an encoder, but
        not one that a policy was fitted with.
    baseline : str
        What gains are over: "log", what runs now; or one of the policies.
    methods : sequence of str
        Beside "solve": "wpdis", "dr" (cross-fitted), "wdr" add what importance sampling says; they need the behaviour's
        probabilities.
    confidence : float
        Of the two-sided interval of a value, and of each bound of a gain. Of several policies the verdicts are Holm's.
    reward_range : (float, float), optional
        The least and the largest reward that may occur, where the log may not hold them. It widens the intervals
        of policies that the log holds too little of.
    seed : int
        Of trees, folds, and of the episodes that these learn from: at most 200,000 rows of them. Sums go over all rows.
    engine : {"threads", "processes", "ray"} or gqlab.tasks.Engine, optional
        The rows of Parquet files are shared among workers, which make the sums. The answer is the same to the last
        digit, whatever the number of workers, and as without one.

    Returns
    -------
    Decision

    Examples
    --------
    A machine is inspected or not; what runs now inspects it half of the time.

    >>> import numpy as np, gqlab as gq
    >>> random = np.random.default_rng(0)
    >>> wear, inspect = random.random(2000), random.integers(2, size=2000)
    >>> cost = np.where(inspect, -0.3, -1.0 * (random.random(2000) < wear))
    >>> data = gq.Transitions.from_arrays(wear, inspect, cost, terminated=np.ones(2000, bool))
    >>> def when_worn(x):
    ...     return np.stack([x[:, 0] < 0.3, x[:, 0] >= 0.3], axis=1)
    >>> decision = gq.decide(data, {"when worn": when_worn, "never": lambda x: [[1, 0]] * len(x)}, discount=0.9)
    >>> decision["when worn"].verdict, decision["never"].verdict, decision.choice
    ('better', 'worse', 'when worn')
    """
    needed("sklearn", "decide()")
    checks.instance("data", data, Transitions, "a gqlab.Transitions")
    asked = _asked(policies, data)
    gamma = checks.number("discount", discount, least=0, most=1)
    base = _baseline(baseline, list(asked))
    sure = checks.number("confidence", confidence, above=0.5, below=1)
    wanted = _methods(methods)
    rewards = _reward_range(reward_range)
    start = checks.integer("seed", seed, least=0, below=2**31)
    workers = _workers(engine, data)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # On several threads the last digits depend on how many there are.
    with threadpool_limits(1, user_api="blas"), workers or nullcontext():
        seen = look(data, start)
        if gamma == 1 and not seen.n_terminated:
            raise ValueError("discount is 1, but no episode of the log ends: the values are infinite; expected below 1")
        _check_rewards(rewards, seen)
        made = features_of(features, data, np.asarray(seen.sample.observations, dtype=np.float64), start)
        judge = Estimator(data, seen, made, list(asked.values()), gamma, rewards, workers)
        found = judge.estimates(base)
        misfits = [_misfit(judge, p, one, start) for p, one in enumerate(found.policies)]
        others = other_methods(judge, found, wanted, data, start)
        support = _support(judge, found.policies, start)
    rows = _rows(list(asked), found.policies, misfits, base, sure, seen)
    notes = {name: _own(policies[name], made) for name in asked}
    whole = {name: _whole(row, others[p], wanted, sure, notes[name]) for p, (name, row) in enumerate(rows.items())}
    better = [row for row in whole.values() if row.verdict == BETTER]
    outside = (1 - sure) / 2
    return Decision(
        now=Now(found.now.estimate, found.now.bound(outside), found.now.bound(1 - outside)),
        choice=max(better, key=lambda row: row.gain_low).name if better else None,
        rows=whole, baseline=baseline, confidence=sure, discount=gamma, n_rows=seen.n_rows,
        n_episodes=seen.n_episodes, notes=(*data.notes, *_log_notes(seen, gamma)), places=support[0],
        missing=dict(zip(asked, support[1], strict=True)), observation_names=data.observation_names,
    )  # fmt: skip


# --- What is given ----------------------------------------------------------------------------------------------------


def _asked(policies: Any, data: Transitions) -> dict[str, Policy]:
    checks.instance("policies", policies, Mapping, "a dict of names and policies")
    if not policies:
        raise ValueError("policies is empty, expected at least one")
    for name in policies:
        if not isinstance(name, str) or not name or name == "log":
            raise ValueError(f"policies: {checks.shown(name)} is no name of a policy; expected text, other than 'log'")
    return {name: matched(f"policies[{name!r}]", policy, data) for name, policy in policies.items()}


def _baseline(baseline: Any, names: list[str]) -> int | None:
    known = checks.one_of("baseline", baseline, ("log", *names))
    if known != "log" and len(names) == 1:
        raise ValueError(f"baseline is {known!r}, the only policy; expected another to compare with it")
    return None if known == "log" else names.index(known)


def _methods(methods: Any) -> list[str]:
    given = [methods] if isinstance(methods, str) else checks.several("methods", methods)
    known = [checks.one_of("methods", method, ("solve", *importance.METHODS)) for method in given]
    return [method for method in dict.fromkeys(known) if method != "solve"]


def _reward_range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    pair = checks.array("reward_range", given, (2,))
    if pair[0] > pair[1]:
        raise ValueError(f"reward_range is ({pair[0]:g}, {pair[1]:g}), expected the least reward first")
    return float(pair[0]), float(pair[1])


def _workers(engine: Any, data: Transitions) -> Engine | None:
    """The engine, where the data are such that its workers can share them."""
    if engine is None:
        return None
    made = engine_of(engine)
    if parts(data) == [None]:
        what = "in memory" if data.in_memory else "CSV, a split, or read with gap, ends or drop_nulls"
        raise ValueError(
            f"engine: workers share Parquet files as they stand, and data is {what}: to_parquet writes one"
        )
    return made


def _check_rewards(rewards: tuple[float, float] | None, seen: LogLook) -> None:
    if rewards is not None and not rewards[0] <= seen.least <= seen.most <= rewards[1]:
        raise ValueError(
            f"reward_range is ({rewards[0]:g}, {rewards[1]:g}), but the log has rewards from {seen.least:g} to "
            f"{seen.most:g}"
        )


# --- What is found ----------------------------------------------------------------------------------------------------


def _misfit(judge: Estimator, p: int, estimate: Estimate, seed: int) -> float:
    """Whether residuals of policy p can be predicted; a table holds every function, and nothing is left to predict."""
    if judge.m.features.kind == "tabular":
        return 0.0
    how = PolicyWeights(estimate.theta, estimate.theta, None)
    inputs, delta, episode = [], [], []
    for block, pi in judge.sample:
        rows = np.asarray(block.observations[block.first])
        inputs.append(np.column_stack([rows, block.action[:, None] == np.arange(judge.A)]))
        delta.append(deltas(judge.m, block, pi(p), judge.gamma, how)[0])
        episode.append(block.episode)
    return misfit(np.concatenate(inputs), np.concatenate(delta), np.concatenate(episode), seed)


def _support(judge: Estimator, estimates: list[Estimate], seed: int) -> tuple[FloatArray, list[FloatArray]]:
    """Observations, and at each of them how much of what a policy does the log hardly holds."""
    n = sum(len(block.first) for block, _ in judge.sample)
    chosen = np.random.default_rng([seed, 2]).random(n) < MOST_PLACES / n
    places, at = [], 0
    missing: list[list[FloatArray]] = [[] for _ in estimates]
    for block, pi in judge.sample:
        rows = block.first[chosen[at : at + len(block.first)]]
        at += len(block.first)
        places.append(block.observations[rows])
        for p, estimate in enumerate(estimates):
            h = np.stack([judge.m.leverage(block.x[rows], a, estimate.inverse) for a in range(judge.A)], axis=1)
            missing[p].append((pi(p)[rows] * (h > UNSEEN)).sum(axis=1))
    return np.concatenate(places), [np.concatenate(parts) for parts in missing]


def _rows(
    names: list[str], estimates: list[Estimate], misfits: list[float], base: int | None, sure: float, seen: LogLook
) -> dict[str, DecisionRow]:
    """A row for each policy, with Holm's verdicts."""
    gates = [
        _gates(one, z, seen) + (_gates(estimates[base], misfits[base], seen, names[base]) if base is not None else [])
        for one, z in zip(estimates, misfits, strict=True)
    ]
    compared = [p for p in range(len(names)) if p != base]
    verdicts = holm([estimates[p].gain_tails() for p in compared], 1 - sure)
    adjusted = dict(zip(compared, verdicts, strict=True))
    out = {}
    for p, name in enumerate(names):
        one = estimates[p]
        gain_low, gain_high = one.gain_range(sure)
        alone = BETTER if gain_low > 0 else WORSE if gain_high < 0 else CANNOT_SAY
        verdict = CANNOT_SAY if gates[p] or p == base else adjusted[p]
        notes = [*gates[p], *(["It is what the others are compared with."] if p == base else [])]
        if one.bracketed and not one.thin:
            notes.append("What it does in places was hardly seen, and matters: the interval spans what rewards allow.")
        if not gates[p] and p != base and alone != verdict:
            notes.append(
                f"Its own bounds say {alone}; of {len(compared)} policies one may look so by chance, and Holm's "
                "correction leaves it open."
            )
        low, high = one.value_range(sure)
        gain = one.gains[0].estimate
        out[name] = DecisionRow(
            name, one.values[0].estimate, low, high, gain, gain_low, gain_high, verdict, one.effective_rows,
            one.unsupported, misfits[p], tuple(notes),
        )  # fmt: skip
    return out


def _gates(one: Estimate, z: float, seen: LogLook, of: str = "") -> list[str]:
    """Why nobody can say, in words."""
    whose = f" (of {of}, the baseline)" if of else ""
    out = []
    if seen.n_episodes < 2:
        out.append("The log has one episode: nothing tells how much episodes differ.")
    if abs(one.unsupported) > MOST_UNSUPPORTED:
        out.append(
            f"{100 * min(abs(one.unsupported), 1):.0f} % of its value{whose} comes from no row: the log hardly holds "
            f"what it does there; at most {100 * MOST_UNSUPPORTED:g} % may. The interval spans what rewards allow."
        )
    if not one.effective_rows >= LEAST_EFFECTIVE:
        out.append(
            f"Its value{whose} rests on {one.effective_rows:.0f} effective rows, expected at least "
            f"{LEAST_EFFECTIVE:.0f}."
        )
    if z > MOST_MISFIT:
        out.append(
            f"The features cannot hold its values{whose}: what they leave can be predicted (z = {z:.1f}, at most "
            f"{MOST_MISFIT:g}). Other features may."
        )
    return out


def holm(tails: list[tuple[float, float]], alpha: float) -> list[str]:
    """Verdicts of several gains by Holm's step-down: ``tails`` are the probabilities of so large, or so small, a gain.

    Examples
    --------
    >>> from gqlab.judge.deciding import holm
    >>> holm([(0.03, 0.97), (0.99, 0.01), (0.2, 0.8)], alpha=0.05)  # 0.01 < 0.05/3, but 0.03 > 0.05/2
    ['cannot say', 'worse', 'cannot say']
    """
    least = np.array([min(pair) for pair in tails])
    out = [CANNOT_SAY] * len(tails)
    for rank, p in enumerate(np.argsort(least, kind="stable")):
        if not least[p] < alpha / (len(tails) - rank):
            break
        out[p] = BETTER if tails[p][0] < tails[p][1] else WORSE
    return out


# --- Words ------------------------------------------------------------------------------------------------------------


def _own(policy: Any, features: Features) -> list[str]:
    """A note where values are judged with the features of the model itself."""
    encoder = getattr(policy, "encoder", None)
    if features.kind != "encoder" or encoder is None or not _same(encoder, features.encoder):
        return []
    return ["It is judged with the features that it was fitted with: what they cannot hold, nobody sees."]


def _same(a: Any, b: Any) -> bool:
    try:
        return a is b or a.to_dict() == b.to_dict()
    except Exception:  # a transformer that is not gqlab's
        return False


def _whole(row: DecisionRow, others: dict[str, Any], methods: list[str], sure: float, more: list[str]) -> DecisionRow:
    """The row, with what other methods say."""
    found, notes, outside = {}, [*row.notes, *more], (1 - sure) / 2
    for method in methods:
        one = others.get(method)
        if one is None:
            notes.append(f"{method} needs the behaviour's probabilities, which the log does not hold.")
            found[method] = Other(np.nan, np.nan, np.nan, np.nan)
        else:
            bounds = one.interval.bound(outside), one.interval.bound(1 - outside)
            found[method] = Other(one.interval.estimate, *bounds, one.effective_episodes)
    return replace(row, notes=tuple(notes), others=found)


def _log_notes(seen: LogLook, gamma: float) -> tuple[str, ...]:
    notes = []
    if not seen.flagged:
        notes.append(
            "No row of the log says that an episode ended or was cut off: each counts as cut off at its last row."
        )
    if gamma == 1 and seen.n_terminated < seen.n_episodes:
        notes.append(
            f"{seen.n_episodes - seen.n_terminated:,} of {seen.n_episodes:,} episodes were cut off: at a discount of 1 "
            "their rest is worth as much as what was seen."
        )
    return tuple(notes)
