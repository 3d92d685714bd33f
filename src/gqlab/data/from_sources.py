"""The constructors of logged transitions: arrays, data frames, CSV and Parquet files, Minari."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from numpy.typing import ArrayLike

from gqlab.data import arrow, csv_files, parquet
from gqlab.data.assemble import Chunk
from gqlab.data.columns import resolve
from gqlab.data.from_arrays import chunk_of, joined, rows_of_arrays
from gqlab.data.log import Log, TableLog
from gqlab.data.paths import TEXT, described, found, is_text, printable
from gqlab.data.reading import Reading, reading_of
from gqlab.data.rows import MOST_ACTIONS, RowPlace
from gqlab.data.schema import Label, Schema
from gqlab.data.split import Source
from gqlab.data.survey import sort_columns, sorted_table, surveyed
from gqlab.support import checks


@dataclass(frozen=True)
class Memory:
    """All transitions in one chunk."""

    chunk: Chunk

    def chunks(self) -> Iterator[Chunk]:
        yield self.chunk


class FromSources:
    """What is known of transitions, and the ways in which they are made."""

    #: How an environment's observations became vectors, where they were collected from one and are no vectors there.
    layout: Any = None
    #: What the numbers of actions stand for in the environment, where it takes others.
    actions: Any = None

    def __init__(
        self, source: Source, n_rows: int, n_actions: int, observation_size: int, n_left_out: int, description: str,
        schema: Schema | None = None, notes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self._source = source
        self.n_rows = n_rows
        self.n_actions = n_actions
        self.observation_size = observation_size
        self.n_left_out = n_left_out
        self.description = description
        self.schema = Schema() if schema is None else schema
        self.notes = notes

    @property
    def action_labels(self) -> tuple[Label, ...] | None:
        """What the actions 0, 1, … are called in the source; None where they are numbers there too."""
        return self.schema.action_labels

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What the numbers of an observation stand for: the names of columns, ``region=east`` for a label of text."""
        return self.schema.names(self.observation_size)

    # --- Constructors -----------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls, observations: ArrayLike, actions: ArrayLike, rewards: ArrayLike, next_observations: ArrayLike | None =
        None, terminated: ArrayLike | None = None, truncated: ArrayLike | None = None, episodes: ArrayLike | None =
        None, probabilities: ArrayLike | None = None, n_actions: int | None = None, *, times: ArrayLike | None = None,
        gap: Any = None, sort: bool | None = None, ends: str | None = None, action_labels: Any = None,
    ) -> Self:  # fmt: skip
        """Transitions of arrays with one entry for each row.

        Parameters
        ----------
        observations : array, shape (n, dim) or (n,)
        actions : array, shape (n,)
            Whole numbers from 0, or text: then they are numbered in the order of the alphabet.
        rewards : array, shape (n,)
        next_observations : array, shape (n, dim), optional
            Without them the rows of an episode follow each other, and the next observation is that of the next row.
            Then the last row of an episode needs an end. One that was truncated is left out: its next observation is
            unknown.
        terminated, truncated : array of bool, shape (n,), optional
            Where the environment ended an episode, and where it was only cut off. Never both.
        episodes : array, shape (n,), optional
            The names of episodes. The rows of one stand together, in the order of time.
        probabilities : array, shape (n,), optional
            The behaviour policy's probability of the action that was taken.
        n_actions : int, optional
            Default: the largest action plus 1.
        times : array, shape (n,), optional
            Numbers, or times of NumPy.
        gap, sort, ends, action_labels
            As of :meth:`from_dataframe`.

        Examples
        --------
        >>> import gqlab as gq
        >>> data = gq.Transitions.from_arrays([0, 1, 2, 0], [0, 0, 1, 1], [0, 0, 1, 0], truncated=[0, 0, 0, 1])
        >>> data.n_rows, data.n_left_out
        (3, 1)
        >>> gq.Transitions.from_arrays([0, 1], ["stay", "go"], [0, 1], [1, 2]).action_labels
        ('go', 'stay')
        """
        given = {
            "observation": ("observations", observations), "action": ("actions", actions),
            "reward": ("rewards", rewards), "next_observation": ("next_observations", next_observations),
            "terminated": ("terminated", terminated), "truncated": ("truncated", truncated),
            "episode": ("episodes", episodes), "probability": ("probabilities", probabilities),
            "time": ("times", times),
        }  # fmt: skip
        reading = reading_of(gap, sort, ends, labels=action_labels)
        if isinstance(reading.sort, tuple):
            raise ValueError(f"sort is {checks.shown(sort)}, expected True or False: arrays have no columns")
        rows, labels = rows_of_arrays(given, reading, n_actions := _n_actions(n_actions))
        chunk, left_out = chunk_of(rows, reading)
        n = len(labels) if labels is not None else n_actions or int(chunk.actions.max()) + 1
        schema = Schema(labels)
        return cls(Memory(chunk), len(chunk), n, chunk.observations.shape[1], left_out, "arrays", schema,
                   _order_notes(reading))  # fmt: skip

    @classmethod
    def from_dataframe(
        cls, df: Any, columns: Mapping[str, Any] | None = None, n_actions: int | None = None, *,
        time: str | None = None, gap: Any = None, sort: Any = None, ends: str | None = None,
        drop_nulls: str | None = None, action_labels: Any = None, like: Any = None,
    ) -> Self:  # fmt: skip
        """Transitions of a data frame of pandas or polars, or of an Arrow table.

        Parameters
        ----------
        df : data frame
            The observation is a column of lists, or several columns ``obs_0``, ``obs_1``, … Columns of an observation
            that are no numbers become some: true and false 1 and 0, dates days, text a number for each of its labels.
            ``notes`` says so.
        columns : dict, optional
            What a column means, where its name does not say so: ``{"observation": ["x", "v"], "action": "lever"}``.
            Keys: observation, action, reward, next_observation, terminated, truncated, done, last, episode,
            probability, time.
        n_actions : int, optional
            Default: the largest action plus 1, or the number of labels.
        time : str, optional
            The column of the time, numbers or times: within an episode it never goes back.
        gap : number, timedelta or text, optional
            Rows of an episode that lie further apart in time do not belong together: the first is cut off. A number
            for a time in numbers, else a timedelta, or text such as ``"36h"`` or ``"P1D"``.
        sort : bool, str or list of str, optional
            Rows of several episodes that are mixed are refused. True sorts them by episode and time (without a column
            of the time they stay in their order), names of columns by these. False takes rows as they stand, and every
            stretch of rows for an episode.
        ends : {"truncated", "terminated"}, optional
            How an episode ended whose last row does not say so. Default: it must, without next observations; with
            ``gap`` it was truncated.
        drop_nulls : {"rows", "episodes"}, optional
            Leave out rows in which a value is missing, as if the recording had stopped before them, or their whole
            episodes. Default: they are refused.
        action_labels : list, optional
            What the actions are called, in the order of their numbers: text, or numbers. Default: the texts that occur,
            in the order of the alphabet.
        like : Transitions or LinearQ, optional
            Data, or a model of them, whose labels and kinds of columns these must share.

        Examples
        --------
        >>> import gqlab as gq
        >>> import pandas as pd
        >>> df = pd.DataFrame({"x": [0.0, 0.5], "v": [1.0, 1.0], "lever": [0, 1], "reward": [0, 1], "done": [0, 1]})
        >>> gq.Transitions.from_dataframe(df, columns={"observation": ["x", "v"], "action": "lever"})
        Transitions(n_rows=2, n_actions=2, observation_size=2)
        """
        reading = reading_of(gap, sort, ends, drop_nulls, action_labels, like)
        available = arrow.names_of(df)
        plan = resolve(available, _with_time(columns, time))
        reading.check_sort(available)
        by = sort_columns(plan, reading.sort)
        every = dict.fromkeys([*(name for names in plan.values() for name in names), *by])
        log = TableLog(plan, reading, table=arrow.table_of(df, list(every)), place=RowPlace(plan, "df"))
        return cls._of_log(log, n_actions, like, f"data frame of {type(df).__module__.partition('.')[0]}")

    @classmethod
    def from_parquet(
        cls, path: Any, columns: Mapping[str, Any] | None = None, n_actions: int | None = None, *,
        time: str | None = None, gap: Any = None, sort: Any = None, ends: str | None = None,
        drop_nulls: str | None = None, action_labels: Any = None, like: Any = None,
    ) -> Self:  # fmt: skip
        """Transitions of Parquet files. They are read again for each pass, a few rows at a time: memory stays bounded.

        Parameters
        ----------
        path : str or path, or a list of them
            A file, a pattern such as ``"logs/*.parquet"``, or a folder. Files follow each other in the order of the
            list, those of a pattern by name, numbers as numbers. An episode may continue in the next file.
        columns, n_actions, time, gap, sort, ends, drop_nulls, action_labels, like
            As of :meth:`from_dataframe`. A file that :meth:`to_parquet` wrote knows its number of actions and all
            labels. Sorting reads all rows into memory.

        Examples
        --------
        >>> import gqlab as gq, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "log.parquet")
        >>> gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0]).to_parquet(path)
        >>> gq.Transitions.from_parquet(path)
        Transitions(n_rows=2, n_actions=2, observation_size=1)
        """
        reading = reading_of(gap, sort, ends, drop_nulls, action_labels, like)
        files = parquet.files_of(path, _with_time(columns, time), reading)
        return cls._of_log(files, n_actions, like, f"Parquet: {described(files.paths)}")

    @classmethod
    def from_csv(
        cls, path: Any, columns: Mapping[str, Any] | None = None, n_actions: int | None = None, *,
        time: str | None = None, gap: Any = None, sort: Any = None, ends: str | None = None,
        drop_nulls: str | None = None, action_labels: Any = None, like: Any = None,
        delimiter: str | None = None, decimal: str = ".", encoding: str = "utf8",
    ) -> Self:  # fmt: skip
        """Transitions of CSV files. They are read again for each pass, a block at a time: memory stays bounded.

        A first pass finds the type of each column: whole numbers, numbers, true and false, dates and times as ISO 8601
        writes them, else text. An empty value is null, in columns of numbers also ``NA``, ``NaN``, ``null`` and such.

        Parameters
        ----------
        path : str or path, or a list of them
            A file, a pattern such as ``"logs/*.csv"``, or a folder, as of :meth:`from_parquet`; ``.gz``, ``.bz2`` and
            ``.zst`` are unpacked. The first line names the columns.
        columns, n_actions, time, gap, sort, ends, drop_nulls, action_labels, like
            As of :meth:`from_dataframe`. Sorting reads all rows into memory.
        delimiter : str, optional
            Between the values of a row. Default: the one of ``, ; | tab`` that the first line has most of.
        decimal : {".", ","}
            In numbers.
        encoding : str

        Examples
        --------
        >>> import gqlab as gq, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
        >>> with open(path, "w") as file:
        ...     _ = file.write("stock,order,profit\\n3,none,1.5\\n2,ten,-4\\n11,none,2\\n")
        >>> columns = {"observation": "stock", "action": "order", "reward": "profit"}
        >>> data = gq.Transitions.from_csv(path, columns, ends="truncated")
        >>> data, data.action_labels
        (Transitions(n_rows=2, n_actions=2, observation_size=1), ('none', 'ten'))
        """
        reading = reading_of(gap, sort, ends, drop_nulls, action_labels, like)
        files = csv_files.files_of(path, _with_time(columns, time), reading, delimiter, decimal, encoding)
        return cls._of_log(files, n_actions, like, f"CSV: {described(files.paths)}")

    @classmethod
    def from_files(cls, path: Any, columns: Mapping[str, Any] | None = None, n_actions: int | None = None,
                   **options: Any) -> Self:  # fmt: skip
        """Transitions of CSV or of Parquet files, by their names: :meth:`from_csv`, or :meth:`from_parquet`.

        Examples
        --------
        >>> import gqlab as gq
        >>> gq.Transitions.from_files("log.csv")
        Traceback (most recent call last):
        ValueError: path is 'log.csv': there is no such file
        """
        paths = found(path, (".parquet", *csv_files.ENDINGS))
        text = [name for name in paths if is_text(name)]
        if text and len(text) < len(paths):
            other = next(name for name in paths if not TEXT.search(name))
            raise ValueError(f"path: {printable(text[0])} is CSV and {printable(other)} is not, expected one kind")
        if not text:
            for name in ("delimiter", "decimal", "encoding"):
                options.pop(name, None)
        read = cls.from_csv if text else cls.from_parquet
        return read(list(paths), columns, n_actions, **options)

    @classmethod
    def from_minari(cls, dataset: Any) -> Self:
        """Transitions of a Minari data set, or of its name, read into memory.

        Reading costs time for each episode: :meth:`to_parquet` makes a file that is quick to read again.

        Examples
        --------
        >>> import gqlab as gq
        >>> gq.Transitions.from_minari(3.5)
        Traceback (most recent call last):
        ValueError: dataset is 3.5, expected a Minari data set or the name of one
        """
        from gqlab.data.from_minari import arrays_of_minari

        arrays, name = arrays_of_minari(dataset)
        out = cls.from_arrays(**arrays)
        out.description = f"Minari: {name}"
        return out

    @classmethod
    def _of_log(cls, log: Log, n_actions: Any, like: Any, description: str) -> Self:
        """The transitions of a log, once its rows were looked at; those of a table are made at once."""
        given = _n_actions(n_actions)
        if given is None and like is not None and log.reading.labels is None:
            given = _n_actions(like.n_actions)
        by = sort_columns(log.plan, log.reading.sort)
        if by:
            place = log.place if isinstance(log, TableLog) else RowPlace(log.plan, description.partition(": ")[2])
            log = sorted_table(log, by, place)
        log = surveyed(log, given)
        scan = log.scan()
        if not scan.n_rows:
            name = "df" if description.startswith("data frame") else f"path: {description.partition(': ')[2]}"
            raise ValueError(f"{name}: there is no transition, expected at least one")
        log = replace(log, n_actions=log.n_actions or scan.top + 1)
        source: Source = log
        if isinstance(log, TableLog):
            source = Memory(joined(list(log.chunks())))
        size = int(next(source.chunks()).observations.shape[1])
        notes = (*log.schema.notes(), *_order_notes(log.reading, by), *_drop_notes(log, scan.dropped))
        assert log.n_actions is not None
        return cls(source, scan.n_rows, log.n_actions, size, scan.left_out, description, log.schema, notes)


