"""A log as a business has it, in every form in which it can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

#: What the columns of a log mean.
COLUMNS = {
    "observation": ["stock", "region", "open"], "action": "order", "reward": "profit", "episode": "unit",
    "terminated": "closed", "truncated": "lost", "probability": "share",
}  # fmt: skip


def messy(lengths: list[int], ends: list[bool], seed: int = 0) -> pd.DataFrame:
    """Units one after the other, their days in order; ``ends`` says of each whether it closed, or was lost."""
    random = np.random.default_rng(seed)
    n = sum(lengths)
    unit = np.repeat([f"u{k:03d}" for k in range(len(lengths))], lengths)
    last = np.cumsum(lengths) - 1
    closed, lost = np.zeros((2, n), bool)
    closed[last], lost[last] = ends, ~np.array(ends)
    day = np.concatenate([np.arange(length) for length in lengths])
    return pd.DataFrame(
        {
            "unit": unit,
            "day": pd.Timestamp("2024-02-27") + pd.to_timedelta(day, "D"),
            "stock": random.normal(size=n).round(3),
            "region": random.choice(["east", "north, far", "wäst"], n),
            "open": random.random(n) < 0.5,
            "order": random.choice(["none", "ten", 'a "lot"'], n),
            "profit": random.normal(size=n),
            "closed": closed,
            "lost": lost,
            "share": random.uniform(0.1, 1, n),
        }
    )


def expected(df: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The transitions of rows in order, one at a time: (s, a, r, s', terminated, truncated, probability)."""
    regions = sorted(set(df.region))

    def numbers(row: Any) -> tuple[float, ...]:
        return (row.stock, *(float(row.region == name) for name in regions), float(row.open))

    actions, out = sorted(set(df.order)), []
    rows = list(df.itertuples())
    for t, row in enumerate(rows):
        if row.lost:
            continue  # the next observation is unknown
        after = row if row.closed else rows[t + 1]
        out.append((numbers(row), actions.index(row.order), row.profit, numbers(after), row.closed,
                    bool(after.lost and not row.closed), row.share))  # fmt: skip
    return out


def tuples(chunk: Any) -> list[tuple[Any, ...]]:
    """The transitions of a chunk, as :func:`expected` has them."""
    arrays = (chunk.observations, chunk.actions, chunk.rewards, chunk.next_observations, chunk.terminated,
              chunk.truncated, chunk.probability)  # fmt: skip
    return [(tuple(s), int(a), r, tuple(following), *more) for s, a, r, following, *more in zip(*arrays, strict=True)]


def as_polars(df: pd.DataFrame) -> pl.DataFrame:
    return pl.from_pandas(df).with_columns(pl.col("region").cast(pl.Categorical))


def as_categories(df: pd.DataFrame) -> pd.DataFrame:
    """Categories in an order of their own, one of which never occurs."""
    return df.assign(
        order=pd.Categorical(df.order, ["ten", "never", "none", 'a "lot"']), region=df.region.astype("category")
    )


def as_arrow(df: pd.DataFrame) -> pa.Table:
    """Text in dictionaries."""
    table = pa.Table.from_pandas(df, preserve_index=False)
    for name in ("region", "order", "unit"):
        number = table.schema.get_field_index(name)
        table = table.set_column(number, name, table.column(name).dictionary_encode())
    return table


def write_csv(df: pd.DataFrame, path: Path, **options: Any) -> Path:
    df.to_csv(path, index=False, **options)
    return path


def write_parquet(df: pd.DataFrame, path: Path) -> Path:
    df.to_parquet(path, index=False)
    return path
