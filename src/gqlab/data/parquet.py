"""Parquet files, read a batch at a time: memory does not grow with the files."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from gqlab.data.arrow import needed, rows_of, table_from
from gqlab.data.assemble import Assembler, Chunk
from gqlab.data.columns import Plan, resolve
from gqlab.data.rows import Place, Rows
from gqlab.support import checks
from gqlab.support.files import one_line

#: Rows that are decoded at a time, and that a row group holds when it is written.
ROWS = 2**17

#: Bytes of a column that are read at a time: without it, a row group is read whole, and some files are one row group.
BUFFER = 2**20

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
        self, file: Any, path: str, plan: Plan, first: int = 0, size: int = ROWS, **which: Any
    ) -> Iterator[Rows]:
        """The rows of an open file, or of the row groups in ``which`` (its first row is ``first``), in blocks."""
        columns = [name for names in plan.values() for name in names]
        batches = file.iter_batches(size, columns=columns, use_threads=False, **which)
        while (batch := _read(path, lambda: next(batches, None))) is not None:
            yield rows_of(batch, plan, Place(self.plan, printable(path), first), self.n_actions)
            first += batch.num_rows


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
    if not os.path.exists(path):
        raise ValueError(f"path: {printable(path)} is not there")
    return _read(
        path, lambda: pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)
    )


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
            written = _written_actions(file.schema_arrow.metadata)
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


def _written_actions(metadata: dict[bytes, bytes] | None) -> int:
    """The number of actions that gqlab wrote into a file; 0 where it did not."""
    try:
        value = json.loads((metadata or {})[METADATA])["n_actions"]
    except (KeyError, ValueError, TypeError):
        return 0
    return value if isinstance(value, int) and 0 < value < 2**31 else 0


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
                out.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=ROWS)
        finally:
            if out is not None:
                out.close()

    return write


def resolved(path: Any) -> Path:
    """Where a file is written."""
    return Path(checks.path("path", path))
