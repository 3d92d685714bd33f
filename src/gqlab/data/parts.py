"""Files in parts, each of which can be read, checked and assembled without the others; and rows in memory alike.

The parts follow from the data alone. Joined in order, their transitions are those of the files: where rows
follow each other, the last row of a part is given the observation of the first row behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gqlab.data.assemble import ARRAYS, Assembler, Chunk
from gqlab.data.from_sources import Memory
from gqlab.data.log import assembled
from gqlab.data.parquet import ROWS, ParquetFiles, opened
from gqlab.data.paths import printable
from gqlab.data.rows import Rows

#: The least number of rows in a piece, if its file has them.
PIECE_ROWS = ROWS

#: Parts of all files, at most, but for one at the end of each file: a part has as many pieces as that takes.
MOST_PARTS = 2**16


@dataclass(frozen=True)
class Part:
    """Consecutive row groups of a file, or rows in memory.

    Attributes
    ----------
    path : str
        Empty for rows in memory, which have no row groups.
    groups : (int, int)
        The first row group, and the one behind the last.
    first_row, n_rows : int
        The first row in the file, and how many there are.
    row : int
        The number of the first row among those of all files.
    file_rows : int
        The rows of the whole file: one that has changed is known by them.
    after : (str, int) or None
        The file and the row group that the next row is the first of; None where no row is needed.
    """

    path: str
    groups: tuple[int, int]
    first_row: int
    n_rows: int
    row: int
    file_rows: int
    after: tuple[str, int] | None = None


def parts_of(files: ParquetFiles | Memory) -> list[Part]:
    """The parts of files: one for each task of a pass."""
    if isinstance(files, Memory):
        n, size = len(files.chunk), PIECE_ROWS
        return [Part("", (0, 0), first, min(size, n - first), first, n) for first in range(0, n, size)]
    groups = {path: _group_sizes(path) for path in files.paths}
    least = max(PIECE_ROWS, -(-sum(sum(sizes) for sizes in groups.values()) // MOST_PARTS))
    parts: list[Part] = []
    row = 0
    for path in files.paths:
        whole = Part(path, (0, len(groups[path])), 0, sum(groups[path]), row, sum(groups[path]))
        parts += _cut(whole, groups[path], least)
        row += whole.n_rows
    return _followed(files, parts, None)


def pieces_of(files: ParquetFiles | Memory, part: Part, least: int) -> list[Part]:
    """A part divided further, each of at least ``least`` rows but for the last."""
    if isinstance(files, Memory):
        return [part]
    sizes = _group_sizes(part.path)[slice(*part.groups)]
    return _followed(files, list(_cut(part, sizes, least)), part.after)


def _followed(files: ParquetFiles, parts: list[Part], last: tuple[str, int] | None) -> list[Part]:
    """The parts, each with the place of the row behind it, where rows follow each other."""
    if "next_observation" in files.plan:
        return parts
    following = [(part.path, part.groups[0]) for part in parts[1:]]
    return [replace(part, after=after) for part, after in zip(parts, [*following, last], strict=True)]


def chunks_of(files: ParquetFiles | Memory, part: Part) -> Iterator[Chunk]:
    """The transitions of a part, a batch of rows at a time; rows and episodes are counted from the part's first."""
    if isinstance(files, Memory):
        arrays = {name: getattr(files.chunk, name) for name in ARRAYS}
        rows = slice(part.first_row, part.first_row + part.n_rows)
        picked: dict[str, Any] = {name: None if array is None else array[rows] for name, array in arrays.items()}
        return iter([Chunk(**picked, first_row=0)])
    ends = part.after is None
    return assembled(_rows(files, part), Assembler(), ends)


def _rows(files: ParquetFiles, part: Part) -> Iterator[Rows]:
    with opened(part.path) as file:
        if file.metadata.num_rows != part.file_rows or file.metadata.num_row_groups < part.groups[1]:
            raise ValueError(
                f"path: {printable(part.path)} has changed: it had {part.file_rows:,} rows, and now has "
                f"{file.metadata.num_rows:,}"
            )
        yield from files.rows_of(file, part.path, part.first_row, row_groups=list(range(*part.groups)))
    if part.after is not None:
        path, group = part.after
        with opened(path) as file:
            yield next(files.rows_of(file, path, size=1, row_groups=[group]))


def _group_sizes(path: str) -> list[int]:
    """The rows of each row group."""
    with opened(path) as file:
        about: Any = file.metadata
        return [int(about.row_group(k).num_rows) for k in range(about.num_row_groups)]


def _cut(whole: Part, sizes: list[int], least: int) -> Iterator[Part]:
    """Row groups of the given sizes in parts: none of these begins with a row group without rows."""
    begin = first = n = 0
    for k, size in enumerate(sizes):
        begin = k if n == 0 else begin
        n += size
        if n >= least or (n and k + 1 == len(sizes)):
            groups = whole.groups[0] + begin, whole.groups[0] + k + 1
            yield replace(
                whole, groups=groups, first_row=whole.first_row + first, n_rows=n, row=whole.row + first, after=None
            )
            first, n = first + n, 0
