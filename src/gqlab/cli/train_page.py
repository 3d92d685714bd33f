"""The report of ``gqlab train``: the learning curve, and one self-contained page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.cli.pages import score, written
from gqlab.learn.agent.agent import Agent
from gqlab.learn.agent.train import Plan, running_mean, solved_after
from gqlab.learn.playing import Evaluation
from gqlab.plots.style import BLUE, SOFT, VERMILION, short, write_figure
from gqlab.studies.page import Table, facts_table, figure, whole_page
from gqlab.support.words import counted

#: The number of episodes in the running mean of the figure.
SMOOTHED = 50


def write_curve(agent: Agent, history: Sequence[dict[str, float]], folder: Path) -> str:
    """``curve.png`` and ``curve.svg``; returns the text of the second."""
    return write_figure(lambda: draw(agent, history), folder, "curve")


def draw(agent: Agent, history: Sequence[dict[str, float]]) -> Any:
    """Returns against steps: every episode, their running mean, and the greedy policy with its range."""
    from matplotlib.figure import Figure

    page = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = page.subplots()
    ends, returns = np.array(agent.episodes.ends), np.array(agent.episodes.returns)
    if len(ends):
        shown = slice(None, None, max(1, len(ends) // 2000))  # a page need not hold a million dots
        axes.plot(ends[shown], returns[shown], ".", color=SOFT, alpha=0.35, markersize=3, label="episodes")
        mean = running_mean(returns, SMOOTHED)
        axes.plot(ends[shown], mean[shown], color=BLUE, label=f"mean of {SMOOTHED}")
    if history:
        steps, means, least, most = (
            np.array([row[name] for row in history]) for name in ("steps", "mean", "least", "largest")
        )
        axes.fill_between(steps, least, most, color=VERMILION, alpha=0.16, linewidth=0)
        axes.plot(steps, means, "o-", color=VERMILION, label="greedy policy, and its range")
    axes.xaxis.set_major_formatter(short)
    axes.set(xlabel="steps", ylabel="return of an episode")
    if axes.lines:
        page.legend(loc="outside upper right", ncols=3)
    return page


def page(agent: Agent, plan: Plan, found: Evaluation, history: Sequence[dict[str, float]], svg: str) -> str:
    """The whole page."""
    title = f"{type(plan.algorithm).__name__} on {plan.env}"
    lead = (
        f"The mean return of the greedy policy over {counted(len(found.returns), 'episode')}, after "
        f"{counted(agent.num_timesteps, 'step')}; standard deviation {found.std:.1f}, "
        f"least {score(found.returns.min())}, largest {score(found.returns.max())}."
    )
    rows = [[f"{row['steps']:,.0f}", *(score(row[k]) for k in ("mean", "least", "largest"))] for row in history[-12:]]
    few = max(1, plan.n_episodes // 5)
    return whole_page(
        title,
        f"<p class=score>{score(found.mean)}</p>\n<p class=lead>{escape(lead)}</p>\n"
        f"{_warning(agent)}{figure(svg)}\n{_solved(plan, history)}"
        f"<h2>The greedy policy on the way</h2>\n<p>Each over {counted(few, 'episode')}, the same "
        "starts every time.</p>\n"
        f"{Table(('steps', 'mean return', 'least', 'largest'), rows).html('plain')}\n"
        f"<h2>How it was learned</h2>\n{facts_table(facts(agent, plan))}\n"
        f"<h2>To use it</h2>\n<pre><code>{escape(usage(plan))}</code></pre>\n",
    )


def facts(agent: Agent, plan: Plan) -> list[tuple[str, str]]:
    """What was run, in words."""
    epsilon, encoder = agent.epsilon, agent.encoder
    return [
        ("algorithm", repr(agent.algorithm)),
        ("encoder", written(agent.encoder if plan.encoder is None else plan.encoder)),
        ("features", f"{encoder.n_features_out_:,} for each of {agent.n_actions} actions, {encoder.n_active_} active"),
        *_kept(agent),
        ("discount", f"{agent.discount:g}"),
        ("exploration", f"{epsilon.first:g} → {epsilon.last:g} over {epsilon.over:,.0f} steps"),
        ("seed", str(agent.seed)),
        ("steps, updates", f"{agent.num_timesteps:,}, {agent.n_updates:,}"),
        ("episodes", f"{len(agent.episodes):,}; the last {min(100, len(agent.episodes))}: "
                     f"mean return {score(agent.episodes.mean_return())}"),
    ]  # fmt: skip


def _kept(agent: Agent) -> list[tuple[str, str]]:
    """Of an agent that replays."""
    begun = [("initial value", f"{agent.initial_value:g}")] if agent.initial_value else []
    return begun if agent.replay is None else [("replay", repr(agent.replay)), *begun]


def solved_words(plan: Plan, solved: float) -> str:
    """Whether the threshold was reached and held."""
    wanted = f"A mean return of {score(math.nan if plan.threshold is None else plan.threshold)} was"
    if math.isinf(solved):
        return f"{wanted} not reached and held at the next two checks."
    return f"{wanted} reached after {solved:,.0f} steps, and held at the next two checks."


def usage(plan: Plan) -> str:
    """A few lines of Python."""
    return (
        "import gymnasium, gqlab as gq\n\n"
        'model = gq.LinearQ.load("model.npz")\n'
        f"env = gymnasium.make({', '.join([repr(plan.env), *(f'{k}={v!r}' for k, v in plan.env_kwargs.items())])})\n"
        "observation, _ = env.reset()\n"
        "action, _ = model.predict(observation)\n\n"
        'agent = gq.Agent.load("agent.npz")  # goes on where it stopped\n'
        "agent.learn(10_000)\n"
    )


def _solved(plan: Plan, history: Sequence[dict[str, float]]) -> str:
    if plan.threshold is None:
        return ""
    return f"<p>{escape(solved_words(plan, solved_after(plan, history)))}</p>\n"


def _warning(agent: Agent) -> str:
    if not agent.diverged:
        return ""
    return "<p class=bad>The agent diverged and stopped learning: take a smaller step size, or a radius.</p>\n"
