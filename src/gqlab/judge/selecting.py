"""select(): fit candidates to one part of the episodes, judge them by the other, and keep what runs now unless sure."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gqlab.data.transitions import Transitions
from gqlab.judge.deciding import decide
from gqlab.judge.decision import BETTER, Decision, DecisionRow, reason, short
from gqlab.judge.misfit import MOST_MISFIT
from gqlab.learn.fit.fit import fit
from gqlab.learn.linear_q import LinearQ
from gqlab.support import checks

#: What is said where a candidate cannot be judged.
DIVERGED = "Its fit diverged: it is not judged."


class Candidate(NamedTuple):
    """A way to fit a policy: an algorithm, with features and passes of its own where they are given."""

    algorithm: Any
    encoder: Any = None
    n_passes: int | None = None


@dataclass(frozen=True)
class Selection:
    """What :func:`gqlab.select` has chosen.

    Attributes
    ----------
    choice : str or None
        The candidate whose gain has the largest lower bound, where that is above 0; None: keep what runs now.
    model : LinearQ or None
        Of the choice: fitted to its part of the episodes, or with ``refit=True`` to all of them.
    decision : Decision or None
        What the other episodes say of the candidates; its own ``choice`` is Holm's. None where all of them diverged.
    models : mapping
        The candidates, fitted to their part.
    refitted : bool
        Whether ``model`` was fitted to all episodes.
    notes : tuple of str
    """

    choice: str | None
    model: LinearQ | None
    decision: Decision | None
    models: Mapping[str, LinearQ] = field(repr=False)
    refitted: bool
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Selection(choice={self.choice!r}, candidates={list(self.models)}, decision={self.decision!r})"

    def __str__(self) -> str:
        return self.table

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.decision is None:
            which = (
                "the fit of the only candidate"
                if len(self.models) == 1
                else f"the fits of all {len(self.models)} candidates"
            )
            return f"Keep what runs now: {which} diverged, and nothing is left to judge."
        sure = f"with {100 * self.decision.confidence:g} % confidence"
        if self.choice is not None:
            row = self.decision[self.choice]
            return (
                f"Take {self.choice}: it gains {short(row.gain)} or so over what runs now, and at least "
                f"{short(row.gain_low)} {sure}."
            )
        rows = list(self.decision.values())
        which = f"{rows[0].name} is not" if len(rows) == 1 else f"none of {len(rows)} candidates is"
        return f"Keep what runs now: {which} better {sure}{reason(rows)}."

    @property
    def table(self) -> str:
        """Everything as text: the answer, how it was found, and what the other episodes say of each candidate."""
        below = "" if self.decision is None else f"\n\n{self.decision._lines()}"
        return "\n".join([self.sentence, *self.notes]) + below

    def _repr_html_(self) -> str:
        """For notebooks."""
        table = "" if self.decision is None else self.decision._html()
        lines = [f"<p><b>{html.escape(self.sentence)}</b></p>", *(f"<p>{html.escape(note)}</p>" for note in self.notes)]
        return "".join(lines) + table

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON can write it: a decision's, with this choice."""
        judged = {"policies": {}, "notes": []} if self.decision is None else self.decision.to_dict()
        return judged | {
            "choice": self.choice, "sentence": self.sentence, "notes": [*self.notes, *judged["notes"]],
            "refitted": self.refitted,
        }  # fmt: skip


