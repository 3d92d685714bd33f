"""What learning tells on its way: a progress bar, ``progress.csv``, TensorBoard's event files."""

from __future__ import annotations

import contextlib
import csv
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gqlab.files import check_writable, write_whole
from gqlab.learn.callbacks import Callback

if TYPE_CHECKING:
    from gqlab.learn.agent import Agent

#: The columns of progress.csv, with Stable-Baselines3's names where it has them.
COLUMNS = (
    "time/total_timesteps",
    "time/episodes",
    "rollout/ep_rew_mean",
    "rollout/ep_len_mean",
    "rollout/exploration_rate",
    "train/n_updates",
)

#: Seconds between two times that the file is written, at least.
WRITE_AFTER = 1.0


@contextlib.contextmanager
def progress_of(agent: Agent, total: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """A progress bar over so many more steps, with the mean return of the last episodes."""
    if not wanted:
        yield lambda: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        raise ValueError("progress_bar: tqdm is missing; pip install tqdm") from None
    first = agent.num_timesteps
    with tqdm(total=total, unit=" steps", unit_scale=True) as bar:

        def tell() -> None:
            bar.set_postfix_str(f"return {agent.episodes.mean_return():.1f}", refresh=False)
            bar.update(agent.num_timesteps - first - bar.n)

        yield tell


class Log(Callback):
    """Write ``progress.csv``, and event files for TensorBoard where it is installed.

    Rows of steps that are still to come, of a run that was stopped and is gone on with, are dropped.

    Parameters
    ----------
    folder : path
    every : int
        Steps between two rows.
    """

    def __init__(self, folder: str, every: int = 1000) -> None:
        self.folder, self.every = Path(folder), every
        self.rows: list[dict[str, Any]] = []
        self._events: Any = None
        self._written = 0.0

    def on_training_start(self, agent: Agent) -> None:
        check_writable(self.folder)
        self.rows = _rows_until(self.folder / "progress.csv", agent.num_timesteps)
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
        self.rows.append(dict(zip(COLUMNS, values, strict=True)))
        if self._events is not None:
            _write_events(self._events, self.rows[-1], steps)
        if time.monotonic() - self._written > WRITE_AFTER:
            self._write()

    def on_training_end(self, agent: Agent) -> None:
        self._write()
        if self._events is not None:
            self._events.close()

    def _write(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows(self.rows)
        write_whole(self.folder / "progress.csv", lambda file: file.write(text.getvalue().encode()))
        self._written = time.monotonic()


def _rows_until(path: Path, steps: int) -> list[dict[str, Any]]:
    """The rows of an earlier log up to a step."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path} is not a log of gqlab: it has other columns")
        return [row for row in reader if int(row[COLUMNS[0]]) <= steps]


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
