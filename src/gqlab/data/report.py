"""The health of data: what one pass over it finds, with what that means for learning."""

from __future__ import annotations

from typing import Any

from gqlab.data.coverage import Bounds, Coverage, bounded
from gqlab.data.encoding import fit_encoder
from gqlab.data.findings import Finding, Health
from gqlab.data.propensities import Propensities
from gqlab.data.samples import Correlated, Importance
from gqlab.data.shifted import Shifted
from gqlab.data.tallies import ActionTallies, Columns, Duplicates, Ends, Following, Rewards, Tally
from gqlab.data.transitions import Transitions
from gqlab.support import checks
from gqlab.support.words import counted

__all__ = ["Finding", "Health", "health"]


def health(data: Transitions, encoder: Any = None, target: Any = None, *, discount: float = 0.99) -> Health:
    """What is in data, and what it means for learning, in one pass.

    Parameters
    ----------
    data : Transitions
    encoder : encoder, optional
        Adds what its features see: coverage, rank and eigenvalues of C = mean of φφᵀ, observations outside its bounds.
        One that is not fitted is fitted to the data, in a copy.
    target : policy, optional
        Adds the effective sample size of its importance weights, where the data hold behaviour probabilities. A
        LinearQ, an Agent, a function of observations (n, size) that gives probabilities (n, n_actions), or a
        FixedPolicy or a table where the observation is the state.
    discount : float
        γ, for the largest ``|Q|`` that makes sense.

    Returns
    -------
    Health
        ``findings``, each with a name, a level, a value and a meaning; ``print`` shows them as a table.

    Examples
    --------
    >>> import gqlab as gq
    >>> report = gq.health(gq.collect("FrozenLake-v1", n_steps=2000), discount=0.5)
    >>> report["actions"].level, report["largest |Q|"].value
    ('ok', 2.0)
    """
    checks.instance("data", data, Transitions, "Transitions")
    discount = checks.number("discount", discount, least=0, below=1)
    tallies: list[Tally] = [
        Ends(data), Rewards(data, discount), Shifted(data), Columns(data), Following(data), Duplicates(data),
        ActionTallies(data), Importance(data, target), Propensities(data), Correlated(data),
    ]  # fmt: skip
    if encoder is not None:
        encoder = fit_encoder(encoder, data)
        if bounded(encoder):
            tallies.append(Bounds(data, encoder))
        tallies.append(Coverage(data, encoder))
    for chunk in data.chunks():
        for tally in tallies:
            tally.add(chunk)
    size = counted(data.observation_size, "number")
    rows = Finding("rows", "ok", data.n_rows, f"Transitions, with observations of {size}.")
    notes = [Finding("how rows were read", "note", k + 1, note) for k, note in enumerate(data.notes)]
    return Health([rows, *notes, *(finding for tally in tallies for finding in tally.findings())], data.description)
