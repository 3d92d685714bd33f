"""select(): fit candidates to one part of the episodes, judge them by the other, and keep what runs now unless sure."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gqlab.data.transitions import Transitions
from gqlab.judge.deciding import decide
from gqlab.judge.decision import Decision, DecisionRow
from gqlab.judge.misfit import MOST_MISFIT
from gqlab.learn.fit.fit import fit
from gqlab.learn.linear_q import LinearQ
from gqlab.support import checks

#: What is said where a candidate cannot be judged.
DIVERGED = "Its fit diverged: it is not judged."


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

    def __str__(self) -> str:
        lines = [self.sentence, *self.notes]
        return "\n".join(lines if self.decision is None else [*lines, "", self.decision.table])

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.choice is None or self.decision is None:
            return "Keep what runs now: no candidate has a gain whose lower bound is above 0."
        row = self.decision[self.choice]
        return f"Take {self.choice}: its gain is {row.gain:.4g}, and at least {row.gain_low:.4g}."

    def _repr_html_(self) -> str:
        """For notebooks."""
        table = "" if self.decision is None else self.decision._repr_html_()
        lines = [f"<p><b>{html.escape(self.sentence)}</b></p>", *(f"<p>{html.escape(note)}</p>" for note in self.notes)]
        return "".join(lines) + table


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
        Names with algorithms of :func:`gqlab.fit`, such as ``FittedQ(ridge=1e-3)`` and ``LSPI()``.
    encoder : encoder
        Whose features the candidates are fitted with.
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
    checks.instance("refit", refit, bool, "True or False")
    share = checks.number("split", split, above=0, below=1)
    start = checks.integer("seed", seed, least=0, below=2**31)
    fitted_to, judging = data.split(share, start)
    models = {
        name: _fitted(f"candidates[{name!r}]", algorithm, fitted_to, encoder, discount, start)
        for name, algorithm in candidates.items()
    }
    sound = {name: model for name, model in models.items() if not model.metadata.get("diverged")}
    notes = [f"{name}: {DIVERGED}" for name in models if name not in sound]
    how = {"features": features, "confidence": confidence, "reward_range": reward_range, "seed": start}
    decision = decide(judging, sound, discount, **how) if sound else None
    able = [row for row in decision.values() if row.gain_low > 0 and not misfit(row)] if decision else []
    choice = max(able, key=lambda row: row.gain_low).name if able else None
    model = None if choice is None else models[choice]
    if choice is not None and decision is not None and decision[choice].thin:
        notes.append(
            f"{choice}: the log is thin, but the lower bound is above 0 even with the least that rewards allow where "
            "nothing was seen."
        )
    if choice is not None and refit:
        model = _fitted(f"candidates[{choice!r}]", candidates[choice], data, encoder, discount, start)
        notes.append(
            f"The model is fitted to all {data.n_rows:,} rows; what is said of it is said of a fit to "
            f"{fitted_to.n_rows:,} of them, which the others judged."
        )
    return Selection(choice, model, decision, models, refit and choice is not None, tuple(notes))


def misfit(row: DecisionRow) -> bool:
    """Whether the features cannot hold a policy's values: then its bounds mean nothing."""
    return row.misfit > MOST_MISFIT


def _fitted(name: str, algorithm: Any, data: Transitions, encoder: Any, discount: float, seed: int) -> LinearQ:
    try:
        return fit(data, encoder, algorithm, discount=discount, seed=seed, progress=False)
    except ValueError as error:
        if str(error).startswith("algorithm"):
            raise ValueError(f"{name}: {error}") from None
        raise
