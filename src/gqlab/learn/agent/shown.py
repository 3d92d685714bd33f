"""What notebooks show of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gqlab.support.notebook import html_card

if TYPE_CHECKING:
    from gqlab.learn.agent.agent import Agent


def agent_card(agent: Agent) -> str:
    """What it is made of, and how far it is."""
    episodes = agent.episodes
    facts = {
        "environment": agent.env,
        "encoder": " ".join(repr(agent.encoder).split()),
        "algorithm": repr(agent.algorithm),
        "steps": f"{agent.num_timesteps:,}",
        "episodes": f"{len(episodes):,}",
        "mean return of the last 100": f"{episodes.mean_return():.4g}" if len(episodes) else "–",
    }
    return html_card("Agent", facts)
