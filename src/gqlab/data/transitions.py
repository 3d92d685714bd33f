"""Logged transitions: rows (s, a, r, s') with their episodes, in memory or in files."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.data import arrow, parquet
from gqlab.data.assemble import ARRAYS, Assembler, Chunk, arrays_of
from gqlab.data.columns import resolve
from gqlab.data.rows import MOST_ACTIONS, Place, Rows, as_array, checked
from gqlab.data.split import Episodes, Source, drawn, lengths_of
from gqlab.support import checks
from gqlab.support.files import write_whole

__all__ = ["Chunk", "Transitions"]


@dataclass(frozen=True)
class Memory:
    """All transitions in one chunk."""

    chunk: Chunk

    def chunks(self) -> Iterator[Chunk]:
        yield self.chunk


class Transitions:
    """Logged data: transitions (s, a, r, s') in order, made by one of the constructors ``from_...``.

    Attributes
    ----------
    n_rows : int
        Transitions.
    n_actions : int
        Actions are 0, 1, …, n_actions − 1.
    observation_size : int
        Numbers of an observation.
    n_left_out : int
        Rows of the source that are no transitions: they were cut off, and their next observation is unknown.
    description : str
        Where the data come from.

    Examples
    --------
    >>> import gqlab as gq
    >>> data = gq.Transitions.from_arrays(
    ...     observations=[[0.0], [0.5], [0.1], [0.6]],
    ...     actions=[0, 1, 1, 0],
    ...     rewards=[0.0, 1.0, 0.0, 1.0],
    ...     terminated=[False, True, False, True],
    ... )
    >>> data
    Transitions(n_rows=4, n_actions=2, observation_size=1)
    >>> chunk = data.to_chunk()
    >>> chunk.next_observations[:, 0], chunk.episode  # a row that terminated has no next observation: it keeps its own
    (array([0.5, 0.5, 0.6, 0.6]), array([0, 0, 1, 1]))
    """

    def __init__(
        self, source: Source, n_rows: int, n_actions: int, observation_size: int, n_left_out: int, description: str
    ) -> None:
        self._source = source
        self.n_rows = n_rows
        self.n_actions = n_actions
        self.observation_size = observation_size
        self.n_left_out = n_left_out
        self.description = description

    def __repr__(self) -> str:
        return (
            f"Transitions(n_rows={self.n_rows}, n_actions={self.n_actions}, observation_size={self.observation_size})"
        )

    def chunks(self) -> Iterator[Chunk]:
        """The transitions in order: one chunk where they are in memory, else some rows of the files at a time.

        Examples
        --------
        >>> import gqlab as gq
        >>> data = gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0])
        >>> sum(chunk.rewards.sum() for chunk in data.chunks())
        np.float64(1.0)
        """
        return self._source.chunks()

    @property
    def in_memory(self) -> bool:
        """Whether all transitions are in memory, and not in files."""
        return isinstance(self._source, Memory)

    def load(self) -> Transitions:
        """The same transitions, all in memory.

        Examples
        --------
        >>> import gqlab as gq
        >>> gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0]).load().in_memory
        True
        """
        if self.in_memory:
            return self
        about = self.n_rows, self.n_actions, self.observation_size, self.n_left_out, self.description
        return Transitions(Memory(self.to_chunk()), *about)

    def to_chunk(self) -> Chunk:
        """All transitions in memory, as one chunk.

        Examples
        --------
        >>> import gqlab as gq
        >>> gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0]).to_chunk().actions
        array([0, 1])
        """
        chunks = list(self.chunks())
        if len(chunks) == 1:
            return chunks[0]
        parts = [arrays_of(chunk) for chunk in chunks]
        whole = {name: checks.frozen(np.concatenate([part[name] for part in parts])) for name in parts[0]}
        return Chunk(**{name: whole.get(name) for name in ARRAYS}, first_row=0)  # type: ignore[arg-type]

    def split(self, share: float = 0.5, seed: int = 0) -> tuple[Transitions, Transitions]:
        """Two data sets of whole episodes: a ``share`` of them, drawn at random, and the others, in their order.

        Fit to one and judge by the other. Which episodes are drawn depends on their number and the seed alone: the same
        rows are split alike in memory and in files. Data in files stay there: each part reads them again in every pass,
        and leaves out the episodes of the other; :meth:`load` or :meth:`to_parquet` makes it independent of them.

        Parameters
        ----------
        share : float
            Of the episodes, above 0 and below 1: rounded, at least one and not all.
        seed : int

        Examples
        --------
        >>> import gqlab as gq
        >>> data = gq.collect("FrozenLake-v1", n_steps=1000)
        >>> fitted, judging = data.split()
        >>> fitted.n_rows + judging.n_rows
        1000
        """
        share = checks.number("share", share, above=0, below=1)
        lengths = lengths_of(self.chunks())
        chosen = drawn(len(lengths), share, checks.integer("seed", seed, least=0))
        return self._of_episodes(chosen, lengths), self._of_episodes(~chosen, lengths)

    def _of_episodes(self, chosen: NDArray[np.bool_], lengths: NDArray[np.int64]) -> Transitions:
        source: Source = Episodes(self._source, chosen)
        if self.in_memory:
            [chunk] = source.chunks()
            source = Memory(Chunk(**{**vars(chunk), **{n: checks.frozen(a) for n, a in arrays_of(chunk).items()}}))
        name = f"{int(chosen.sum()):,} of {len(chosen):,} episodes of {self.description}"
        return Transitions(source, int(lengths[chosen].sum()), self.n_actions, self.observation_size, 0, name)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A digest of the content: the same for the same rows, in memory, in one file or in ten. Files are read for it.

        Examples
        --------
        >>> import gqlab as gq
        >>> rows = [0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0]
        >>> gq.Transitions.from_arrays(*rows).fingerprint == gq.Transitions.from_arrays(*rows).fingerprint
        True
        """
        columns: dict[str, Any] = {}
        for chunk in self.chunks():
            for name, array in arrays_of(chunk).items():
                digest = columns.setdefault(name, hashlib.sha256(f"{name} {array.dtype} {array.shape[1:]}".encode()))
                digest.update(np.ascontiguousarray(array))
        whole = hashlib.sha256(f"{self.n_rows} {self.n_actions}".encode())
        for name in sorted(columns):
            whole.update(columns[name].digest())
        return whole.hexdigest()

    @classmethod
    def from_arrays(
        cls, observations: ArrayLike, actions: ArrayLike, rewards: ArrayLike, next_observations: ArrayLike | None =
        None, terminated: ArrayLike | None = None, truncated: ArrayLike | None = None, episodes: ArrayLike | None =
        None, probabilities: ArrayLike | None = None, n_actions: int | None = None,
    ) -> Transitions:  # fmt: skip
        """Transitions of arrays with one entry for each row.

        Parameters
        ----------
        observations : array, shape (n, dim) or (n,)
        actions : array, shape (n,)
            Whole numbers from 0.
        rewards : array, shape (n,)
        next_observations : array, shape (n, dim), optional
            Without them the rows of an episode follow each other, and the next observation is that of the next row.
            Then the last row of an episode needs an end. One that was truncated is left out: its next observation is
            unknown.
        terminated, truncated : array of bool, shape (n,), optional
            Where the environment ended an episode, and where it was only cut off. Never both.
        episodes : array, shape (n,), optional
            Anything that differs between consecutive episodes.
        probabilities : array, shape (n,), optional
            The behaviour policy's probability of the action that was taken.
        n_actions : int, optional
            Default: the largest action plus 1.

        Examples
        --------
        >>> import gqlab as gq
        >>> data = gq.Transitions.from_arrays([0, 1, 2, 0], [0, 0, 1, 1], [0, 0, 1, 0], truncated=[0, 0, 0, 1])
        >>> data.n_rows, data.n_left_out
        (3, 1)
        """
        given = {
            "observation": ("observations", observations), "action": ("actions", actions),
            "reward": ("rewards", rewards), "next_observation": ("next_observations", next_observations),
            "terminated": ("terminated", terminated), "truncated": ("truncated", truncated),
            "episode": ("episodes", episodes), "probability": ("probabilities", probabilities),
        }  # fmt: skip
        values = {role: _array(role, *pair) for role, pair in given.items() if pair[1] is not None}
        place = Place({role: (name,) for role, (name, _) in given.items()})
        n_actions = _n_actions(n_actions)
        for role in ("observation", "action", "reward"):
            if role not in values:
                raise ValueError(f"{given[role][0]} is None, expected an array")
        return _in_memory(checked(values, place, n_actions), n_actions, "arrays")

    @classmethod
    def from_dataframe(
        cls, df: Any, columns: Mapping[str, Any] | None = None, n_actions: int | None = None
    ) -> Transitions:
        """Transitions of a data frame of pandas or polars, or of an Arrow table.

        Parameters
        ----------
        df : data frame
            The observation is a column of lists, or several columns ``obs_0``, ``obs_1``, …
        columns : dict, optional
            What a column means, where its name does not say so: ``{"observation": ["x", "v"], "action": "lever"}``.
            Keys: observation, action, reward, next_observation, terminated, truncated, done, last, episode,
            probability.
        n_actions : int, optional
            Default: the largest action plus 1.

        Examples
        --------
        >>> import gqlab as gq
        >>> import pandas as pd
        >>> df = pd.DataFrame({"x": [0.0, 0.5], "v": [1.0, 1.0], "lever": [0, 1], "reward": [0, 1], "done": [0, 1]})
        >>> gq.Transitions.from_dataframe(df, columns={"observation": ["x", "v"], "action": "lever"})
        Transitions(n_rows=2, n_actions=2, observation_size=2)
        """
        plan = resolve(arrow.names_of(df), columns)
        n_actions = _n_actions(n_actions)
        table = arrow.table_of(df, [name for names in plan.values() for name in names])
        rows = arrow.rows_of(table, plan, Place(plan, "df"), n_actions)
        return _in_memory(rows, n_actions, f"data frame of {type(df).__module__.partition('.')[0]}")

    @classmethod
    def from_parquet(
        cls, path: Any, columns: Mapping[str, Any] | None = None, n_actions: int | None = None
    ) -> Transitions:
        """Transitions of Parquet files. They are read again for each pass, a few rows at a time: memory stays bounded.

        Parameters
        ----------
        path : str or path, or a list of them
            A file, a pattern such as ``"logs/*.parquet"``, or a folder. Files follow each other in the order of the
            list, those of a pattern by name, numbers as numbers. An episode may go on in the next file.
        columns, n_actions
            As of :meth:`from_dataframe`. A file that :meth:`to_parquet` wrote knows its number of actions.

        Examples
        --------
        >>> import gqlab as gq, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "log.parquet")
        >>> gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0]).to_parquet(path)
        >>> gq.Transitions.from_parquet(path)
        Transitions(n_rows=2, n_actions=2, observation_size=1)
        """
        files, n_rows, left_out = parquet.files_of(path, columns, _n_actions(n_actions))
        if not n_rows:
            raise ValueError(f"path: there is no transition in {parquet.printable(files.paths[0])}")
        first = next(files.chunks())
        size = int(first.observations.shape[1])
        named = parquet.printable(files.paths[0])
        names = named if len(files.paths) == 1 else f"{len(files.paths)} files from {named}"
        return cls(files, n_rows, files.n_actions or 0, size, left_out, f"Parquet: {names}")

    @classmethod
    def from_minari(cls, dataset: Any) -> Transitions:
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

    def to_parquet(self, path: Any) -> None:
        """Write a Parquet file, whole or not at all, with the columns observation, action, reward, next_observation,
        terminated, truncated, episode and, where it is known, probability.

        Examples
        --------
        >>> import gqlab as gq, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "log.parquet")
        >>> data = gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0])
        >>> data.to_parquet(path)
        >>> gq.Transitions.from_parquet(path).fingerprint == data.fingerprint
        True
        """
        write_whole(parquet.resolved(path), parquet.writer(self.chunks(), self.n_actions))


