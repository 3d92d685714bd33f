"""The commands, by name."""

from __future__ import annotations

from collections.abc import Callable

from gqlab.cli.benchmark import benchmark
from gqlab.cli.compare import compare
from gqlab.cli.decide import decide
from gqlab.cli.doctor import doctor
from gqlab.cli.fit import fit
from gqlab.cli.health import health
from gqlab.cli.limits import limits
from gqlab.cli.rates import rates
from gqlab.cli.reproduce import list_experiments, reproduce
from gqlab.cli.select import select
from gqlab.cli.sweep import sweep
from gqlab.cli.theory import theory
from gqlab.cli.train import train
from gqlab.cli.watch import watch

#: In the order in which people need them.
COMMANDS: dict[str, Callable[..., None]] = {
    "train": train,
    "fit": fit,
    "decide": decide,
    "compare": compare,
    "theory": theory,
    "reproduce": reproduce,
    "watch": watch,
    "health": health,
    "select": select,
    "sweep": sweep,
    "rates": rates,
    "limits": limits,
    "list": list_experiments,
    "benchmark": benchmark,
    "doctor": doctor,
}
