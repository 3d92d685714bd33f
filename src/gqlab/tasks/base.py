"""What an engine is: something that makes calls somewhere else and hands back what came of them.

    with engine:
        engine.prepare(shared)
        for task, outcome in run_tasks(engine, tasks):
            ...

A task may be made more than once, where a worker dies and another takes over; its outcome comes once. So a task writes
what must last under a name made of its content, whole, and a second time does no harm.
"""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from gqlab.support.files import one_line

#: Tasks that are submitted for each worker: one that runs and one that waits for it to end.
BACKLOG = 2

#: How often a task that failed is made again, and one whose worker died.
RETRIES, LOSSES = 1, 10


@dataclass(frozen=True, eq=False)
class Task:
    """A call ``function(shared, *arguments)`` that a worker is to make.

    Attributes
    ----------
    function : callable
        A function of a module, so that another process can find it.
    arguments : tuple
        Small: they travel with every task. What is large belongs into ``shared``.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a task.

    Attributes
    ----------
    value : object
        What the function returned.
    error : str
        What went wrong, in one line; empty where nothing did.
    seconds : float
        That the call took.
    lost : bool
        Whether the worker died, of which the task may be innocent.
    """

    value: Any = None
    error: str = ""
    seconds: float = 0.0
    lost: bool = False


def perform(shared: Mapping[str, Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Make a call here and now: what an engine has its workers do."""
    begun = time.perf_counter()
    try:
        value = function(shared, *arguments)
    except Exception as error:
        return Outcome(error=f"{type(error).__name__}: {one_line(error)}", seconds=time.perf_counter() - begun)
    return Outcome(value, seconds=time.perf_counter() - begun)


class Engine(ABC):
    """Makes calls somewhere else: ``with engine: ...`` starts its workers and ends them.

    One of your own needs ``submit`` and ``results``, and has its workers call
    :func:`gqlab.tasks.perform`: docs/scale.md shows one.
    """

    #: How many tasks run at a time.
    workers: int = 1
    #: What every task gets first, and the device that it runs on: see ``prepare``.
    shared: Mapping[str, Any] = {}
    device: str = "cpu"

    def prepare(self, shared: Mapping[str, Any], device: str = "cpu") -> None:
        """Before the first task: what all of them share, to be sent to every worker once, and where they run."""
        self.shared, self.device = dict(shared), device

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take a task; it does not wait."""

    @abstractmethod
    def results(self) -> Iterator[tuple[Task, Outcome]]:
        """The submitted tasks, each when it has ended, until none is left. More may be submitted meanwhile."""

    def close(self) -> None:  # noqa: B027 - an engine may have nothing to end
        """End what was started, at once: tasks that still run are given up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_tasks(
    engine: Engine, tasks: Iterable[Task], *, retries: int = RETRIES, losses: int = LOSSES
) -> Iterator[tuple[Task, Outcome]]:
    """Every task with its outcome, as they end.

    ``tasks`` are taken when there is room for them, so that a generator may still change its mind. One that fails is
    made again, ``retries`` times, and one whose worker died ``losses`` times, before its error is its outcome.

    Examples
    --------
    >>> from gqlab.tasks import Task, Threads, run_tasks
    >>> def power(shared, exponent):
    ...     return shared["base"] ** exponent
    >>> with Threads(workers=2) as engine:
    ...     engine.prepare({"base": 3})
    ...     outcomes = run_tasks(engine, [Task(power, (k,)) for k in range(4)])
    ...     sorted(outcome.value for task, outcome in outcomes)
    [1, 3, 9, 27]
    """
    waiting = iter(tasks)
    failed: Counter[Task] = Counter()
    lost: Counter[Task] = Counter()
    submitted = 0

    def fill() -> None:
        nonlocal submitted
        for task in itertools.islice(waiting, BACKLOG * engine.workers - submitted):
            engine.submit(task)
            submitted += 1

    fill()
    for task, outcome in engine.results():
        count, most = (lost, losses) if outcome.lost else (failed, retries)
        count[task] += bool(outcome.error)
        if outcome.error and count[task] <= most:
            engine.submit(task)
            continue
        submitted -= 1
        yield task, outcome
        fill()
