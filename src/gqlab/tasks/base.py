"""What an engine is: something that runs calls elsewhere and returns their outcomes.

    with engine:
        engine.prepare(shared)
        for task, outcome in run_tasks(engine, tasks):
            ...

A task may be run more than once, if a worker dies and another takes over; its outcome is delivered once. So a task that
writes files writes them whole, under names that depend on their content alone: running it again does no harm.
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

#: Tasks that are submitted for each worker: one that runs and one in waiting.
BACKLOG = 2

#: How often a task is retried after an error, and after the death of its worker.
RETRIES, LOSSES = 1, 10


@dataclass(frozen=True, eq=False)
class Task:
    """A call ``function(shared, *arguments)`` for a worker to make.

    Attributes
    ----------
    function : callable
        A module-level function, so that another process can import it.
    arguments : tuple
        Small, since they are sent with every task. Anything large belongs in ``shared``.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a task.

    Attributes
    ----------
    value : object
        What the function returned.
    error : str
        What went wrong, in one line; empty if nothing did.
    seconds : float
        The duration of the call.
    lost : bool
        Whether the worker died, which need not be the task's fault.
    """

    value: Any = None
    error: str = ""
    seconds: float = 0.0
    lost: bool = False


def perform(shared: Mapping[str, Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Make a call in this process: what an engine has its workers do."""
    begun = time.perf_counter()
    try:
        value = function(shared, *arguments)
    except Exception as error:
        return Outcome(error=f"{type(error).__name__}: {one_line(error)}", seconds=time.perf_counter() - begun)
    return Outcome(value, seconds=time.perf_counter() - begun)


class Engine(ABC):
    """Runs calls elsewhere: ``with engine: ...`` starts its workers and ends them.

    An engine of your own needs ``submit`` and ``results``, and has its workers call :func:`gqlab.tasks.perform`:
    docs/scale.md shows one.
    """

    #: How many tasks run at a time.
    workers: int = 1
    #: The first argument of every task, and the device that it runs on: see ``prepare``.
    shared: Mapping[str, Any] = {}
    device: str = "cpu"

    def prepare(self, shared: Mapping[str, Any], device: str = "cpu") -> None:
        """Called before the first task, with what all tasks share, to be sent to every worker once, and the device."""
        self.shared, self.device = dict(shared), device

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Accept a task, without waiting."""

    @abstractmethod
    def results(self) -> Iterator[tuple[Task, Outcome]]:
        """The submitted tasks, each as it ends, until none is left. More may be submitted meanwhile."""

    def close(self) -> None:  # noqa: B027 - an engine may have nothing to close
        """End everything at once: tasks that are still running are abandoned."""

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

    ``tasks`` are taken when there is room for them, so that a generator can adapt to earlier outcomes. A task that
    fails is retried ``retries`` times, and one whose worker died ``losses`` times, before its error becomes its
    outcome.

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
