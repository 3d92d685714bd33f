"""Parquet files, read a batch at a time: memory does not grow with the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gqlab.data.arrow import kind_of, needed, table_from
from gqlab.data.assemble import Chunk
from gqlab.data.columns import ColumnPlan, resolve
from gqlab.data.log import Log
from gqlab.data.nulls import Counted
from gqlab.data.paths import check_regular, described, found, printable
from gqlab.data.reading import Reading
from gqlab.data.rows import MOST_ACTIONS, RowPlace, Rows
from gqlab.data.schema import Schema
from gqlab.support import checks
from gqlab.support.files import one_line

#: The most rows that are decoded at a time, and that a written row group holds;
ROWS = 2**17

#: and the most bytes of numbers, since a file of few rows may be wide.
BATCH_BYTES = 2**24

#: Bytes of a number by its type in the file; of all others eight.
WIDTHS = {"FLOAT": 4, "BOOLEAN": 1}

#: Bytes of a column that are read at a time, and of all columns together where they are many: without it, a row group
#: is read whole, and some files are one row group.
BUFFER, ALL_BUFFERS, LEAST_BUFFER = 2**20, 2**24, 2**14

#: Where a file says what its columns cannot: how many actions there are.
METADATA = b"gqlab"

#: By the array of a chunk: the column that it is written to.
WRITTEN = {
    "observations": "observation", "actions": "action", "rewards": "reward", "next_observations": "next_observation",
    "terminated": "terminated", "truncated": "truncated", "episode": "episode", "probability": "probability",
}  # fmt: skip


@dataclass(frozen=True)
class ParquetFiles(Log):
    """Files whose rows follow each other, as if they were one."""

    paths: tuple[str, ...] = ()

    def tables(self, names: Sequence[str]) -> Iterator[tuple[Any, RowPlace]]:
        """The columns of all files, a batch of rows at a time."""
        for path in self.paths:
            with opened(path) as file:
                yield from self.batches(file, path, names)

    def batches(
        self, file: Any, path: str, names: Sequence[str], first: int = 0, size: int | None = None, **which: Any
    ) -> Iterator[tuple[Any, RowPlace]]:
        """Columns of an open file, or of the row groups in ``which`` (its first row is ``first``), in batches."""
        pa = needed("pyarrow", "reading Parquet")
        size = _read(path, lambda: rows_at_a_time(file.metadata, names)) if size is None else size
        batches = _read(path, lambda: file.iter_batches(size, columns=list(names), use_threads=False, **which))
        while (batch := _read(path, lambda: next(batches, None))) is not None:
            yield pa.Table.from_batches([batch]), RowPlace(self.plan, printable(path), first)
            first += batch.num_rows

    def rows_of(self, file: Any, path: str, first: int = 0, size: int | None = None, **which: Any) -> Iterator[Rows]:
        """The rows of an open file, as :meth:`batches` has them, checked."""
        names = list(dict.fromkeys(name for columns in self.plan.values() for name in columns))
        for table, place in self.batches(file, path, names, first, size, **which):
            yield self.decoded(table, self.plan, place)

    @property
    def where(self) -> str:
        """The first file, and how many there are."""
        return f"path: {described(self.paths)}"

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """Of the first file; those of the others are of the same kind."""
        out: dict[str, Any] = {}
        for path in self.paths:
            with opened(path) as file:
                own = {name: file.schema_arrow.field(name).type for name in names}
            for name, kind in own.items():
                before = out.setdefault(name, kind)
                both = {kind_of(before), kind_of(kind)}
                if len(both) > 1 and not both <= {"number", "boolean"}:
                    raise ValueError(
                        f"path: {printable(path)}: column {name!r} holds {checks.shown(str(kind))}, and in "
                        f"{printable(self.paths[0])} {checks.shown(str(before))}"
                    )
        return out

    def nulls(self, names: Sequence[str]) -> Counted:
        """The nulls of columns. Where none is to be left out, files that know how many they have are not read."""
        if self.reading.drop_nulls is None:
            names = _may_have_nulls(self.paths, names)
            if not names:
                return Counted()
        return super().nulls(names)


def _may_have_nulls(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns that have nulls, or may have them, by what their files say of themselves."""
    out = []
    for path in paths:
        with opened(path) as file:
            for name in names:
                for group, column in columns_in(file.metadata, [name]):
                    known = column.statistics if column.is_stats_set else None
                    if group.num_rows and (known is None or not known.has_null_count or known.null_count):
                        out.append(name)
                        break
    return list(dict.fromkeys(out))


