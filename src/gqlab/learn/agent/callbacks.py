"""What can be done while an agent learns: evaluate it, keep checkpoints, stop."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gqlab.learn.environments import recipe_of
from gqlab.learn.linear_q import LinearQ
from gqlab.support import checks

if TYPE_CHECKING:
    from gqlab.learn.agent.agent import Agent


class Callback:
    """What :meth:`gqlab.Agent.learn` calls; a subclass says what it wants to hear.

    Examples
    --------
    >>> import gqlab as gq
    >>> class Count(gq.Callback):
    ...     every = 500
    ...     calls = 0
    ...     def on_step(self, agent):
    ...         self.calls += 1
    >>> count = Count()
    >>> agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9))
    >>> agent.learn(2000, callback=count).num_timesteps, count.calls
    (2000, 4)
    """

    #: ``on_step`` is called whenever this divides the number of steps.
    every: int = 1

    def on_training_start(self, agent: Agent) -> None:
        """Before the first step."""

    def on_step(self, agent: Agent) -> Any:
        """After a step; ``False`` ends learning."""

    def on_episode_end(self, agent: Agent, total: float, length: int) -> Any:
        """After an episode with this return; ``False`` ends learning."""

    def on_training_end(self, agent: Agent) -> None:
        """After the last step, also where an error ended it."""

    @property
    def hears_episodes(self) -> bool:
        """Whether ``on_episode_end`` is its own."""
        return type(self).on_episode_end is not Callback.on_episode_end


class FunctionCallback(Callback):
    """A function of the agent, called after every step."""

    def __init__(self, function: Callable[[Agent], Any]) -> None:
        self.function = function

    def on_step(self, agent: Agent) -> Any:
        return self.function(agent)


#: What the metadata of a best model call the mean return by which it is one.
MEAN = "mean_return"


class EvalCallback(Callback):
    """Evaluate the policy every so many steps, and keep the best model so far.

    Parameters
    ----------
    every : int
        Steps between two evaluations.
    n_episodes : int
    best : path, optional
        Where the best model is saved, as :meth:`gqlab.LinearQ.save` does.
    env : optional
        Where to evaluate; by default an environment of the same id.

    Attributes
    ----------
    history : list of (steps, mean return)
    best_mean : float

    Examples
    --------
    >>> import gqlab as gq
    >>> watch = gq.EvalCallback(every=1000, n_episodes=1)
    >>> agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9))
    >>> agent = agent.learn(2000, callback=watch)
    >>> [steps for steps, mean in watch.history]
    [1000, 2000]
    """

    def __init__(
        self, every: int = 10_000, n_episodes: int = 10, best: str | os.PathLike[str] | None = None, env: Any = None
    ) -> None:
        self.every = checks.integer("every", every, least=1)
        self.n_episodes = checks.integer("n_episodes", n_episodes, least=1)
        self.best = None if best is None else Path(checks.path("best", best))
        self.env = env
        self.history: list[tuple[int, float]] = []
        self.best_mean = float("-inf")

    def on_training_start(self, agent: Agent) -> None:
        if self.env is None and recipe_of(agent.env) is None:
            raise ValueError("env is missing: cannot recreate this environment: pass env=")
        if self.best is not None and self.best.exists() and agent.num_timesteps > 0:
            # An agent that goes on: the best so far stays until there is a better one.
            self.best_mean = max(self.best_mean, LinearQ.load(self.best, agent.encoder).metadata.get(MEAN, -math.inf))

    def on_step(self, agent: Agent) -> None:
        found = agent.evaluate(self.env, self.n_episodes)
        self.history.append((agent.num_timesteps, found.mean))
        if found.mean > self.best_mean:
            self.best_mean = found.mean
            if self.best is not None:
                model = agent.model
                replace(model, metadata={**model.metadata, MEAN: found.mean}).save(self.best)


class CheckpointCallback(Callback):
    """Save the agent every so many steps as ``folder/agent-STEPS.npz``.

    What an agent keeps with ``replay`` is written once, in files that all of these share: ``folder/segments``.

    Examples
    --------
    >>> import gqlab as gq, tempfile, pathlib
    >>> agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent = agent.learn(2000, callback=gq.CheckpointCallback(1000, folder))
    ...     sorted(path.name for path in pathlib.Path(folder).iterdir())
    ['agent-1000.npz', 'agent-2000.npz']
    """

    def __init__(self, every: int, folder: str | os.PathLike[str]) -> None:
        self.every = checks.integer("every", every, least=1)
        self.folder = Path(checks.path("folder", folder))

    def on_training_start(self, agent: Agent) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def on_step(self, agent: Agent) -> None:
        agent.checkpoint(self.folder / f"agent-{agent.num_timesteps}.npz")


class StopOnReward(Callback):
    """End learning when the mean return of the last episodes has reached a threshold.

    Examples
    --------
    >>> import gqlab as gq
    >>> agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9))
    >>> agent.learn(5000, callback=gq.StopOnReward(-250.0, n_episodes=3)).num_timesteps
    600
    """

    def __init__(self, threshold: float, n_episodes: int = 100) -> None:
        self.threshold = checks.number("threshold", threshold)
        self.n_episodes = checks.integer("n_episodes", n_episodes, least=1)
        self.every = 2**48  # it hears episodes alone

    def on_episode_end(self, agent: Agent, total: float, length: int) -> bool:
        enough = len(agent.episodes) >= self.n_episodes
        return not (enough and agent.episodes.mean_return(self.n_episodes) >= self.threshold)


def as_callbacks(value: Any) -> list[Callback]:
    """What ``callback`` may be, as a list."""
    given = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    for k, each in enumerate(given):
        if not isinstance(each, Callback) and not callable(each):
            raise ValueError(f"callback is {checks.shown(each)}, expected a gqlab.Callback or a function")
        if not isinstance(each, Callback):
            given[k] = FunctionCallback(each)
    return given
