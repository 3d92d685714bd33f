"""The loop between an environment and the compiled step: single environments, and vector environments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gqlab.encoders.foreign import Foreign
from gqlab.encoders.one_hot import OneHot
from gqlab.encoders.spaces import Flattener, answer_of, flags_of, reward_of, rewards_of
from gqlab.engine.held import hold
from gqlab.learn.agent.live import BEGAN, ENDED, ENDED_ALONE, NOT_FINITE, STEPPED, Live, live_step
from gqlab.learn.agent.room import keeps
from gqlab.learn.environments import is_vector, single_spaces
from gqlab.support import checks
from gqlab.support.checks import FloatArray

Heard = Sequence[Callable[[Any, float, int], Any]]


class PlayedEpisodes:
    """The finished episodes: their returns, lengths and the steps at which they ended."""

    def __init__(self) -> None:
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.ends: list[int] = []

    def add(self, total: float, length: int, step: int) -> None:
        """One more."""
        self.returns.append(total)
        self.lengths.append(length)
        self.ends.append(step)

    def mean_return(self, n: int = 100) -> float:
        """The mean return of the last n; NaN where there is none yet."""
        return float(np.mean(self.returns[-n:])) if self.returns else float("nan")

    def mean_length(self, n: int = 100) -> float:
        """The mean length of the last n."""
        return float(np.mean(self.lengths[-n:])) if self.lengths else float("nan")

    def __len__(self) -> int:
        return len(self.returns)


class Featured:
    """Observations as the features of an encoder that has no compiled part; with ``raw`` their own numbers behind."""

    def __init__(self, flat: Flattener, encoder: Any, raw: bool = False) -> None:
        self.flat, self.encoder, self.raw = flat, encoder, raw

    def write(self, observation: Any, out: FloatArray) -> None:
        """Put the features of an observation into ``out``."""
        out[:] = self.flatten(observation)

    def flatten(self, observation: Any) -> FloatArray:
        """Of one observation, (K,)."""
        numbers = self.flat.flatten(observation)
        features = self.encoder.encode(numbers)
        return np.concatenate([features, numbers]) if self.raw else features

    def flatten_batch(self, observation: Any) -> FloatArray:
        """Of the observations of a vector environment, (n, K)."""
        numbers = self.flat.flatten_batch(observation)
        features = self.encoder.encode_batch(numbers)
        return np.hstack([features, numbers]) if self.raw else features


class Known(Featured):
    """Observations as they are, each number one that a ``OneHot`` knows: of spaces that do not say what they may be."""

    encoder: Any

    def flatten(self, observation: Any) -> FloatArray:
        """Of one observation, (size,)."""
        row = self.flat.flatten(observation)
        self.encoder.encode(row)
        return row

    def flatten_batch(self, observation: Any) -> FloatArray:
        """Of the observations of a vector environment, (n, size)."""
        rows = self.flat.flatten_batch(observation)
        self.encoder.encode_batch(rows)
        return rows


class Worker:
    """What both kinds of environments have in common."""

    #: The steps that are made together.
    width = 1
    begun = False

    def __init__(self, env: Any, encoder: Any, live: Live, episodes: PlayedEpisodes, seed: int) -> None:
        self.env, self.live, self.episodes, self.seed = env, live, episodes, seed
        self.flat, self.A = single_spaces(env)
        self.d = self.A * encoder.n_features_out_
        #: What the compiled step is shown.
        self.shown: Any = self.flat
        if isinstance(encoder, Foreign):
            self.shown = Featured(self.flat, encoder, keeps(live))
        elif isinstance(encoder, OneHot) and not (self.flat.whole & np.isfinite(self.flat.high - self.flat.low)).all():
            self.shown = Known(self.flat, encoder)
        self.steps = 0
        self.held = hold(live)

    def advance(self, until: int, heard: Heard, agent: Any) -> bool:
        """Go on to step ``until``; False where one of ``heard`` has said so at the end of an episode."""
        try:
            return self._advance(until, heard, agent)
        except BaseException:
            self.begun = False  # it may have stopped in the middle of a step: go on with a new episode
            raise

    def _advance(self, until: int, heard: Heard, agent: Any) -> bool:
        raise NotImplementedError

    def flat_of(self, observation: Any) -> Any:
        """An observation of the environment as a vector, or several of them, also as rows already, as rows."""
        rows, single = self.flat.rows(observation)
        return rows[0] if single else rows

    def see(self, observation: Any, out: FloatArray) -> None:
        """Put what the compiled step is shown of an observation into ``out``."""
        try:
            self.shown.write(observation, out)
        except ValueError as error:
            raise ValueError(f"env: after step {self.steps}: {error}") from None

    def check(self, reward: Any) -> None:
        """``ValueError`` where an environment has shown a number that is not finite; nothing was learned from it."""
        bad = self.live.counts.item(NOT_FINITE)
        if bad:
            self.live.counts[NOT_FINITE] = 0
            size = self.live.observation.size // self.width
            place = slice((bad - 1) * size, bad * size)
            shown, what = self.live.observation[place], "observation"
            if np.isfinite(shown).all() and not np.isfinite(self.live.first_observation[place]).all():
                shown, what = self.live.first_observation[place], "first observation of the next episode"
            where = f"env[{bad - 1}]" if self.width > 1 else "env"
            raise ValueError(
                f"{where}: after step {self.steps} the {what} is {checks.shown(shown)} and the reward "
                f"{checks.shown(np.ravel(reward)[bad - 1 if np.size(reward) > 1 else 0])}, expected finite numbers"
            )

    def episode_seed(self, number: int) -> int:
        """The seed with which episode ``number`` begins."""
        return int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])


class SingleWorker(Worker):
    """One environment; every episode begins with a seed of its own, so that it can be played again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.actions: list[int] = []  # of the episode that is being played
        self.total = 0.0

    def begin(self) -> Any:
        """The first observation of the next episode."""
        observation, _ = answer_of("reset", self.env.reset(seed=self.episode_seed(len(self.episodes))))
        self.actions.clear()
        self.total = 0.0
        return observation

    def _advance(self, until: int, heard: Heard, agent: Any) -> bool:
        live, held, write, d, A = self.live, self.held, self.see, self.d, self.A
        env, actions = self.env, self.actions
        if not self.begun:
            write(self.begin(), live.observation)
            live.status[0] = BEGAN
            live_step(held, d, A)
            self.begun = True
            self.check(0.0)
        action = live.action.item(0)
        while self.steps < until:
            actions.append(action)
            answer = env.step(action)
            if type(answer) is not tuple or len(answer) != 5:
                answer_of("step", answer)
            observation, reward, terminated, truncated, _ = answer
            self.steps += 1
            reward = reward_of(reward, self.steps)
            self.total += reward
            write(observation, live.observation)
            live.reward[0] = reward
            live.terminated[0] = bool(terminated)
            if not (terminated or truncated):
                live.status[0] = STEPPED
                live_step(held, d, A)
                action = live.action.item(0)
                if live.counts.item(NOT_FINITE):
                    self.check(reward)
                continue
            total, length = self.total, len(actions)
            if not math.isfinite(total):
                raise ValueError(f"env: after step {self.steps} the reward is {reward}, expected a finite number")
            self.episodes.add(total, length, self.steps)
            write(self.begin(), live.first_observation)
            live.status[0] = ENDED
            live_step(held, d, A)
            action = live.action.item(0)
            self.check(reward)
            if _ends(heard, agent, [(total, length)]):
                return False
        return True


