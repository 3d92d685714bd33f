"""What a log says of policies: a row for each, a verdict, and a choice."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gqlab.data.arrow import needed
from gqlab.judge.estimates import is_thin
from gqlab.judge.misfit import MOST_MISFIT
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: What a verdict may be.
BETTER, WORSE, CANNOT_SAY = "better", "worse", "cannot say"


@dataclass(frozen=True)
class Now:
    """What runs now: its mean discounted return, with a two-sided interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Other:
    """What another method says of a policy's value; NaN where it cannot say anything."""

    value: float
    low: float
    high: float
    effective_episodes: float


@dataclass(frozen=True)
class DecisionRow:
    """What the log says of one policy.

    Attributes
    ----------
    name : str
    value, low, high : float
        Its value from where episodes begin, with a two-sided interval.
    gain, gain_low, gain_high : float
        Its gain over the baseline, with bounds that are one-sided each, and not adjusted for several policies.
    verdict : {"better", "worse", "cannot say"}
    effective_rows : float
        (Σw)²/Σw² of the rows' weights w.
    unsupported : float
        The share of its value that comes from no row.
    misfit : float
        How well trees can predict the residuals: above 3 the features cannot hold its values. 0 for a table, which
        holds every function of observation and action.
    notes : tuple of str
        In words.
    others : mapping
        By method: what it says of the value.
    """

    name: str
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    verdict: str
    effective_rows: float
    unsupported: float
    misfit: float
    notes: tuple[str, ...] = ()
    others: Mapping[str, Other] = field(default_factory=dict)

    @property
    def thin(self) -> bool:
        """Whether the log holds too little of what the policy does."""
        return is_thin(self.unsupported, self.effective_rows)


#: The numbers of a row, in the order of tables.
NUMBERS = ("value", "low", "high", "gain", "gain_low", "gain_high", "effective_rows", "unsupported", "misfit")


