"""How an agent learns from what it keeps, as plain data: by updates along drawn samples, or by solving anew."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gqlab.algorithms import Algorithm
from gqlab.algorithms.places import RunPlace, Way
from gqlab.estimators.needs import Need, needs_of
from gqlab.support import checks

#: What is drawn.
SAMPLING = ("uniform", "recent")

#: No step makes more updates, and no window is longer.
MOST_UPDATES, MOST_STEPS = 2**20, 2**15

#: What an agent offers that keeps its transitions, and draws from them; Sarsa's next action is that of its own policy.
REPLAYING = RunPlace("gqlab.Replay", frozenset({Need.KEPT, Need.NEXT_ACTION, Need.CPU}))


class KeepingSettings:
    """What both ways of learning from kept transitions have in common."""

    n_step: int
    size: int | None
    cut: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_step", checks.integer("n_step", self.n_step, least=1, below=MOST_STEPS))
        if self.size is not None:
            object.__setattr__(self, "size", checks.integer("size", self.size, least=1, below=2**32))
            if self.size < self.n_step:
                raise ValueError(f"size is {self.size}, less than n_step = {self.n_step}: not one window of steps fits")
        checks.instance("cut", self.cut, bool, "True or False")

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, ready for JSON."""
        return {"name": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class Replay(KeepingSettings):
    """An agent keeps its transitions, and makes updates along those that it draws: ``gq.Agent(..., replay=Replay())``.

    Parameters
    ----------
    updates : float
        For each step of the environment; below 1: one in so many steps.
    n_step : int
        A sample is a window of so many steps of an episode, with the value of where it ends; shorter where the episode
        ends. It is kept, and drawn, from the time on that it is complete.
    size : int, optional
        Keep the newest so many; by default all. What leaves takes its part of a variance-reduced sum along.
    sampling : {"uniform", "recent"}
        Draw any of them; or one of age ⌊N U²⌋ for a uniform U, so that half of the draws are of the newest quarter.
    cut : bool
        A window also ends before an action that was not a best one when it was taken.
    average : float
        ρ of the slow average θ̄ ← θ̄ + ρ (θ − θ̄), with every update, by which the agent acts; 0: by θ itself.

    Examples
    --------
    >>> import gqlab as gq
    >>> encoder = gq.TileCoder(n_tilings=4, bins=4)
    >>> agent = gq.Agent("MountainCar-v0", encoder, gq.SAGAQLearning(0.1), replay=gq.Replay(updates=4))
    >>> agent.learn(500).n_updates
    1996
    >>> agent.buffer
    Transitions(n_rows=500, n_actions=3, observation_size=2)
    """

    updates: float = 16.0
    n_step: int = 2
    size: int | None = None
    sampling: str = "uniform"
    cut: bool = False
    average: float = 0.002

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "updates", checks.number("updates", self.updates, above=0, most=MOST_UPDATES))
        checks.one_of("sampling", self.sampling, SAMPLING)
        object.__setattr__(self, "average", checks.number("average", self.average, least=0, below=1))


@dataclass(frozen=True)
class Refit(KeepingSettings):
    """An agent keeps its transitions, and solves for θ anew every so many steps: ``gq.Agent(..., replay=Refit())``.

    For :class:`gqlab.FittedQ`, :class:`gqlab.LSPI` and :class:`gqlab.LeastSquaresGreedyGQ`, with up to some hundred
    features of a state. A solution begins at the last θ.

    Parameters
    ----------
    every : int
        Steps between two solutions.
    n_step, size, cut
        As of :class:`Replay`.

    Examples
    --------
    >>> import gqlab as gq
    >>> encoder = gq.Fourier(2, low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
    >>> agent = gq.Agent("CartPole-v1", encoder, gq.FittedQ(1e-3), discount=0.95, replay=gq.Refit(every=500))
    >>> agent.learn(1200).n_updates
    2
    """

    every: int = 1000
    n_step: int = 1
    size: int | None = None
    cut: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "every", checks.integer("every", self.every, least=1, below=2**48))


def replay_from_dict(values: Any) -> Replay | Refit | None:
    """What :meth:`KeepingSettings.to_dict` wrote; None: no replay."""
    if values is None:
        return None
    kinds = {kind.__name__: kind for kind in (Replay, Refit)}
    given = dict(values)
    kind = kinds.get(given.pop("name", None))
    if kind is None:
        raise ValueError(f"unknown way of replay {checks.shown(values)}, expected one of {', '.join(kinds)}")
    return kind(**given)


def way_over_kept(replay: Any, algorithm: Algorithm) -> Way:
    """How an algorithm runs over what an agent keeps; ``ValueError`` where it does not."""
    checks.instance("replay", replay, KeepingSettings, "a gqlab.Replay or a gqlab.Refit")
    if isinstance(replay, Refit):
        solving = [way for way in algorithm.ways if way.estimator is None]
        if not solving:
            raise ValueError(f"algorithm is {checks.shown(algorithm)}: with Refit, expected a solver such as FittedQ()")
        return solving[0]
    if algorithm.trace_decay > 0:
        raise ValueError(f"trace is {algorithm.trace_decay:g}: with replay there are no traces; n_step replaces them")
    forms = [form for way in algorithm.ways if (form := _over_kept(way)) is not None and not REPLAYING.unmet(form)]
    if not forms:
        raise ValueError(f"algorithm is {checks.shown(algorithm)}, which has no form over transitions that are kept")
    [way] = forms
    if replay.sampling != "uniform" and Need.KEPT in way.needs:
        raise ValueError(
            f"sampling is {replay.sampling!r}: the mean of {type(algorithm).__name__} is over all transitions alike; "
            "keep the newest alone with size"
        )
    if getattr(algorithm, "growth", 1.0) != 1.0:
        raise ValueError(f"growth is {algorithm.growth:g}: with replay epochs grow with what is kept, expected 1")  # type: ignore[attr-defined]
    return way


def is_over_kept(kind: type[Algorithm]) -> bool:
    """Whether an algorithm, as it is made without arguments, runs over transitions that are kept."""
    try:
        way_over_kept(Replay(), kind())
    except ValueError:
        return False
    return True


def _over_kept(way: Way) -> Way | None:
    """A way of running an algorithm, over samples that are drawn from those kept; None where there is none."""
    kind = way.estimator
    if hasattr(kind, "kept_form"):
        return Way(kind.kept_form(), needs_of(kind.kept_form()))
    steps_alone = hasattr(kind, "drifts") and not any(hasattr(kind, name) for name in ("begin", "answer"))
    return way if steps_alone else None