class VectorWorker(Worker):
    """Several environments that step together."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from gymnasium.vector import AutoresetMode

        self.width = self.env.num_envs
        mode = self.env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ValueError(f"env resets itself by {mode}, expected AutoresetMode.NEXT_STEP or SAME_STEP")
        self.same_step = mode == AutoresetMode.SAME_STEP
        self.totals, self.lengths = np.zeros(self.width), np.zeros(self.width, dtype=np.int64)
        self.over = np.ones(self.width, dtype=bool)  # an episode that is over: its next observation is a first one

    def _advance(self, until: int, heard: Heard, agent: Any) -> bool:
        if not self.begun:
            observation, _ = answer_of("reset", self.env.reset(seed=self.episode_seed(len(self.episodes)) % 2**31))
            self.live.observation[:] = self._rows(observation).ravel()
            self.totals[:], self.lengths[:] = 0.0, 0
            self.live.status[:] = BEGAN
            live_step(self.held, self.d, self.A)
            self.over[:] = False
            self.begun = True
            self.check(0.0)
        going = True
        while self.steps < until and going:
            going = self._step(heard, agent)
        return going

    def _rows(self, observation: Any) -> FloatArray:
        try:
            rows = self.shown.flatten_batch(observation)
        except ValueError as error:
            raise ValueError(f"env: after step {self.steps}: {error}") from None
        if len(rows) != self.width:
            raise ValueError(f"env: after step {self.steps}: {len(rows)} observations, expected {self.width}")
        return rows

    def _step(self, heard: Heard, agent: Any) -> bool:
        live = self.live
        observation, reward, terminated, truncated, info = answer_of("step", self.env.step(live.action.copy()))
        rows, reward = self._rows(observation), rewards_of(reward, self.width)
        terminated = flags_of("terminated", terminated, self.width)
        done = terminated | flags_of("truncated", truncated, self.width)
        began = self.over.copy()  # NEXT_STEP: such a step only began an episode, whatever its action was
        live.status[:] = np.where(began, BEGAN, np.where(done, ENDED if self.same_step else ENDED_ALONE, STEPPED))
        live.reward[:] = reward
        live.terminated[:] = terminated
        if self.same_step:
            live.first_observation[:] = rows.ravel()
            for e in np.flatnonzero(done):
                rows[e] = self.shown.flatten(info["final_obs"][e])
        live.observation[:] = rows.ravel()
        self.steps += int((~began).sum())
        live_step(self.held, self.d, self.A)
        self.check(reward)
        self.totals += np.where(began, 0.0, reward)
        self.lengths += ~began
        if not self.same_step:
            self.over = done & ~began
        ended = [(float(self.totals[e]), int(self.lengths[e])) for e in np.flatnonzero(done & ~began)]
        for total, length in ended:
            self.episodes.add(total, length, self.steps)
        self.totals[done & ~began] = 0.0
        self.lengths[done & ~began] = 0
        return not _ends(heard, agent, ended)


def _ends(heard: Heard, agent: Any, episodes: Sequence[tuple[float, int]]) -> bool:
    """Report the episodes that have ended to every listener; returns whether one of them ends learning."""
    answers = [hear(agent, total, length) for hear in heard for total, length in episodes]
    return any(answer is False for answer in answers)


def make_worker(env: Any, encoder: Any, live: Live, episodes: PlayedEpisodes, seed: int) -> Worker:
    """The worker for an environment."""
    kind = VectorWorker if is_vector(env) else SingleWorker
    return kind(env, encoder, live, episodes, seed)
