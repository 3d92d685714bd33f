"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gqlab.support import checks
from gqlab.tasks.base import Engine
from gqlab.tasks.on_ray import Ray
from gqlab.tasks.processes import Processes
from gqlab.tasks.threads import Threads

#: The engines by their names.
ENGINES: dict[str, Callable[..., Engine]] = {"threads": Threads, "processes": Processes, "ray": Ray}


def engine_of(value: Any, workers: int | None = None, address: str | None = None) -> Engine:
    """An engine as it is given, or by its name: then with ``workers`` workers, on the cluster at ``address``.

    Examples
    --------
    >>> from gqlab.tasks import engine_of
    >>> engine_of("processes", workers=3).workers
    3
    """
    if isinstance(value, Engine):
        return value
    name = checks.one_of("engine", value, ENGINES)
    if address is not None and name != "ray":
        raise ValueError(
            f"address is {checks.shown(address)}, but engine {name!r} does not join a cluster; expected 'ray'"
        )
    return Ray(address, workers) if name == "ray" else ENGINES[name](workers)