def select(
    data: Transitions,
    candidates: Mapping[str, Any],
    encoder: Any,
    discount: float,
    split: float = 0.5,
    *,
    refit: bool = False,
    features: Any = "trees",
    confidence: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> Selection:
    """Choose among ways to fit a policy: each is fitted to one part of the episodes, and judged by the other.

    The choice is the candidate whose gain over what runs now has the largest lower bound, which is not adjusted for
    there being several; where none is above 0, what runs now is kept. The largest estimate would be a worse rule: of
    many candidates it belongs to the one with the most luck.

    Parameters
    ----------
    data : Transitions
    candidates : dict
        Names with algorithms of :func:`gqlab.fit`, such as ``FittedQ(ridge=1e-3)`` and ``LSPI()``, or with tuples
        ``(algorithm, encoder)`` and ``(algorithm, encoder, n_passes)`` where these are a candidate's own.
    encoder : encoder
        Whose features the candidates are fitted with that have none of their own.
    discount : float
    split : float
        The share of the episodes that candidates are fitted to.
    refit : bool
        Fit the choice again, to all episodes. What was judged is the model of a part of them: the new one is likely to
        be better, but nothing says so.
    features, confidence, reward_range
        As of :func:`gqlab.decide`.
    seed : int
        Of the split, of fits and of what judges them.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.judge.simulated import sampled_log
    >>> mdp = gq.garnet(5, 3, 2, discount=0.9, seed=0)
    >>> data = sampled_log(mdp, np.full((5, 3), 1 / 3), n_rows=3000, horizon=30)
    >>> candidates = {"plain": gq.FittedQ(), "LSPI": gq.LSPI()}
    >>> found = gq.select(data, candidates, gq.OneHot(5), discount=0.9, features="tabular")
    >>> found.choice in candidates, found.decision[found.choice].verdict
    (True, 'better')
    """
    checks.instance("data", data, Transitions, "a gqlab.Transitions")
    checks.instance("candidates", candidates, Mapping, "a dict of names and algorithms")
    if not candidates:
        raise ValueError("candidates is empty, expected at least one")
    asked = {name: _candidate(f"candidates[{name!r}]", one, encoder) for name, one in candidates.items()}
    checks.instance("refit", refit, bool, "True or False")
    gamma = checks.number("discount", discount, least=0, below=1)
    share = checks.number("split", split, above=0, below=1)
    start = checks.integer("seed", seed, least=0, below=2**31)
    fitted_to, judging = data.split(share, start)
    models = {name: _fitted(name, one, fitted_to, gamma, start) for name, one in asked.items()}
    sound = {name: model for name, model in models.items() if not model.metadata.get("diverged")}
    notes = [f"{name}: {DIVERGED}" for name in models if name not in sound]
    how = {"features": features, "confidence": confidence, "reward_range": reward_range, "seed": start}
    decision = decide(judging, sound, gamma, **how) if sound else None
    able = [row for row in decision.values() if row.gain_low > 0 and not misfit(row)] if decision else []
    best = max(able, key=lambda row: row.gain_low, default=None)
    if best is None:
        return Selection(None, None, decision, models, False, tuple(notes))
    notes += on_choice(best)
    model = models[best.name]
    if refit:
        model = _fitted(best.name, asked[best.name], data, gamma, start)
        notes.append(
            f"The model is fitted to all {data.n_rows:,} rows; what is said of it is said of a fit to "
            f"{fitted_to.n_rows:,} of them, which the others judged."
        )
    return Selection(best.name, model, decision, models, refit, tuple(notes))


def misfit(row: DecisionRow) -> bool:
    """Whether the features cannot hold a policy's values: then its bounds mean nothing."""
    return row.misfit > MOST_MISFIT


def on_choice(row: DecisionRow) -> list[str]:
    """Why it is taken, where its verdict does not say so."""
    if row.thin:
        return [
            f"{row.name}: the log is thin, but the lower bound is above 0 even with the least that rewards allow where "
            "nothing was seen."
        ]
    if row.verdict != BETTER:
        return [f"{row.name}: beside the others its verdict is open, by Holm's rule; the choice goes by its own bound."]
    return []


def _candidate(name: str, given: Any, encoder: Any) -> Candidate:
    """An algorithm with an encoder, that of all candidates where it has none."""
    if isinstance(given, tuple) and not 1 <= len(given) <= 3:
        raise ValueError(
            f"{name} has {len(given)} parts, expected (algorithm, encoder) or (algorithm, encoder, n_passes)"
        )
    one = Candidate(*given) if isinstance(given, tuple) else Candidate(given)
    return one._replace(encoder=encoder) if one.encoder is None else one


def _fitted(name: str, one: Candidate, data: Transitions, discount: float, seed: int) -> LinearQ:
    try:
        return fit(
            data, one.encoder, one.algorithm, discount=discount, n_passes=one.n_passes, seed=seed, progress=False
        )
    except ValueError as error:
        raise ValueError(f"candidates[{name!r}]: {error}") from None
