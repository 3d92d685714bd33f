"""What must be known of a log before its rows can be read: nulls, kinds of columns, labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from gqlab.data import nulls
from gqlab.data.arrow import WORDS, column_of, flag_of, is_text, kind_of, needed
from gqlab.data.log import Log, TableLog
from gqlab.data.reading import check_gap
from gqlab.data.schema import MOST_LABELS, Column, Label, Schema, listed
from gqlab.data.wording import mapped, named, option
from gqlab.support import checks

AnyLog = TypeVar("AnyLog", bound=Log)

#: Labels of actions that are found in text, at most: more are names of something else.
MOST_FOUND = 1000


def surveyed(log: AnyLog, n_actions: int | None) -> AnyLog:
    """The log, with its nulls counted, its columns' kinds and its labels known."""
    log = _without_nulls(log)
    if log.schema.columns or log.schema.action_labels is not None:  # a file of gqlab's own: its numbers are made
        _check_alike(log)
        return _with_actions(log, n_actions, log.schema.action_labels)
    types = log.types([name for names in log.plan.values() for name in names])
    time = log.plan.get("time", (None,))[0]
    check_gap(log.reading, time, time is not None and kind_of(types[time]) == "date")
    kinds = _kinds(log, types)
    action = log.plan["action"][0]
    text = is_text(types[action])
    labels = log.reading.labels
    found = _labels(log, [*([action] if text and labels is None else []), *_unlabelled(log, kinds)])
    if text and labels is None:
        if log.reading.like is not None:
            raise ValueError(f"{log.where}: column {action!r} holds text, and the actions of like are numbers")
        labels = tuple(_few(log.where, action, found[action], MOST_FOUND, "action"))
    columns = tuple(_column(log, position, kind, found) for position, kind in enumerate(kinds))
    log = replace(log, schema=Schema(labels, columns), decoding=Schema(labels, columns))
    return _with_actions(log, n_actions, labels)


def _with_actions(log: AnyLog, n_actions: int | None, labels: tuple[Label, ...] | None) -> AnyLog:
    if labels is not None and n_actions is not None and n_actions != len(labels):
        raise ValueError(f"n_actions is {n_actions}, and there are {len(labels)} labels of actions: {listed(labels)}")
    known = n_actions if labels is None else len(labels)
    return replace(log, n_actions=log.n_actions if known is None else known)


def _without_nulls(log: AnyLog) -> AnyLog:
    """The log, if it has no nulls or they are to be left out."""
    every = list(dict.fromkeys(name for names in log.plan.values() for name in names))
    counted = log.nulls(every)
    if not counted.counts:
        return log
    if log.reading.drop_nulls is None:
        raise ValueError(counted.refusal())
    log = replace(log, null_columns=tuple(counted.counts))
    if log.reading.drop_nulls == "episodes":
        tables = log.tables(log.with_flags(log.null_columns))
        return replace(log, bad=nulls.bad_episodes(tables, log.plan, log.null_columns))
    return log


def _kinds(log: Log, types: dict[str, Any]) -> list[str]:
    """What each column of the observation holds; the next observation holds the same."""
    out = []
    for role in ("observation", "next_observation"):
        for position, name in enumerate(log.plan.get(role, ())):
            kind = kind_of(types[name])
            if kind is None:
                raise ValueError(
                    f"{log.where}: column {name!r} holds {checks.shown(str(types[name]))}: make numbers, dates or text "
                    f"of it, or leave it out: {mapped(role)}"
                )
            if role == "observation":
                out.append(kind)
            elif position < len(out) and out[position] != kind and {out[position], kind} != {"number", "boolean"}:
                other = log.plan["observation"][position]
                raise ValueError(
                    f"{log.where}: column {name!r} holds {WORDS[kind]}, and column {other!r} {WORDS[out[position]]}"
                )
    return out


def _unlabelled(log: Log, kinds: Sequence[str]) -> list[str]:
    """The columns of text whose labels must be looked for."""
    if log.reading.like is not None and log.reading.like.columns:
        return []
    places = [position for position, kind in enumerate(kinds) if kind == "category"]
    roles = ("observation", "next_observation")
    return [log.plan[role][position] for role in roles if role in log.plan for position in places]


def _column(log: Log, position: int, kind: str, found: dict[str, set[str]]) -> Column:
    """A column of the observation, with the labels of the next observation too."""
    name, like = log.plan["observation"][position], log.reading.like
    if like is not None and like.columns:
        if [column.name for column in like.columns] != list(log.plan["observation"]):
            names = listed([column.name for column in like.columns])
            raise ValueError(
                f"{log.where}: the observation is {listed(log.plan['observation'])}, and that of like {names}"
            )
        return like.columns[position]
    if kind != "category":
        return Column(name, kind)
    both = [log.plan[role][position] for role in ("observation", "next_observation") if role in log.plan]
    labels = set().union(*(found[column] for column in both))
    return Column(name, kind, tuple(_few(log.where, name, labels, MOST_LABELS, "observation")))


