"""CSV files, read a block at a time: memory does not grow with the files.

The type of a column is that of all its values in all files, found in a first pass: whole numbers, numbers, true and
false, dates, times; else text. So it depends on neither the blocks nor the order of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gqlab.data.arrow import needed
from gqlab.data.columns import ColumnPlan, resolve
from gqlab.data.log import Log
from gqlab.data.nulls import Counted
from gqlab.data.paths import check_regular, described, found, printable
from gqlab.data.reading import Reading
from gqlab.data.rows import RowPlace
from gqlab.data.wording import named, option
from gqlab.support import checks
from gqlab.support.files import one_line

#: Bytes of a file that are read at a time: no row may be longer.
BLOCK = 2**22

#: What stands for a missing number. In a column of text only the empty one is missing: NA may be a country.
NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null")

#: What may stand between the values of a row.
DELIMITERS = ",;\t|"

#: How the names of the files in a folder end.
ENDINGS = tuple(f".{text}{packed}" for text in ("csv", "tsv") for packed in ("", ".gz", ".bz2", ".zst"))


@dataclass(frozen=True)
class Format:
    """How values are written in the files."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf8"


@dataclass(frozen=True)
class CsvFiles(Log):
    """Files whose rows follow each other, as if they were one."""

    paths: tuple[str, ...] = ()
    format: Format = field(default_factory=Format)
    known: Mapping[str, str] = field(default_factory=dict)  #: the types of columns, by Arrow's names
    counted: Counted = field(default_factory=Counted)  #: their nulls

    def tables(self, names: Sequence[str]) -> Iterator[tuple[Any, RowPlace]]:
        """The columns of all files, a block at a time."""
        pa = needed("pyarrow", "reading CSV")
        pc = needed("pyarrow.compute", "reading CSV")
        wanted = {name: arrow_type(self.known[name]) for name in names}
        for path in self.paths:
            first = 0
            for batch in _batches(path, self.format, wanted, NULLS):
                table = pa.Table.from_batches([batch])
                for number, (name, kind) in enumerate(wanted.items()):
                    if kind == pa.string():
                        column = table.column(name)
                        empty = pc.equal(column, "")
                        table = table.set_column(number, name, pc.if_else(empty, pa.scalar(None, kind), column))
                yield table, RowPlace(self.plan, printable(path), first)
                first += batch.num_rows

    @property
    def where(self) -> str:
        """The first file, and how many there are."""
        return f"path: {described(self.paths)}"

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """As the first pass found them."""
        return {name: arrow_type(self.known[name]) for name in names}

    def nulls(self, names: Sequence[str]) -> Counted:
        """As the first pass found them, but for rows that need no action."""
        counts = {name: n for name, n in self.counted.counts.items() if name in names}
        if counts and "last" in self.plan and "next_observation" not in self.plan:
            return super().nulls(names)
        return replace(self.counted, counts=counts)


def files_of(path: Any, columns: Any, reading: Reading, delimiter: Any, decimal: Any, encoding: Any) -> CsvFiles:
    """The files with the meaning and the types of their columns."""
    paths = found(path, ENDINGS)
    for name in paths:
        check_regular(name)
    form = Format(_delimiter(delimiter, paths[0], _encoding(encoding)), _decimal(decimal), _encoding(encoding))
    if form.decimal == form.delimiter:
        raise ValueError(f"{named('decimal')} is {form.decimal!r}, and so is the delimiter")
    plan: ColumnPlan | None = None
    for name in paths:
        available = header(name, form)
        try:
            own = resolve(available, columns)
            reading.check_sort(available)
        except ValueError as error:
            hint = f" (split at {form.delimiter!r})" if len(available) == 1 else ""
            raise ValueError(f"path: {printable(name)}: {error}{hint}") from None
        if plan is not None and own != plan:
            raise ValueError(f"path: {printable(name)} has other columns than {printable(paths[0])}: {own} and {plan}")
        plan = own
    assert plan is not None
    names = list(dict.fromkeys([*(column for columns in plan.values() for column in columns), *reading.sort_names]))
    log = CsvFiles(plan, reading, paths=paths, format=form)
    return _typed(log, names)


def _delimiter(given: Any, path: str, encoding: str) -> str:
    """What is given, or what the first line has most of."""
    if given is not None:
        if not isinstance(given, str) or len(given) != 1 or given in '"\r\n':
            raise ValueError(f"{named('delimiter')} is {checks.shown(given)}, expected one character")
        return given
    pa = needed("pyarrow", "reading CSV")
    stream = _read(path, lambda: pa.input_stream(path))
    with stream:
        line = _read(path, lambda: stream.read(2**16)).decode(encoding, "replace").partition("\n")[0]
    outside = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=lambda mark: (outside.count(mark), -DELIMITERS.index(mark)))


def _decimal(given: Any) -> str:
    return checks.one_of(named("decimal"), given, (".", ","))


def _encoding(given: Any) -> str:
    try:
        "".encode(given)
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"{named('encoding')} is {checks.shown(given)}, expected one such as 'utf8' or 'latin1'"
        ) from None
    return str(given)


def header(path: str, form: Format) -> list[str]:
    """The names of the columns."""
    csv = needed("pyarrow.csv", "reading CSV")
    options = csv.ReadOptions(use_threads=False, block_size=BLOCK, encoding=form.encoding)
    parse = csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
    with _read(path, lambda: csv.open_csv(path, options, parse)) as reader:
        return list(reader.schema.names)


