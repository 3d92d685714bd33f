"""The baselines' step sizes: what tuning tried and found, and how the paper's own and the tuned ones do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gqlab.studies.paper.experiments import RADIUS, SETTINGS, setting_name
from gqlab.studies.paper.results import Results


class TriedSetting(NamedTuple):
    """One setting of the grid: the mean over problems and runs of the exact long-run reward at the end."""

    name: str
    reward: float
    best: bool
    note: str


def table(results: Results) -> list[TriedSetting]:
    """All settings, the best of either algorithm marked."""
    s = SETTINGS[results.experiment.family]
    chosen = {setting_name(s.critic(s.tuned_critic)), setting_name(s.gradient(s.tuned_gradient))}
    paper = {setting_name(s.critic()), setting_name(s.gradient())}
    names = [entry.label for entry in results.experiment.part("tuning").entries]
    reward = {
        n: float(np.mean([m.values["exact_reward"][:, -1].mean() for m in results.each("tuning", n)])) for n in names
    }
    kind = {n: n.split(",")[0] for n in names}
    best = {k: max((n for n in names if kind[n] == k), key=lambda n: reward[n]) for k in set(kind.values())}
    notes = {n: [] for n in names}  # type: dict[str, list[str]]
    for n in names:
        notes[n] += ["the paper's"] if n in paper else []
        notes[n] += ["the best here"] if best[kind[n]] == n else []
        notes[n] += ["the tuned one"] if n in chosen else []
    return [TriedSetting(n, reward[n], best[kind[n]] == n, ", ".join(notes[n])) for n in names]


def reading(results: Results) -> list[str]:
    """What the learning curves show: the mean value at the start and at the end, and the runs that sit on the ball."""
    out = []
    for part, names in (("curves", ("actor-critic", "actor-critic, tuned")),
                        ("reward", ("policy gradient", "policy gradient, tuned"))):  # fmt: skip
        for name in names:
            found = results.each(part, name)
            value = np.array([m.values["value"][:, [0, -1]].mean(axis=0) for m in found])
            norm = np.concatenate([m.values["norm"][:, -1] for m in found])
            first, last = value.mean(axis=0)
            fell, n = int((value[:, 1] < value[:, 0]).sum()), len(value)
            on_ball = float((norm >= RADIUS * (1 - 1e-6)).mean())
            out.append(
                f"{name}: the exact value goes from {first:.4g} to {last:.4g} in the mean, and falls on {fell} of {n} "
                f"problems; {100 * on_ball:.0f} % of the runs end on the ball ‖θ‖ = {RADIUS:g}."
            )
    return out