@dataclass(frozen=True)
class Decision(Mapping[str, DecisionRow]):
    """What a log says of several policies, beside what runs now.

    Attributes
    ----------
    now : Now
        What runs now: value, low, high.
    choice : str or None
        The policy that is better with the largest lower bound of its gain; None: keep what runs now.
    rows : mapping
        By name; ``decision["name"]`` is a row.
    baseline : str
        What gains are over: "log", or a policy's name.
    confidence, discount : float
    n_rows, n_episodes : int
    notes : tuple of str
        On the log as a whole.
    places : (n, size) array
        Observations of the log, and
    missing : mapping
        for each policy how much of what it does there the log hardly holds, (n,).
    observation_names : tuple of str, or None
        Of the numbers of an observation.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.judge.simulated import sampled_log
    >>> mdp = gq.garnet(5, 3, 2, discount=0.9, seed=0)
    >>> data = sampled_log(mdp, np.full((5, 3), 1 / 3), n_rows=3000, horizon=30)
    >>> reward = mdp.expected_reward
    >>> good, bad = np.eye(3)[reward.argmax(axis=1)], np.eye(3)[reward.argmin(axis=1)]
    >>> decision = gq.decide(data, {"good": good, "bad": bad}, discount=0.9, features="tabular")
    >>> decision.choice, decision["good"].verdict, decision["bad"].verdict
    ('good', 'better', 'worse')
    """

    now: Now
    choice: str | None
    rows: Mapping[str, DecisionRow]
    baseline: str
    confidence: float
    discount: float
    n_rows: int
    n_episodes: int
    notes: tuple[str, ...] = ()
    places: FloatArray = field(default_factory=lambda: np.empty((0, 1)), repr=False)
    missing: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)
    observation_names: tuple[str, ...] | None = None

    def __getitem__(self, name: str) -> DecisionRow:
        if name not in self.rows:
            raise KeyError(f"there is no policy {name!r}; known: {', '.join(self.rows)}")
        return self.rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{name!r}: {row.verdict!r}" for name, row in self.rows.items())
        return f"Decision(choice={self.choice!r}, verdicts={{{verdicts}}})"

    def __str__(self) -> str:
        return self.table

    @property
    def sentence(self) -> str:
        """The answer in one sentence.

        Examples
        --------
        >>> import numpy as np, gqlab as gq
        >>> data = gq.Transitions.from_arrays([0, 1] * 20, [0, 1] * 20, [0, 1] * 20, [1, 0] * 20, [0, 1] * 20)
        >>> gq.decide(data, {"other": [[0, 1], [1, 0]]}, discount=0.9, features="tabular").sentence
        'Keep what runs now: other is not better with 95 % confidence; the log has too few rows of what other does.'
        """
        sure = f"with {100 * self.confidence:g} % confidence"
        what = "what runs now" if self.baseline == "log" else f"{self.baseline}"
        if self.choice is not None:
            row = self.rows[self.choice]
            return (
                f"Take {self.choice}: it is better than {what} {sure}, "
                f"by {short(row.gain)} or so, and by {short(row.gain_low)} at least."
            )
        asked = [row for name, row in self.rows.items() if name != self.baseline]
        which = f"{asked[0].name} is not" if len(asked) == 1 else f"none of {len(asked)} policies is"
        return f"Keep {what}: {which} better {sure}{reason(asked)}."

    @property
    def table(self) -> str:
        """Everything as text: the answer, a row for what runs now, one for each policy, and the notes."""
        return f"{self.sentence}\n\n{self._lines()}"

    def _lines(self) -> str:
        """The table and the notes."""
        head, body = self._cells()
        widths = [max(len(row[k]) for row in (head, *body)) for k in range(len(head))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in (head, *body)
        ]
        notes = [*self.notes, *(f"{name}: {note}" for name, row in self.rows.items() for note in row.notes)]
        return "\n".join([*(line.rstrip() for line in lines), *([""] if notes else []), *notes])

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        methods = list(dict.fromkeys(method for row in self.rows.values() for method in row.others))
        head = ["policy", "value", "interval", "gain", "bounds", "verdict", "effective rows", "unsupported", "misfit"]
        now = ["what runs now", short(self.now.value), _range(self.now.low, self.now.high)]
        body = [now + [""] * (len(head) + len(methods) - len(now))]
        for name, row in self.rows.items():
            body.append([
                name, short(row.value), _range(row.low, row.high), f"{row.gain:+.4g}",
                _range(row.gain_low, row.gain_high), row.verdict, f"{row.effective_rows:,.0f}",
                f"{100 * row.unsupported:.1f} %", f"{row.misfit:.1f}",
                *(_other(row.others.get(method)) for method in methods),
            ])  # fmt: skip
        return [*head, *methods], body

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<p><b>{html.escape(self.sentence)}</b></p>{self._html()}"

    def _html(self) -> str:
        """The table and the notes."""
        head, body = self._cells()
        notes = [*self.notes, *(f"{name}: {note}" for name, row in self.rows.items() for note in row.notes)]
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in body]
        return (
            "<table><thead><tr>"
            + "".join(f"<th>{html.escape(name)}</th>" for name in head)
            + "</tr></thead><tbody>"
            + "".join(f"<tr>{row}</tr>" for row in cells)
            + "</tbody></table>"
            + (f"<ul>{''.join(f'<li>{html.escape(note)}</li>' for note in notes)}</ul>" if notes else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON can write it; what is not a finite number is None."""
        rows = {
            name: {
                **{key: _plain(getattr(row, key)) for key in NUMBERS},
                "verdict": row.verdict,
                "notes": list(row.notes),
                "others": {method: {k: _plain(v) for k, v in vars(one).items()} for method, one in row.others.items()},
            }
            for name, row in self.rows.items()
        }
        return {
            "choice": self.choice, "sentence": self.sentence, "now": {k: _plain(v) for k, v in vars(self.now).items()},
            "policies": rows, "baseline": self.baseline, "confidence": self.confidence, "discount": self.discount,
            "rows": self.n_rows, "episodes": self.n_episodes, "notes": list(self.notes),
        }  # fmt: skip

    def to_dataframe(self) -> Any:
        """A row for each policy, and one for what runs now, as a data frame of pandas."""
        pd = needed("pandas", "to_dataframe()")
        now = {"policy": "what runs now", "value": self.now.value, "low": self.now.low, "high": self.now.high}
        rows = [
            {"policy": name, **{key: getattr(row, key) for key in NUMBERS}, "verdict": row.verdict}
            | {f"{method}_{key}": value for method, one in row.others.items() for key, value in vars(one).items()}
            | {"notes": " ".join(row.notes)}
            for name, row in self.rows.items()
        ]
        return pd.DataFrame([now, *rows]).set_index("policy")

    def plot(self, policy: str | None = None, axes: Any = None) -> Any:
        """Gains with their bounds against zero, thin ones hatched; and where support is missing.

        Parameters
        ----------
        policy : str, optional
            Whose support is shown; by default that of which most is missing.
        axes : two Axes of Matplotlib, optional

        Returns
        -------
        array of two Axes
        """
        from gqlab.plots.decisions import Gain, draw

        if policy is not None:
            checks.one_of("policy", policy, self.rows)
        shares = {name: float(values.mean()) for name, values in self.missing.items() if len(values)}
        shown = policy or max(shares, key=lambda name: shares[name], default=None)
        gains = [
            Gain(name, row.gain, row.gain_low, row.gain_high, row.verdict, row.thin)
            for name, row in self.rows.items()
            if name != self.baseline
        ]
        what = "what runs now" if self.baseline == "log" else self.baseline
        support = None if shown is None else (shown, self.places, self.missing[shown], self.observation_names)
        return draw(gains, what, self.confidence, support, axes)


def reason(rows: Sequence[DecisionRow]) -> str:
    """Why none of these is known to be better, as the end of a sentence; empty where the data say just that."""
    thin = [row.name for row in rows if row.thin]
    if thin:
        listed = ", ".join(thin[:-1]) + (" and " if len(thin) > 1 else "") + thin[-1]
        return f"; the log has too few rows of what {listed} {'does' if len(thin) == 1 else 'do'}"
    if any(row.misfit > MOST_MISFIT for row in rows):
        return f"; the features cannot hold {'its' if len(rows) == 1 else 'their'} values"
    return ""


def short(value: float) -> str:
    """Four figures."""
    return f"{value:.4g}"


def _range(low: float, high: float) -> str:
    return f"{low:.4g} … {high:.4g}"


def _other(one: Other | None) -> str:
    return "–" if one is None or math.isnan(one.value) else f"{one.value:.4g} ({_range(one.low, one.high)})"


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