def _with_time(columns: Any, time: Any) -> Any:
    """What the columns mean, that of the time among them."""
    if time is None:
        return columns
    checks.instance("time", time, str, "the name of a column")
    if columns is not None and not isinstance(columns, Mapping):
        return columns  # refused further on
    if columns is not None and columns.get("time", time) != time:
        raise ValueError(f"time is {time!r}, and columns['time'] {checks.shown(columns['time'])}")
    return {**(columns or {}), "time": time}


def _order_notes(reading: Reading, by: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What was done to the order of rows, and to the ends of episodes."""
    notes = []
    if by or reading.sort is True:
        notes.append(f"Rows were sorted by {', '.join(map(repr, by)) or 'episode and time'}.")
    if reading.sort is False:
        notes.append("Rows were taken as they stand: a stretch of rows of one name is an episode.")
    if reading.gap is not None:
        unit = " seconds" if reading.in_seconds else ""
        notes.append(f"Episodes were cut off where more than {reading.gap:g}{unit} lie between two rows.")
    if reading.ends is not None:
        notes.append(f"Episodes whose last row does not say how they ended were taken as {reading.ends}.")
    return tuple(notes)


def _drop_notes(log: Log, dropped: int) -> tuple[str, ...]:
    if not log.null_columns:
        return ()
    where = ", ".join(map(repr, log.null_columns[:12])) + ("" if len(log.null_columns) <= 12 else ", …")
    if log.bad is not None:
        return (f"Episodes with nulls in {where} were left out: {len(log.bad):,} of them, {dropped:,} rows.",)
    return (f"Rows with nulls in {where} were left out, and episodes cut off before them: {dropped:,} rows.",)


def _n_actions(value: Any) -> int | None:
    return None if value is None else checks.integer("n_actions", value, least=1, below=MOST_ACTIONS + 1)
