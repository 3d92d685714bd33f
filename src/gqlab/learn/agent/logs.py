"""What learning tells on its way: a progress bar, ``progress.csv``, TensorBoard's event files."""

from __future__ import annotations

import contextlib
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gqlab.learn.agent.callbacks import Callback
from gqlab.support.files import check_writable, write_whole
from gqlab.support.progress import progress_bar

if TYPE_CHECKING:
    from gqlab.learn.agent.agent import Agent

#: The columns of progress.csv, with Stable-Baselines3's names where it has them.
COLUMNS = (
    "time/total_timesteps",
    "time/episodes",
    "rollout/ep_rew_mean",
    "rollout/ep_len_mean",
    "rollout/exploration_rate",
    "train/n_updates",
)


@contextlib.contextmanager
def progress_of(agent: Agent, total: int, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """A progress bar over so many more steps, with the mean return of the last episodes."""
    if not wanted:
        yield lambda: None
        return
    first = agent.num_timesteps
    with progress_bar(wanted, total=total, unit=" steps", unit_scale=True) as bar:

        def advance_bar() -> None:
            bar.set_postfix_str(f"return {agent.episodes.mean_return():.1f}", refresh=False)
            bar.update(agent.num_timesteps - first - bar.n)

        yield advance_bar


class ProgressLog(Callback):
    """Write ``progress.csv``, and event files for TensorBoard where it is installed.

    When a run is resumed, rows of steps after the point of resumption are dropped.

    Parameters
    ----------
    folder : path
    every : int
        Steps between two rows.
    """

    def __init__(self, folder: str, every: int = 1000) -> None:
        self.folder, self.every = Path(folder), every
        self._events: Any = None
        self._file: Any = None

    def on_training_start(self, agent: Agent) -> None:
        check_writable(self.folder)
        path = self.folder / "progress.csv"
        lines = [COLUMNS, *_rows_until(path, agent.num_timesteps)]
        write_whole(path, lambda file: file.write("".join(map(_line, lines)).encode()))
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - a row is written at once, and whole
        self._events = _event_writer(self.folder)

    def on_step(self, agent: Agent) -> None:
        episodes, steps = agent.episodes, agent.num_timesteps
        values = (
            steps,
            len(episodes),
            episodes.mean_return(),
            episodes.mean_length(),
            agent.epsilon(steps),
            agent.n_updates,
        )
        self._file.write(_line(values).encode())
        if self._events is not None:
            _write_events(self._events, dict(zip(COLUMNS, values, strict=True)), steps)

    def on_training_end(self, agent: Agent) -> None:
        if self._file is not None:
            self._file.close()
        if self._events is not None:
            self._events.close()


def _line(values: Sequence[Any]) -> str:
    return ",".join(map(str, values)) + "\n"


def _rows_until(path: Path, steps: int) -> list[list[str]]:
    """The rows of an earlier log up to a step."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if tuple(header) != COLUMNS:
        raise ValueError(f"{path} is not a log of gqlab: it has other columns")
    whole = [row for row in rows if len(row) == len(COLUMNS) and row[0].isdigit()]
    return [row for row in whole if int(row[0]) <= steps]


def _event_writer(folder: Path) -> Any:
    """TensorBoard's own writer; None where it is not installed."""
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        return None
    return EventFileWriter(str(folder))


def _write_events(writer: Any, row: dict[str, Any], steps: int) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=name, simple_value=float(value)) for name, value in row.items()]
    writer.add_event(Event(wall_time=time.time(), step=steps, summary=Summary(value=values)))
