"""Logged transitions: rows (s, a, r, s') with their episodes, in memory or in files."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data import parquet
from gqlab.data.assemble import Chunk, arrays_of
from gqlab.data.from_arrays import joined
from gqlab.data.from_sources import FromSources, Memory
from gqlab.data.split import Episodes, Source, drawn, lengths_of
from gqlab.support import checks
from gqlab.support.files import write_whole

__all__ = ["Chunk", "Transitions"]


class Transitions(FromSources):
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
    action_labels : tuple or None
        What the actions are called in the source; None where they are numbers from 0 there too.
    observation_names : tuple of str
        What the numbers of an observation stand for.
    notes : tuple of str
        What was done to the rows when they were read: text made numbers, rows sorted or left out.

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
        return self._alike(Transitions(Memory(self.to_chunk()), *about, self.schema, self.notes))

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
        return joined(chunks)

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
        n = int(lengths[chosen].sum())
        sizes = n, self.n_actions, self.observation_size
        return self._alike(Transitions(source, *sizes, 0, name, self.schema, self.notes))

    def _alike(self, other: Transitions) -> Transitions:
        """The same observations in another place."""
        other.layout = self.layout
        other.actions = self.actions
        return other

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
        labels = "" if self.action_labels is None else f" {json.dumps(self.action_labels)}"
        whole = hashlib.sha256(f"{self.n_rows} {self.n_actions}{labels}".encode())
        for name in sorted(columns):
            whole.update(columns[name].digest())
        return whole.hexdigest()

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
        if self.observation_size == 0:
            raise ValueError("observations have no numbers: a Parquet file cannot hold them")
        write_whole(parquet.resolved(path), parquet.writer(self.chunks(), self.n_actions, self.schema))