def _few(where: str, name: str, labels: set[str], most: int, role: str) -> list[str]:
    """Labels in order, or why there are too many, or none."""
    if not labels:
        raise ValueError(f"{where}: there is no transition, expected at least one")
    if len(labels) <= most:
        return sorted(labels)
    numbers = [label for label in labels if _is_number(label)]
    why = "names, or numbers or dates written in another way?"
    if len(numbers) > len(labels) / 2:
        why = f"numbers, but for {listed(sorted(labels - set(numbers)))}?"
    raise ValueError(
        f"{where}: column {name!r} holds more than {most} different texts, such as {listed(sorted(labels)[:3])}: {why} "
        f"Make numbers of it, or leave it out: {mapped(role)}"
    )


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _labels(log: Log, names: Sequence[str]) -> dict[str, set[str]]:
    """The texts that occur in columns, in one pass; more than enough of them are not looked for."""
    found: dict[str, set[str]] = {name: set() for name in names}
    if not names:
        return found
    pa = needed("pyarrow", "reading a table")
    drop, action = log.drop(), log.plan["action"][0]
    void = "last" in log.plan and "next_observation" not in log.plan
    for table, place in log.tables(log.with_flags([*names, *log.null_columns])):
        kept = table if drop is None else drop(table, place)[0]
        for name in names:
            column = column_of(kept, name)
            if void and name == action:
                column = column.filter(pa.array(~flag_of(kept, log.plan["last"][0])))
            if len(found[name]) <= max(MOST_FOUND, MOST_LABELS):
                found[name].update(label for label in column.unique().to_pylist() if label is not None)
    return found


def _check_alike(log: Log) -> None:
    """A file whose numbers are made already is like other data, or it is not."""
    like = log.reading.like
    if log.reading.labels is not None and log.schema.action_labels != log.reading.labels:
        raise ValueError(
            f"{log.where}: the actions are {listed(log.schema.action_labels or ('numbers',))}, "
            f"expected {listed(log.reading.labels)}"
        )
    if like is not None and like.columns and log.schema.columns and like.columns != log.schema.columns:
        raise ValueError(
            f"{log.where}: the observation is {listed([c.name for c in log.schema.columns])}, and that of like "
            f"{listed([c.name for c in like.columns])}, or their labels differ"
        )


# --- Sorting --------------------------------------------------------------------------------------------------------


def sort_columns(log_plan: dict[str, tuple[str, ...]], sort: Any) -> tuple[str, ...]:
    """The columns that rows are sorted by."""
    if sort is True:
        names = (*log_plan.get("episode", ()), *log_plan.get("time", ()))
        if not names:
            raise ValueError(
                f"{named('sort')} is True, and no column is the episode or the time: {mapped('episode')}, "
                f"{option('time', '...')}"
            )
        return names
    return tuple(sort) if isinstance(sort, tuple) else ()


def sorted_table(log: AnyLog, by: tuple[str, ...], place: Any) -> TableLog:
    """All rows of a log in memory, in the order of columns; rows that agree in them stay as they stand."""
    pa = needed("pyarrow", "sorting rows")
    pc = needed("pyarrow.compute", "sorting rows")
    every = dict.fromkeys([*(name for names in log.plan.values() for name in names), *by])
    parts = [table for table, _ in log.tables(list(every))]
    table = pa.concat_tables(parts, promote_options="permissive")
    keys = [column_of(table, name) for name in by]
    for name, key in zip(by, keys, strict=True):
        if key.null_count and not any(name in names for names in log.plan.values()):
            raise ValueError(
                f"{named('sort')}: column {name!r} has {key.null_count:,} nulls, expected a value in each row"
            )
    plain = [key.storage if isinstance(key.type, pa.ExtensionType) else key for key in keys]
    made = pa.table({str(number): key for number, key in enumerate(plain)})
    try:
        order = pc.sort_indices(made, sort_keys=[(name, "ascending") for name in made.column_names])
    except pa.ArrowException:
        held = ", ".join(f"{name!r} ({checks.shown(str(key.type))})" for name, key in zip(by, keys, strict=True))
        raise ValueError(f"{named('sort')}: rows cannot be put in the order of {held}") from None
    rows = np.asarray(order).astype(np.int64)
    shared = {name: getattr(log, name) for name in ("plan", "reading", "n_actions", "schema", "decoding")}
    return TableLog(**shared, table=table.take(order), place=place.of(rows))