def columns_in(metadata: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """The leaves of columns in each row group, with the row group."""
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        for j in range(group.num_columns):
            column = group.column(j)
            if any(column.path_in_schema == name or column.path_in_schema.startswith(f"{name}.") for name in names):
                yield group, column


def rows_at_a_time(metadata: Any, names: Sequence[str]) -> int:
    """How many rows of these columns are read at a time: the widest row group decides, by what its lists hold."""
    widths = [0.0] * metadata.num_row_groups
    number, before = -1, None
    for group, column in columns_in(metadata, names):
        number, before = number + (group is not before), group
        if group.num_rows:  # text is as long as it is
            size = WIDTHS.get(column.physical_type, 8) * column.num_values
            widths[number] += max(size, column.total_uncompressed_size) / group.num_rows
    return rows_of_bytes(max(1.0, *widths, 1.0))


def rows_of_bytes(width: float) -> int:
    """How many rows of ``width`` bytes are handled at a time."""
    return max(1, min(ROWS, int(BATCH_BYTES / width)))


def _read(path: str, read: Callable[[], Any]) -> Any:
    """What ``read`` returns, or one line that names the file."""
    try:
        return read()
    except Exception as error:  # pyarrow raises several kinds, some of them OSError
        raise ValueError(
            f"path: {printable(path)} is not a Parquet file, or is damaged: {one_line(error)[:200]}"
        ) from None


def opened(path: str) -> Any:
    """A file, with its metadata read."""
    pq = needed("pyarrow.parquet", "reading Parquet")
    check_regular(path)
    about = _read(path, lambda: pq.read_metadata(path))
    buffer = max(LEAST_BUFFER, min(BUFFER, ALL_BUFFERS // max(about.num_columns, 1)))
    options = {"pre_buffer": False, "buffer_size": buffer, "page_checksum_verification": True}
    return _read(path, lambda: pq.ParquetFile(path, metadata=about, **options))


def files_of(path: Any, columns: Any, reading: Reading) -> ParquetFiles:
    """The files with the meaning of their columns, and what they say of themselves."""
    paths = found(path, ".parquet")
    plan: ColumnPlan | None = None
    n_actions: int | None = None
    schema: Schema | None = None
    for name in paths:
        with opened(name) as file:
            available = file.schema_arrow.names
            written, own_schema = _written(name, file.schema_arrow.metadata)
        try:
            own = resolve(available, columns)
            reading.check_sort(available)
        except ValueError as error:
            raise ValueError(f"path: {printable(name)}: {error}") from None
        if plan is not None and own != plan:
            raise ValueError(f"path: {printable(name)} has other columns than {printable(paths[0])}: {own} and {plan}")
        if schema is not None and own_schema != schema:
            raise ValueError(f"path: {printable(name)} has other labels or columns than {printable(paths[0])}")
        plan, schema = own, own_schema
        n_actions = max(n_actions or 0, written) if written else n_actions
    assert plan is not None
    assert schema is not None
    return ParquetFiles(plan, reading, n_actions, schema, numbered_anew=n_actions is not None, paths=paths)


def _written(path: str, metadata: dict[bytes, bytes] | None) -> tuple[int, Schema]:
    """The number of actions and the schema that gqlab wrote into a file; 0 and an empty one where it did not."""
    try:
        values = json.loads((metadata or {})[METADATA])
        value = values["n_actions"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return 0, Schema()
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST_ACTIONS:
        raise ValueError(
            f"path: {printable(path)} is said to have {checks.shown(value)} actions, expected 1 to {MOST_ACTIONS}"
        )
    try:
        schema = Schema.from_dict(values)
    except ValueError as error:
        raise ValueError(f"path: {printable(path)}: {error}") from None
    if schema.action_labels is not None and len(schema.action_labels) != value:
        raise ValueError(f"path: {printable(path)} has {len(schema.action_labels)} labels for {value} actions")
    return value, schema


def writer(chunks: Iterator[Chunk], n_actions: int, schema: Schema) -> Callable[[BinaryIO], None]:
    """What writes transitions into an open file. Floats get no dictionary: their values hardly ever repeat."""
    pq = needed("pyarrow.parquet", "writing Parquet")

    about = {"n_actions": n_actions, **schema.to_dict()}

    def write(file: BinaryIO) -> None:
        out: Any = None
        try:
            for chunk in chunks:
                arrays = {name: getattr(chunk, own) for own, name in WRITTEN.items()}
                table = table_from({name: value for name, value in arrays.items() if value is not None})
                if out is None:
                    kept = table.schema.with_metadata({METADATA: json.dumps(about).encode()})
                    out = pq.ParquetWriter(
                        file, kept, use_dictionary=False, compression="zstd", write_page_checksum=True
                    )
                out.write_table(table.replace_schema_metadata(kept.metadata), row_group_size=_group_rows(table))
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
