"""Parquet files, read a batch at a time: memory does not grow with the files."""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from gqlab.data.arrow import needed, rows_of, table_from
from gqlab.data.assemble import Assembler, Chunk
from gqlab.data.columns import Plan, resolve
from gqlab.data.rows import MOST_ACTIONS, Place, Rows
from gqlab.support import checks
from gqlab.support.files import one_line

#: Rows that are decoded at a time, and that a row group holds when it is written: at most so many,
ROWS = 2**17

#: and so many bytes, of numbers of eight: a file of few rows may be as wide as it likes.
BATCH_BYTES = 2**24

#: Bytes of a column that are read at a time, and of all columns together where they are many: without it, a row group
#: is read whole, and some files are one row group.
BUFFER, ALL_BUFFERS, LEAST_BUFFER = 2**20, 2**26, 2**14

#: Where a file says what its columns cannot: how many actions there are.
METADATA = b"gqlab"

#: By the array of a chunk: the column that it is written to.
WRITTEN = {
    "observations": "observation", "actions": "action", "rewards": "reward", "next_observations": "next_observation",
    "terminated": "terminated", "truncated": "truncated", "episode": "episode", "probability": "probability",
}  # fmt: skip

#: What a scan reads: enough to count the transitions, and quick.
NARROW = ("action", "terminated", "truncated", "done", "last", "episode")


@dataclass(frozen=True)
class ParquetFiles:
    """Files whose rows follow each other, as if they were one."""

    paths: tuple[str, ...]
    plan: Plan
    n_actions: int | None

    def chunks(self) -> Iterator[Chunk]:
        """The transitions, a batch of rows at a time."""
        return assembled(self.rows(self.plan), Assembler())

    def scan(self) -> tuple[int, int, int]:
        """(transitions, rows that are left out, the largest action), by the narrow columns alone."""
        plan = {role: names for role, names in self.plan.items() if role in NARROW}
        if "next_observation" in self.plan:
            assembler, top, n = Assembler(), -1, 0
            for rows in self.rows(plan):
                n, top = n + len(rows), max(top, int(rows.actions.max(initial=-1)))
            return n, 0, top
        assembler, top = Assembler(), -1
        for chunk in assembled(self.rows(plan), assembler):
            top = max(top, int(chunk.actions.max(initial=-1)))
        return assembler.n_rows, assembler.left_out, top

    def rows(self, plan: Plan) -> Iterator[Rows]:
        """All rows, checked."""
        for path in self.paths:
            with opened(path) as file:
                yield from self.rows_of(file, path, plan)

    def rows_of(
        self, file: Any, path: str, plan: Plan, first: int = 0, size: int | None = None, **which: Any
    ) -> Iterator[Rows]:
        """The rows of an open file, or of the row groups in ``which`` (its first row is ``first``), in blocks."""
        columns = [name for names in plan.values() for name in names]
        size = _read(path, lambda: rows_at_a_time(file.metadata, columns)) if size is None else size
        batches = _read(path, lambda: file.iter_batches(size, columns=columns, use_threads=False, **which))
        while (batch := _read(path, lambda: next(batches, None))) is not None:
            yield rows_of(batch, plan, Place(self.plan, printable(path), first), self.n_actions)
            first += batch.num_rows


def rows_at_a_time(metadata: Any, columns: Sequence[str]) -> int:
    """How many rows of these columns are read at a time: the widest row group decides, by what its lists hold."""
    widest = 1.0
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        read = [group.column(j) for j in range(group.num_columns)]
        read = [c for c in read if any(c.path_in_schema == n or c.path_in_schema.startswith(f"{n}.") for n in columns)]
        if group.num_rows:  # text is as long as it is
            widest = max(widest, sum(max(8 * c.num_values, c.total_uncompressed_size) for c in read) / group.num_rows)
    return rows_of_bytes(widest)


def rows_of_bytes(width: float) -> int:
    """Rows of so many bytes that are handled at a time."""
    return max(1, min(ROWS, int(BATCH_BYTES / width)))


def assembled(blocks: Iterable[Rows], assembler: Assembler, ends: bool = True) -> Iterator[Chunk]:
    """The transitions of rows; where these do not end with the data, the last row only lends its observation."""
    width: int | None = None
    for rows in blocks:
        size = rows.observations.shape[1]
        if width is not None and len(rows) and size != width:
            raise ValueError(
                f"{rows.place.text('observation', 0)} has {size} numbers, and the rows before have {width}"
            )
        width = size if len(rows) else width
        chunk = assembler.add(rows)
        if chunk is not None:
            yield chunk
    chunk = assembler.finish() if ends else None
    if chunk is not None:
        yield chunk


def _read(path: str, read: Callable[[], Any]) -> Any:
    """What ``read`` returns, or one line that names the file."""
    try:
        return read()
    except Exception as error:  # pyarrow raises several kinds, some of them OSError
        raise ValueError(
            f"path: {printable(path)} is not a Parquet file, or is damaged: {one_line(error)[:200]}"
        ) from None


