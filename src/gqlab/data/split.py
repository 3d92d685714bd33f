"""Whole episodes of a source, chosen at random: those that are fitted to, and those that judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import ARRAYS, Chunk, arrays_of


class Source(Protocol):
    """Where the transitions of a data set come from."""

    def chunks(self) -> Iterator[Chunk]: ...


@dataclass(frozen=True)
class Episodes:
    """Whole episodes of another source, which is read again for each pass."""

    source: Source
    chosen: NDArray[np.bool_]  # by the number of the episode

    def chunks(self) -> Iterator[Chunk]:
        """The transitions of the episodes that were chosen, in their order."""
        number = np.cumsum(self.chosen) - 1
        row = 0
        for chunk in self.source.chunks():
            if chunk.episode[-1] >= len(self.chosen):
                raise ValueError(f"data has changed: it had {len(self.chosen):,} episodes, and now has more")
            keep = self.chosen[chunk.episode]
            if keep.any():
                arrays = {name: value[keep] for name, value in arrays_of(chunk).items()}
                arrays["episode"] = number[arrays["episode"]]
                yield Chunk(**{name: arrays.get(name) for name in ARRAYS}, first_row=row)  # type: ignore[arg-type]
                row += int(keep.sum())


def lengths_of(chunks: Iterable[Chunk]) -> NDArray[np.int64]:
    """The rows of each episode."""
    lengths = np.zeros(0, np.int64)
    for chunk in chunks:
        last = int(chunk.episode[-1])
        if last >= len(lengths):  # twice as long: what is done for each chunk stays proportional to the chunk
            lengths = np.concatenate([lengths, np.zeros(max(last + 1 - len(lengths), len(lengths)), np.int64)])
        first = int(chunk.episode[0])
        lengths[first : last + 1] += np.bincount(chunk.episode - first)
    return lengths[: last + 1]


def drawn(n: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Which of n episodes belong to the share: at least one, and not all."""
    if n < 2:
        raise ValueError("split: the data are one episode, expected at least 2: an episode is not cut in two")
    chosen = np.zeros(n, bool)
    chosen[np.random.default_rng(seed).permutation(n)[: min(max(round(share * n), 1), n - 1)]] = True
    return chosen