def _batches(path: str, form: Format, types: Mapping[str, Any], nulls: Sequence[str]) -> Iterator[Any]:
    """Columns of these types, a block at a time."""
    csv = needed("pyarrow.csv", "reading CSV")
    options = csv.ReadOptions(use_threads=False, block_size=BLOCK, encoding=form.encoding)
    parse = csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
    convert = csv.ConvertOptions(
        column_types=dict(types), include_columns=list(types), null_values=list(nulls), strings_can_be_null=False,
        decimal_point=form.decimal,
    )  # fmt: skip
    with _read(path, lambda: csv.open_csv(path, options, parse, convert)) as reader:
        while (batch := _read(path, lambda: next(reader, None))) is not None:
            yield batch


def _read(path: str, read: Callable[[], Any]) -> Any:
    """What ``read`` returns, or one line that names the file."""
    try:
        return read()
    except Exception as error:  # pyarrow raises several kinds, some of them OSError
        text = one_line(error)
        if "UTF8" in text or "UTF-8" in text:
            text += f"; it may be {option('encoding', repr('latin1'))}"
        raise ValueError(f"path: {printable(path)} cannot be read as CSV: {text[:300]}") from None


# --- Types ----------------------------------------------------------------------------------------------------------

#: By name, in the order of preference: what a column may be, if every value can be it.
KINDS = ("int64", "double", "bool", "date32", "timestamp[us]", "timestamp[us, tz=UTC]")

#: What a column may be that is read in another way than it was written.
COMMA = "decimal comma"


def arrow_type(name: str) -> Any:
    """Arrow's type of that name."""
    pa = needed("pyarrow", "reading CSV")
    if name.startswith("timestamp"):
        return pa.timestamp("us", "UTC" if "UTC" in name else None)
    return {"int64": pa.int64, "double": pa.float64, "bool": pa.bool_, "date32": pa.date32, "string": pa.string}[name]()


@dataclass
class Guess:
    """What the values of a column may be, as far as they were seen."""

    possible: list[str] = field(default_factory=lambda: [*KINDS, COMMA])
    any: bool = False
    missing: int = 0  # of a number
    empty: int = 0  # of text
    first_missing: tuple[RowPlace, int] | None = None
    first_empty: tuple[RowPlace, int] | None = None

    def add(self, column: Any, place: RowPlace, form: Format) -> None:
        """The next values, as text."""
        pa = needed("pyarrow", "reading CSV")
        pc = needed("pyarrow.compute", "reading CSV")
        missing = np.asarray(pc.is_in(column, value_set=pa.array(NULLS)))
        empty = np.asarray(pc.equal(column, ""))
        self.missing, self.empty = self.missing + int(missing.sum()), self.empty + int(empty.sum())
        if missing.any():
            self.first_missing = self.first_missing or (place, int(np.flatnonzero(missing)[0]))
        if empty.any():
            self.first_empty = self.first_empty or (place, int(np.flatnonzero(empty)[0]))
        values = column.filter(pa.array(~missing))
        self.any = self.any or len(values) > 0
        self.possible = [kind for kind in self.possible if _fits(values, kind, form)]

    @property
    def kind(self) -> str:
        """A column without values is one of numbers, all of them missing."""
        known = [kind for kind in self.possible if kind != COMMA]
        return "double" if not self.any else known[0] if known else "string"


def _fits(values: Any, kind: str, form: Format) -> bool:
    pa = needed("pyarrow", "reading CSV")
    pc = needed("pyarrow.compute", "reading CSV")
    if kind in ("int64", "double"):
        values = pc.utf8_trim_whitespace(values)
    if kind == COMMA or (kind == "double" and form.decimal == ","):
        values = pc.replace_substring(values, ",", ".")
    try:
        values.cast(arrow_type("double" if kind == COMMA else kind))
    except pa.ArrowInvalid:
        return False
    return True


def _typed(log: CsvFiles, names: Sequence[str]) -> CsvFiles:
    """The files, with the types of their columns found in all rows, and the nulls counted."""
    like, labels = log.reading.like, log.reading.labels
    text = {c.name for c in like.columns if c.kind == "category"} if like is not None else set()
    if labels is not None and isinstance(labels[0], str):
        text.update(log.plan["action"])
    guesses = {name: Guess(possible=[]) if name in text else Guess() for name in names}
    wanted = {name: arrow_type("string") for name in names}
    for path in log.paths:
        first = 0
        for batch in _batches(path, log.format, wanted, ()):
            for name, guess in guesses.items():
                column = batch.column(batch.schema.get_field_index(name))
                guess.add(column, RowPlace(log.plan, printable(path), first), log.format)
            first += batch.num_rows
    for name, guess in guesses.items():
        if guess.any and guess.possible == [COMMA]:
            raise ValueError(
                f"path: {described(log.paths)}: column {name!r} holds numbers with a decimal comma: "
                f"{option('decimal', repr(','))}"
            )
    counted = Counted(source=printable(log.paths[0]))
    for name, guess in guesses.items():
        of_text = guess.kind == "string"
        n, where = (guess.empty, guess.first_empty) if of_text else (guess.missing, guess.first_missing)
        if where is not None:
            counted.add(name, n, *where)
    return replace(log, known={name: guess.kind for name, guess in guesses.items()}, counted=counted)
