"""What ``gqlab fit`` says of its own model: a fit to half of the episodes is judged by the other half."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gqlab.data.transitions import Transitions
from gqlab.judge.deciding import decide
from gqlab.judge.decision import Decision
from gqlab.learn.linear_q import LinearQ
from gqlab.support.files import one_line
from gqlab.support.words import counted

#: What the sentence calls it.
NAME = "the model"


class OwnDecision(NamedTuple):
    """Sentences for the page, the answer first; and the decision, where one could be made."""

    lines: list[str]
    decision: Decision | None = None


def judged(data: Transitions, learn: Callable[[Transitions], LinearQ], discount: float, seed: int) -> OwnDecision:
    """Whether what ``learn`` makes of half of the episodes is better than what runs now, by the other half."""
    try:
        fitted_to, judging = data.split(0.5, seed)
        model = learn(fitted_to)
        if model.metadata.get("diverged"):
            return unjudged("the fit to half of the episodes diverged")
        decision = decide(judging, {NAME: model}, discount, seed=seed)
    except (ValueError, MemoryError) as error:
        what = one_line(error) or type(error).__name__
        return unjudged(f"too large for the memory: {what}" if isinstance(error, MemoryError) else what)
    lines = [
        decision.sentence,
        f"That was asked of a fit to half of the episodes ({counted(fitted_to.n_rows, 'row')}), and the other half "
        f"({counted(judging.n_rows, 'row')}) answered; the saved model is fitted to all of them.",
    ]
    return OwnDecision([*lines, *decision[NAME].notes], decision)


def unjudged(why: Any) -> OwnDecision:
    """One line that says why nobody knows."""
    return OwnDecision([f"Whether the model is better than what runs now is not known: {str(why).rstrip('.')}."])
