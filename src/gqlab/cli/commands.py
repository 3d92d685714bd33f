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

COMMANDS: dict[str, Callable[..., None]] = {
    "reproduce": reproduce,
    "list": list_experiments,
    "compare": compare,
    "sweep": sweep,
    "theory": theory,
    "rates": rates,
    "limits": limits,
    "health": health,
    "train": train,
    "fit": fit,
    "decide": decide,
    "select": select,
    "watch": watch,
    "benchmark": benchmark,
    "doctor": doctor,
}
