"""Some episodes of a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from gqlab.data.assemble import ARRAYS, Chunk, arrays_of
from gqlab.data.from_sources import Memory
from gqlab.data.transitions import Transitions


def chunk_where(data: Transitions, chunk: Chunk, chosen: Any) -> Transitions:
    """The rows of a chunk whose episodes are chosen by their number, as data of their own."""
    rows = np.asarray(chosen)[chunk.episode]
    arrays = {name: value[rows] for name, value in arrays_of(chunk).items()}
    arrays["episode"] = np.cumsum(np.append(False, np.diff(arrays["episode"]) != 0))
    part = Chunk(**{name: arrays.get(name) for name in ARRAYS}, first_row=0)  # type: ignore[arg-type]
    return Transitions(Memory(part), len(part), data.n_actions, data.observation_size, 0, data.description, data.schema)