def printable(path: str) -> str:
    """The name of a file in one line."""
    return path if path.isprintable() else repr(path)


def opened(path: str) -> Any:
    """A file, with its metadata read."""
    pq = needed("pyarrow.parquet", "reading Parquet")
    check_regular(path)
    about = _read(path, lambda: pq.read_metadata(path))
    buffer = max(LEAST_BUFFER, min(BUFFER, ALL_BUFFERS // max(about.num_columns, 1)))
    options = {"pre_buffer": False, "buffer_size": buffer, "page_checksum_verification": True}
    return _read(path, lambda: pq.ParquetFile(path, metadata=about, **options))


def check_regular(path: str) -> None:
    """``ValueError`` where no file is: a pipe would keep the reader waiting for ever."""
    try:
        kind = os.stat(path).st_mode
    except OSError as error:
        reason = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise ValueError(f"path: {printable(path)} {reason}") from None
    if not stat.S_ISREG(kind):
        raise ValueError(f"path: {printable(path)} is a {'folder' if stat.S_ISDIR(kind) else 'pipe or a device'}, "
                         "expected a file")  # fmt: skip


def found(path: Any) -> tuple[str, ...]:
    """The files that a name, a pattern, a folder or a list of these stands for; numbers in names count as numbers."""
    if isinstance(path, list | tuple):
        return tuple(name for part in path for name in found(part)) or _none(path)
    name = checks.path("path", path)
    if os.path.isdir(name):
        return _sorted(glob.glob(os.path.join(glob.escape(name), "*.parquet"))) or _none(path)
    if os.path.exists(name):
        return (name,)
    return _sorted(glob.glob(name, recursive=True)) or _none(path)


def _sorted(names: list[str]) -> tuple[str, ...]:
    """part-2 before part-10: an episode may go on in the next file."""
    return tuple(
        sorted(
            names, key=lambda name: [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in re.split(r"(\d+)", name)]
        )
    )


def _none(path: Any) -> tuple[str, ...]:
    raise ValueError(f"path is {checks.shown(path)}: there is no such file")


def files_of(path: Any, columns: Any, n_actions: int | None) -> tuple[ParquetFiles, int, int]:
    """The files with the meaning of their columns, how many transitions they hold, and how many rows are left out."""
    paths = found(path)
    plan: Plan | None = None
    known = n_actions
    for name in paths:
        with opened(name) as file:
            available = file.schema_arrow.names
            written = _written_actions(name, file.schema_arrow.metadata)
        try:
            own = resolve(available, columns)
        except ValueError as error:
            raise ValueError(f"path: {printable(name)}: {error}") from None
        if plan is not None and own != plan:
            raise ValueError(f"path: {printable(name)} has other columns than {printable(paths[0])}: {own} and {plan}")
        plan = own
        known = max(known or 0, written) if n_actions is None and written else known
    assert plan is not None
    files = ParquetFiles(paths, plan, known)
    n_rows, left_out, top = files.scan()
    return replace(files, n_actions=known or top + 1), n_rows, left_out


def _written_actions(path: str, metadata: dict[bytes, bytes] | None) -> int:
    """The number of actions that gqlab wrote into a file; 0 where it did not."""
    try:
        value = json.loads((metadata or {})[METADATA])["n_actions"]
    except (KeyError, ValueError, TypeError):
        return 0
    if not isinstance(value, int) or not 0 < value <= MOST_ACTIONS:
        raise ValueError(
            f"path: {printable(path)} is said to have {checks.shown(value)} actions, expected 1 to {MOST_ACTIONS}"
        )
    return value


def writer(chunks: Iterator[Chunk], n_actions: int) -> Callable[[BinaryIO], None]:
    """What writes transitions into an open file. Floats get no dictionary: their values hardly ever repeat."""
    pq = needed("pyarrow.parquet", "writing Parquet")

    def write(file: BinaryIO) -> None:
        out: Any = None
        try:
            for chunk in chunks:
                arrays = {name: getattr(chunk, own) for own, name in WRITTEN.items()}
                table = table_from({name: value for name, value in arrays.items() if value is not None})
                if out is None:
                    schema = table.schema.with_metadata({METADATA: json.dumps({"n_actions": n_actions}).encode()})
                    out = pq.ParquetWriter(
                        file, schema, use_dictionary=False, compression="zstd", write_page_checksum=True
                    )
                out.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=_group_rows(table))
        finally:
            if out is not None:
                out.close()

    return write


def _group_rows(table: Any) -> int:
    """Rows of a row group: what is read at a time need not be cut out of it."""
    return rows_of_bytes(table.nbytes / max(table.num_rows, 1))


def resolved(path: Any) -> Path:
    """Where a file is written."""
    return Path(checks.path("path", path))
