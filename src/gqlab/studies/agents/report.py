"""The benchmark's table: as text, Markdown, JSON and a page."""

from __future__ import annotations

import json
from html import escape

from gqlab.studies.agents.benchmark import AgentEntries, Entry
from gqlab.studies.agents.design import ENVIRONMENTS, FULL, GOALS, LANDER, Goal, Programme
from gqlab.studies.page import Table, fixed, whole_page

#: The programmes that were written down with goals: a smaller one says nothing about them.
JUDGED = (FULL, LANDER)

PUBLISHED = "Stable-Baselines3's DQN, published by rl-zoo3"


def _score(value: float) -> str:
    return fixed(value, 0)


def _step(eta: float | None) -> str:
    return "" if eta is None else f"1/{round(1 / eta)}" if eta < 1 else f"{eta:g}"


def _cells(entry: Entry) -> list[str]:
    """The median at the best step size, its range over seeds, and how many step sizes solve."""
    k = entry.best
    low, high = entry.means[k].min(), entry.means[k].max()
    at = f", η = {_step(entry.step_sizes[k])}" if entry.step_sizes[k] is not None else ""
    share = "–" if entry.step_sizes == (None,) else f"{entry.n_solve} of {len(entry.medians)}"
    lost = f", {entry.diverged} diverged" if entry.diverged else ""
    return [f"{_score(entry.medians[k])} ({_score(low)} … {_score(high)}{at})", share + lost]


def full_table(entries: AgentEntries, programme: Programme) -> Table:
    """Rows × environments, with what rl-zoo3 publishes."""
    header = [""]
    for name in programme.environments:
        env = ENVIRONMENTS[name]
        steps = round(programme.share * env.steps / 1000)
        header += [f"{name}, {steps}k steps, {env.features}", f"step sizes with ≥ {_score(env.solved)}"]
    rows = [[row, *(cell for entry in each.values() for cell in _cells(entry))] for row, each in entries.items()]
    dqn = [cell for name in programme.environments for cell in (ENVIRONMENTS[name].dqn, "")]
    return Table(header, [*rows, [f"{PUBLISHED} (one run)", *dqn]])


def note(programme: Programme) -> str:
    """What a number of the table is."""
    return (
        f"Median over {programme.n_seeds} seeds of the greedy policy's mean return at the best of "
        f"{len(programme.step_sizes)} step sizes (least … largest seed), over {programme.n_episodes} episodes after "
        "learning."
    )


def markdown(entries: AgentEntries, programme: Programme) -> str:
    """The table, and what it was to show."""
    judged = [f"* {line}" for line in verdicts(entries, programme)]
    parts = [full_table(entries, programme).markdown(), "", note(programme), *(["", *judged] if judged else [])]
    return "\n".join(parts) + "\n"


def verdicts(entries: AgentEntries, programme: Programme) -> list[str]:
    """Of every goal on these environments: met or missed, with the number; none of a smaller programme."""
    out = []
    for goal in GOALS if programme in JUDGED else ():
        if goal.environment not in programme.environments:
            continue
        value, unit = reached(entries, goal)
        out.append(f"{goal.text}: {'met' if value >= goal.least else 'missed'} ({_score(value)}{unit})")
    return out


def reached(entries: AgentEntries, goal: Goal) -> tuple[float, str]:
    """The number that a goal asks for."""
    found = [entries[row][goal.environment] for row in goal.rows]
    if goal.counts_step_sizes:
        return max(entry.n_solve for entry in found), f" of {len(found[0].medians)}"
    return float(max(entry.medians.max() for entry in found)), ""


def text(entries: AgentEntries, programme: Programme) -> str:
    """The table for a terminal."""
    header = ["", *(cell for name in programme.environments for cell in (name, "solve"))]
    rows = [[row, *(cell for entry in each.values() for cell in _cells(entry))] for row, each in entries.items()]
    dqn = ", ".join(f"{name} {ENVIRONMENTS[name].dqn}" for name in programme.environments)
    judged = [f"* {line}" for line in verdicts(entries, programme)]
    parts = [Table(header, rows).text(numbers=False), "", f"{PUBLISHED}: {dqn}"]
    return "\n".join([*parts, *(["", *judged] if judged else [])])


def page(entries: AgentEntries, programme: Programme) -> str:
    """One page that needs nothing else."""
    judged = "".join(f"<li>{escape(line)}</li>" for line in verdicts(entries, programme))
    goals = f"\n<h2>What it was to show</h2>\n<ul>{judged}</ul>" if judged else ""
    body = f"<p class=lead>{escape(note(programme))}</p>\n{full_table(entries, programme).html()}{goals}"
    return whole_page("What agents reach", body)


def numbers(entries: AgentEntries) -> str:
    """Everything as JSON."""
    rows = {
        row: {
            name: {
                "step_sizes": entry.step_sizes,
                "means": entry.means.tolist(),
                "medians": entry.medians.tolist(),
                "n_solve": entry.n_solve,
                "diverged": entry.diverged,
            }
            for name, entry in each.items()
        }
        for row, each in entries.items()
    }
    return json.dumps({"rows": rows}, ensure_ascii=False, indent=1, allow_nan=False)