def _n_actions(value: Any) -> int | None:
    return None if value is None else checks.integer("n_actions", value, least=1, below=MOST_ACTIONS + 1)


def _array(role: str, name: str, value: Any) -> NDArray[Any]:
    """An argument as an array; episodes may be named by anything."""
    if role != "episode":
        return as_array(name, value)
    out = checks.plain_array(name, value)
    if out.ndim != 1:
        raise ValueError(f"{name} has shape {out.shape}, expected one entry for each row")
    return out


def _in_memory(rows: Rows, n_actions: int | None, description: str) -> Transitions:
    assembler = Assembler()
    parts = [part for part in (assembler.add(rows), assembler.finish()) if part is not None]
    if not parts:
        name = rows.place.column("observation")
        raise ValueError(f"{name} has {len(rows)} rows, and no transition is left of them, expected at least one")
    arrays = [arrays_of(part) for part in parts]
    whole = {
        name: checks.frozen(np.concatenate([part[name] for part in arrays]) if len(arrays) > 1 else arrays[0][name])
        for name in arrays[0]
    }
    chunk = Chunk(**{name: whole.get(name) for name in ARRAYS}, first_row=0)  # type: ignore[arg-type]
    return Transitions(
        Memory(chunk),
        len(chunk),
        n_actions or int(chunk.actions.max()) + 1,
        chunk.observations.shape[1],
        assembler.left_out,
        description,
    )
