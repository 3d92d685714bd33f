"""Sweeps: cells in tasks, engines that make them, and a store that keeps what is finished (docs/scale.md)."""

from gqlab.sweeps.base import Engine, Outcome, Task, perform, run_tasks
from gqlab.sweeps.engines import ENGINES, engine_of
from gqlab.sweeps.export import export_parquet
from gqlab.sweeps.on_ray import Ray
from gqlab.sweeps.processes import Processes
from gqlab.sweeps.threads import Threads

__all__ = [
    "ENGINES",
    "Engine",
    "Outcome",
    "Processes",
    "Ray",
    "Task",
    "Threads",
    "engine_of",
    "export_parquet",
    "perform",
    "run_tasks",
]
