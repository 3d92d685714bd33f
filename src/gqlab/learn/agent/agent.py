"""An agent: it acts in an environment and learns beside it, with the verbs of Stable-Baselines3."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm, check_algorithm
from gqlab.algorithms.schedules import LinearDecay, share
from gqlab.encoders.actions import numbered_actions
from gqlab.estimators.base import answer
from gqlab.estimators.needs import Need
from gqlab.learn.agent.automatic import algorithm_for, fitted
from gqlab.learn.agent.callbacks import Callback, as_callbacks
from gqlab.learn.agent.core import make_live, way_beside, with_step_sizes
from gqlab.learn.agent.live import COLLECTED, DIVERGED, UPDATES, Live
from gqlab.learn.agent.making import AgentSettings, begin_at, make_keeping_live
from gqlab.learn.agent.replay import Refit, Replay, way_over_kept
from gqlab.learn.agent.replaying import Replaying, average_of, entries_of
from gqlab.learn.agent.shown import agent_card
from gqlab.learn.agent.workers import PlayedEpisodes, Worker, make_worker
from gqlab.learn.environments import env_of, is_vector, make_env, recipe_of, single_spaces
from gqlab.learn.linear_q import LinearQ
from gqlab.learn.playing import EVALUATION, Evaluation, play
from gqlab.operators import Greedy, Operator
from gqlab.policies import Policy
from gqlab.rules.dispatch import at
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.compile_errors import cause_first
from gqlab.support.renamed import renamed

#: Steps between two looks at the progress bar.
CHUNK = 2000


class Agent(Replaying, Policy):
    """A linear agent beside an environment: ``gq.Agent(env, encoder, algorithm).learn(100_000)``.

    It acts with probability ε at random and else by its own action values, and updates them after every step: with an
    algorithm that moves along one sample at a time at once, with :class:`gqlab.VRGreedyGQ` when a batch is full (its
    epoch is then made at one go). A truncated episode is not a terminated one: its last value still counts.

    Parameters
    ----------
    env : str or Gymnasium environment
        An id, an environment, or a vector environment (autoreset in the next or in the same step); discrete actions.
    encoder : encoder, optional
        Such as :class:`gqlab.TileCoder`; bounds that it was not given are those of the observation space. A transformer
        of scikit-learn that is not fitted is fitted to a thousand random steps. Default: a table of discrete
        observations, or tiles over all numbers and pairs of numbers; bounds that the space does not have come from a
        thousand random steps.
    algorithm : Algorithm, optional
        One that takes one sample at a time, or batches of the last M: docs/algorithms.md has the table. Default:
        Sarsa(0.25, trace=0.9), or SAGAQLearning(0.1) with replay. An average of iterates is what is learned; the agent
        acts by the last one. GreedyGQ, QRC, QLearning and Sarsa take ``trace=λ``. Entries of a trace add up to no more
        than the larger of them, which replaces those of binary features; where the target is greedy an exploring action
        ends a trace. Traces cannot be combined with variance reduction.
    discount : float
    epsilon : float or LinearDecay
        The share of actions taken at random.
    target : Operator
        What the updates bootstrap from; Sarsa has its own, the action taken next. With a softmax or a mellowmax the
        agent acts by its policy.
    seed : int
        Of everything: exploration, batches, what is drawn from a buffer, the environment's episodes.
    replay : Replay or Refit, optional
        Keep all transitions, or the newest, and learn from them again and again: see :class:`gqlab.Replay`. Then also
        SAGAGreedyGQ and SAGAQLearning, whose sum is over what is kept; VRGreedyGQ, whose batch is all that is kept and
        whose epochs are as long, and at least ``batch_size`` updates; Sarsa, whose V̄ is the expected value under its
        own policy; and with :class:`gqlab.Refit` FittedQ, LSPI and LeastSquaresGreedyGQ. Without traces.
    initial_value : float
        What all action values are at first: an optimistic one explores.

    Attributes
    ----------
    episodes
        The finished episodes: lists ``returns``, ``lengths`` and ``ends``, ``mean_return(n)`` and ``mean_length(n)`` of
        the last n.

    Examples
    --------
    >>> import gqlab as gq
    >>> agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9))
    >>> agent.learn(2000).num_timesteps
    2000
    >>> action, _ = agent.predict([-0.5, 0.0])
    >>> action in (0, 1, 2)
    True
    """

    def __init__(
        self,
        env: Any,
        encoder: Any = None,
        algorithm: Algorithm | None = None,
        *,
        discount: float = 0.99,
        epsilon: float | LinearDecay = 0.1,
        target: Operator | None = None,
        seed: int = 0,
        replay: Replay | Refit | None = None,
        initial_value: float = 0.0,
    ) -> None:
        algorithm = algorithm_for(replay) if algorithm is None else algorithm
        check_algorithm("algorithm", algorithm)
        way = way_beside(algorithm) if replay is None else way_over_kept(replay, algorithm)
        self.target = Greedy() if target is None else target
        checks.instance("target", self.target, Operator, "an operator such as gqlab.Greedy()")
        if self.target.tables():
            raise ValueError(f"target is {self.target!r}: an agent improves its policy; a given one is for gqlab.fit")
        if Need.NEXT_ACTION in way.needs and type(self.target) is not Greedy:
            raise ValueError(f"target is {self.target!r}: that of Sarsa is the action that is taken next")
        self.replay = replay
        self.initial_value = checks.number("initial_value", initial_value)
        self.discount = checks.number("discount", discount, least=0, most=1)
        self.epsilon = share("epsilon", epsilon)
        self.seed = checks.integer("seed", seed, least=0, below=2**63)
        self.env = make_env(env)
        flat, self.n_actions = single_spaces(self.env)
        self.encoder = fitted(encoder, self.env, flat, self.seed)
        self.algorithm = with_step_sizes(algorithm, self.encoder)
        n_envs = self.env.num_envs if is_vector(self.env) else 1
        sizes = self.encoder, self.n_actions, n_envs
        how = (*sizes, self.algorithm, self.target, self.discount, self.epsilon, self.seed)
        self._live: Live = make_live(*how) if replay is None else make_keeping_live(AgentSettings(*how, replay, way))
        begin_at(self._live, self.encoder, self.n_actions, self.initial_value)
        self._segments = {}
        self._model: tuple[int, LinearQ] | None = None
        self.episodes = PlayedEpisodes()
        self._worker: Worker = make_worker(self.env, self.encoder, self._live, self.episodes, self.seed)

    def __repr__(self) -> str:
        return f"Agent({self.env}, {' '.join(repr(self.encoder).split())}, {self.algorithm!r})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return agent_card(self)

    # --- Where it stands ---------------------------------------------------------------------------------------------

    @property
    def num_timesteps(self) -> int:
        """The steps that its environments have made."""
        return self._worker.steps

    @property
    def n_updates(self) -> int:
        """The updates that were made."""
        return int(self._live.counts[UPDATES])

    @property
    def waiting(self) -> int:
        """Of VRGreedyGQ: the transitions that wait for their batch to be full."""
        return int(self._live.counts[COLLECTED])

    @property
    def diverged(self) -> bool:
        """Whether an update would have left the finite numbers: from there on nothing is learned."""
        return self._live.counts.item(DIVERGED) > 0

    @property
    def theta(self) -> FloatArray:
        """One row of weights for each action, (n_actions, K), which may be a mean."""
        estimator, point = at(self._live.estimator, 0), self._live.point  # type: ignore[no-untyped-call]
        if not hasattr(estimator, "answer"):
            return entries_of(point.theta).reshape(self.n_actions, -1)
        out = np.empty(len(point.answer))
        answer(estimator, point, out, len(out))
        return out.reshape(self.n_actions, -1)

    @property
    def theta_average(self) -> FloatArray:
        """θ̄ in the same form, by which it acts; θ itself where there is no average."""
        theta = self._live.point.theta
        return average_of(theta).reshape(self.n_actions, -1) if hasattr(theta, "pace") else self.theta

    @property
    def omega(self) -> FloatArray:
        """ω in the same form."""
        return entries_of(self._live.point.omega).reshape(self.n_actions, -1)

    @property
    def model(self) -> LinearQ:
        """What was learned so far, as a model of its own: what it acts by, without exploration."""
        about = {"algorithm": self.algorithm.to_dict(), "timesteps": self.num_timesteps, "seed": self.seed}
        about["env"] = recipe_of(self.env)
        numbered = numbered_actions(self.env)
        if numbered is not None:
            about["actions"] = numbered.to_dict()
        discount = min(self.discount, np.nextafter(1.0, 0.0))
        settings = {"metadata": about, "space": self._worker.flat, "offset": self._live.offset.item()}
        return LinearQ(self.theta_average, self.encoder, self.target, discount, **settings)

    # --- Stable-Baselines3's verbs -----------------------------------------------------------------------------------

    @renamed(progress_bar="progress")
    def learn(
        self,
        total_timesteps: int,
        callback: Callback | Callable[[Agent], Any] | list[Any] | None = None,
        *,
        progress: bool | None = None,
        log: str | os.PathLike[str] | None = None,
    ) -> Agent:
        """Make so many more steps, and learn from them.

        Parameters
        ----------
        total_timesteps : int
            Steps of the environment; of a vector environment together, rounded up to whole steps of all.
        callback : Callback, function or list, optional
            Such as :class:`gqlab.EvalCallback`. A function is called with the agent after every step, and ends
            learning by returning False.
        progress : bool, optional
            A progress bar on stderr, with the mean return of the last episodes; by default where that is a terminal.
        log : path, optional
            A folder for ``progress.csv``, and for TensorBoard's event files where ``tensorboard`` is installed.
        """
        from gqlab.learn.agent.logs import ProgressLog, progress_of

        total = checks.integer("total_timesteps", total_timesteps, least=0, below=2**48)
        if progress is not None:
            checks.instance("progress", progress, bool, "True, False or None")
        callbacks = as_callbacks(callback)
        if log is not None:
            callbacks.insert(0, ProgressLog(checks.path("log", log)))  # first: a checkpoint has its row
        end = self.num_timesteps + total
        with progress_of(self, total, progress) as advance_bar:
            for each in callbacks:
                each.on_training_start(self)
            try:
                with cause_first((getattr(self.algorithm, "estimator", None), self.target.compiled)):
                    self._learn_until(end, callbacks, advance_bar)
            finally:
                for each in callbacks:
                    each.on_training_end(self)
        self._warn()
        return self

    def _warn(self) -> None:
        """Say so where learning has ended."""
        if self.diverged:
            warnings.warn(
                f"the agent diverged in step {self._live.counts.item(DIVERGED)} and learns no more: make a new one "
                "with a smaller step size, or with a radius",
                RuntimeWarning,
                stacklevel=3,
            )

    def _learn_until(self, end: int, callbacks: list[Callback], advance_bar: Callable[[], None]) -> None:
        """Go to step ``end``, or to where a callback ends it; between their calls there is nothing but steps."""
        heard = [each.on_episode_end for each in callbacks if each.hears_episodes]
        while self.num_timesteps < end and not self.diverged:
            here = self.num_timesteps
            until = min([end, here + CHUNK, *(here + each.every - here % each.every for each in callbacks)])
            until = min(until, self._next_refit(here))
            self._make_room(until - here)
            ended = not self._worker.advance(until, heard, self)
            if self.num_timesteps >= self._next_refit(here):
                self._refit()
            advance_bar()
            # All are asked, also where one has ended it already.
            due = [each for each in callbacks if self.num_timesteps // each.every > here // each.every]
            asked = [each.on_step(self) for each in due]
            if ended or any(answer is False for answer in asked):
                break

    def snapshot(self) -> LinearQ:
        """What was learned so far, as :attr:`model`; the same one for all calls between two updates."""
        if self._model is None or self._model[0] != self.n_updates:
            self._model = self.n_updates, self.model
        return self._model[1]

    @property
    def observation_size(self) -> int:  # type: ignore[override]
        """The numbers of an observation."""
        return int(self.encoder.n_features_in_)

    def best(self, observations: Any) -> NDArray[np.int64]:
        """The first of the best actions of observations (n, size): (n,)."""
        return self.snapshot().best(self._worker.flat_of(observations))

    def probabilities(self, observations: Any) -> FloatArray:
        """The probabilities of the actions without exploration: (n_actions,), or (n, n_actions)."""
        return self.snapshot().probabilities(self._worker.flat_of(observations))

    def predict(
        self,
        observation: Any,
        *,
        deterministic: bool = True,
        state: Any = None,
        episode_start: Any = None,
        seed: int | None = None,
    ) -> tuple[Any, None]:
        """(action, None) for one observation of the environment, or the actions of several: as Stable-Baselines3 does.

        As :meth:`gqlab.LinearQ.predict`, without exploration. ``state`` and ``episode_start`` are not read: a linear
        policy has no memory.
        """
        return self.snapshot().predict(self._worker.flat_of(observation), deterministic=deterministic, seed=seed)

    def evaluate(
        self, env: Any = None, n_episodes: int = 100, *, deterministic: bool = True, seed: int = EVALUATION
    ) -> Evaluation:
        """Returns of so many episodes of the policy as it is now; by default in an environment like its own."""
        if env is not None:
            return play(self.snapshot(), env, n_episodes, deterministic=deterministic, seed=seed)
        recipe = recipe_of(self.env)
        if recipe is None:
            raise ValueError("env is missing: cannot recreate this environment: pass env=")
        with contextlib.closing(env_of(recipe)) as another:
            return play(self.snapshot(), another, n_episodes, deterministic=deterministic, seed=seed)

    def plot(self, over: Any = None, **settings: Any) -> Any:
        """A picture of what was learned: see :meth:`gqlab.LinearQ.plot`."""
        return self.snapshot().plot(over, **settings)

    def set_env(self, env: Any) -> None:
        """Go on in another environment, with a new episode."""
        made = make_env(env)
        flat, n_actions = single_spaces(made)
        n_envs = made.num_envs if is_vector(made) else 1
        wanted = self.encoder.n_features_in_, self.n_actions, len(self._live.status)
        if (flat.size, n_actions, n_envs) != wanted:
            raise ValueError(
                f"env has observations of {flat.size} numbers, {n_actions} actions and {n_envs} copies; "
                f"this agent needs {wanted[0]}, {wanted[1]} and {wanted[2]}"
            )
        steps = self._worker.steps
        self.env = made
        self._worker = make_worker(made, self.encoder, self._live, self.episodes, self.seed)
        self._worker.steps = steps

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that :meth:`load` needs to go on: one file, whole or not at all; no pickle."""
        from gqlab.learn.agent.saved import save_agent

        save_agent(self, path)

    def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """The same for an agent that keeps many transitions: those that are new go into a file of their own.

        Such files stand in a folder ``segments`` beside ``path`` and never change; the agent's file lists them, and is
        replaced at once. :meth:`load` reads both. Without replay it is :meth:`save`.
        """
        from gqlab.learn.agent.saved import save_agent

        save_agent(self, path, in_segments=True)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        env: Any = None,
        encoder: Any = None,
        *,
        operators: Sequence[type[Operator]] | None = None,
    ) -> Agent:
        """The agent that :meth:`save` wrote, in ``env``, or in an environment of the same id.

        It goes on bit for bit like the agent that was never saved: the episode that it stood in is begun with its seed
        and played again. An environment that then shows something else is refused. A vector environment cannot
        be brought back like that: its episodes begin anew. ``operators`` has the class of its target, where that is
        an operator of your own: no file has a module imported.
        """
        from gqlab.learn.agent.saved import load_agent

        return load_agent(cls, path, env, encoder, operators)

    @classmethod
    def preset(cls, env: str, seed: int = 0, *, replay: bool | None = None) -> Agent:
        """An agent with an encoder, an algorithm and step sizes for this environment.

        There are presets for MountainCar-v0, CartPole-v1, Acrobot-v1, LunarLander-v3 (which needs Box2D),
        FrozenLake8x8-v1, Taxi-v4 and CliffWalking-v1. With ``replay`` they learn from what they have kept: steps cost
        more, and memory grows with them. Where nothing is said those of CartPole, FrozenLake and CliffWalking do, which
        were no worse at any budget that was tried. docs/learning.md says how far they were tried.

        Examples
        --------
        >>> import gqlab as gq
        >>> gq.Agent.preset("MountainCar-v0").algorithm
        Sarsa(eta_theta=0.25, radius=inf, trace=0.9)
        >>> gq.Agent.preset("MountainCar-v0", replay=True).replay.updates
        16.0
        """
        from gqlab.learn.agent.presets import preset_of

        if replay is not None:
            checks.instance("replay", replay, bool, "True, False or None")
        return cls(env, seed=seed, **preset_of(env, replay).arguments())
