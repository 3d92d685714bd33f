"""A study: a design as data, the calls that it asks for, what is gathered from them, and what is written.

    class Leaderboard(Study):
        name = "compare"
        def calls(self): ...                      # Call(measure, (family, algorithm)), …
        def gather(self, results): ...            # statistics, from one value for each call, in their order
        def write(self, gathered, folder): ...    # files; returns the text for a terminal

:func:`run_study` makes the calls that a folder does not hold yet, on any engine, and hands the results of all to
``gather``. Each is kept as soon as it is finished: whoever is killed loses at most the calls that were running, and the
same command resumes from there. Several commands may work on one folder.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from gqlab.engine.interrupts import set_stop
from gqlab.studies.archive import TIMES, Archive
from gqlab.studies.keys import Call
from gqlab.support.files import token, write_whole, writing
from gqlab.support.progress import progress_bar
from gqlab.tasks.base import Engine, Task, run_tasks
from gqlab.tasks.engines import engine_of

#: What a call gave.
Result = dict[str, Any]


class Study(ABC):
    """A design, its calls, and what becomes of them."""

    #: Of the command and its files.
    name: ClassVar[str]

    @abstractmethod
    def calls(self) -> Sequence[Call]:
        """What is to be computed; the same call may stand there twice."""

    @abstractmethod
    def gather(self, results: Sequence[Result]) -> Any:
        """Statistics, from the results of the calls in their order; ``result["times"]`` holds measured times."""

    @abstractmethod
    def write(self, gathered: Any, folder: Path) -> str:
        """Write figures, tables and pages, none of which holds a measured time; the text for a terminal."""


@dataclass(frozen=True)
class How:
    """How calls are made: nothing here decides a result.

    Attributes
    ----------
    engine : str or Engine
        "threads", "processes", "ray", or an engine itself.
    workers : int, optional
    address : str, optional
        Of a Ray cluster.
    force : bool
        Compute what is finished again.
    device : str
        That the calls run on: an engine gives each of them a GPU for "cuda". The calls say it, too: it decides digits.
    progress : bool, optional
        Whether there is a bar; None: on a terminal.
    """

    engine: str | Engine = "threads"
    workers: int | None = None
    address: str | None = None
    force: bool = False
    device: str = "cpu"
    progress: bool | None = None


@dataclass(frozen=True)
class Finished:
    """A study that is done."""

    gathered: Any
    text: str  # for a terminal
    n_calls: int
    n_computed: int  # the others were finished already


def run_study(study: Study, folder: Path, how: How = How()) -> Finished:  # noqa: B008 - frozen
    """Make the calls that are missing in the folder, gather, and write; ``times.json`` has what was measured of time.

    Examples
    --------
    A study that squares numbers:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from gqlab.studies.keys import Call
    >>> from gqlab.studies.study import Study, run_study
    >>> class Squares(Study):
    ...     name = "squares"
    ...     def calls(self):
    ...         return [Call(lambda x: {"square": x * x}, (k,)) for k in range(4)]
    ...     def gather(self, results):
    ...         return sum(result["square"] for result in results)
    ...     def write(self, gathered, folder):
    ...         return f"their sum is {gathered}"
    >>> folder = Path(tempfile.mkdtemp())
    >>> done = run_study(Squares(), folder)
    >>> done.text, done.n_computed
    ('their sum is 14', 4)
    >>> run_study(Squares(), folder).n_computed
    0
    """
    with Runner(folder, how) as runner:
        calls = list(study.calls())
        results = runner.results(calls, study.name)
        gathered = study.gather(results)
        with writing(folder):
            text = study.write(gathered, folder)
            write_times(folder, calls, results)
        return Finished(gathered, text, len(calls), runner.n_computed)


class Runner:
    """Makes calls on one engine, which starts when the first is missing, and keeps them in one folder.

    ``with Runner(folder, how) as runner: runner.results(calls)``, as often as one likes: studies that share calls share
    their results.
    """

    def __init__(self, folder: Path, how: How = How()) -> None:  # noqa: B008 - frozen
        self.archive, self.how = Archive(Path(folder)), how
        #: Calls that were computed here, not found.
        self.n_computed = 0
        self._done: dict[str, Result] = {}
        self._before: dict[str, Result] = {}  # what ``kept`` has read
        self._unusable: set[str] = set()  # whose files are damaged, or not wanted
        self._chosen = engine_of(how.engine, how.workers, how.address)  # what is wrong with it is said first
        self._engine: Engine | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.archive.prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def results(self, calls: Sequence[Call], title: str = "") -> list[Result]:
        """What the calls gave, in their order; ``ValueError`` where some failed, when all others are finished."""
        each = {call.key: call for call in calls}
        missing = {key: call for key, call in each.items() if not self._find(call)}
        total = sum(call.cost for call in each.values())
        shape = "{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
        with progress_bar(self.how.progress, total=total, desc=title, bar_format=shape, dynamic_ncols=True) as bar:
            bar.update(total - sum(call.cost for call in missing.values()))
            failed = self._compute(missing, bar.update) if missing else {}
        if failed:
            key, reason = next(iter(failed.items()))
            raise ValueError(
                f"{len(failed)} of {len(each)} tasks failed, the first {each[key].label or key}: {reason}; the others "
                f"are kept in {self.archive.folder}"
            )
        return [self._done[call.key] for call in calls]

    def kept(self, calls: Sequence[Call]) -> list[Result] | None:
        """What the calls gave, if all are finished: here, or before, whether or not that is to be done again.

        None otherwise: nothing is computed.
        """
        found = []
        for call in calls:
            value = self._done.get(call.key) or self._before.get(call.key) or self._read(call)
            if value is None:
                return None
            found.append(value)
        return found

    def _read(self, call: Call) -> Result | None:
        """What was finished before; a file that is damaged is named once."""
        if call.key in self._unusable:
            return None
        exists = self.archive.path(call.key).is_file()
        found = self.archive.load(call) if exists else None
        if found is not None:
            self._before[call.key] = found
        elif exists:
            self._unusable.add(call.key)
        return found

    def _find(self, call: Call) -> bool:
        """Whether a call is done: here, or, if that may count, before."""
        if call.key in self._done:
            return True
        found = None if self.how.force else self._before.get(call.key) or self._read(call)
        if found is not None:
            self._done[call.key] = found
        elif self.how.force:
            self._unusable.add(call.key)
        return found is not None

    def _compute(self, missing: Mapping[str, Call], advance: Callable[[float], object]) -> dict[str, str]:
        """Make calls; of those that failed, what they said."""
        failed: dict[str, str] = {}
        for task, outcome in run_tasks(self._begun(), self._tasks(missing, advance)):
            call = missing[task.arguments[2]]
            if outcome.error:
                failed[call.key] = outcome.error
            else:
                with writing(self.archive.folder):
                    if outcome.value is not None:
                        self.archive.save(call.key, call.settings, outcome.value)
                self._take(call)
                self.n_computed += 1
            advance(call.cost)
        return failed

    def _tasks(self, missing: Mapping[str, Call], advance: Callable[[float], object]) -> Iterator[Task]:
        """Calls as an engine takes them; one that another command has finished in the meantime is left out."""
        for key, call in missing.items():
            if key not in self._unusable and self.archive.path(key).is_file() and self._find(call):
                advance(call.cost)
            else:
                yield Task(make_call, (call.function, call.arguments, key, call.settings))

    def _take(self, call: Call) -> None:
        found = self.archive.load(call)
        if found is None:
            raise ValueError(f"{self.archive.path(call.key)}, which a worker has written, is not there: begin again")
        self._done[call.key] = found

    def _begun(self) -> Engine:
        if self._engine is None:
            name = self._open.enter_context(token(self.archive.folder))
            self._engine = self._open.enter_context(self._chosen)
            self._engine.prepare({"archive": replace(self.archive, token=name)}, self.how.device)
        return self._engine


# --- In a worker ----------------------------------------------------------------------------------------------------


def make_call(
    shared: Mapping[str, Any], function: Any, arguments: Any, key: str, settings: Mapping[str, Any]
) -> Result | None:
    """Make a call and keep what it gave, or hand it back where the driver's folder is not to be seen."""
    set_stop(shared.get("stop"))
    began = time.perf_counter()
    value = dict(function(*arguments))
    value[TIMES] = {"seconds": time.perf_counter() - began, **value.get(TIMES, {})}
    archive: Archive = shared["archive"]
    if not archive.is_seen():
        return value
    try:
        archive.save(key, settings, value)
    except OSError:  # the value is good: the driver tries, and says what is wrong with the folder
        return value
    return None


# --- What is written ------------------------------------------------------------------------------------------------


def write_times(folder: Path, calls: Sequence[Call], results: Sequence[Result]) -> None:
    """``times.json``: what every call measured of time, and the seconds of all."""
    each = [{"call": call.label or call.key, **result[TIMES]} for call, result in zip(calls, results, strict=True)]
    total = sum(times.get("seconds", 0.0) for times in each)
    write_texts(folder, {"times.json": json.dumps({"seconds": total, "calls": each}, ensure_ascii=False, indent=1)})


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Every text in its file, whole."""
    for name, text in texts.items():
        data = text.encode()
        write_whole(folder / name, lambda file, data=data: file.write(data))  # type: ignore[misc]
