"""Tasks, and the engines that run them: threads, processes, Ray (docs/scale.md)."""

from gqlab.tasks.base import Engine, Outcome, Task, perform, run_tasks
from gqlab.tasks.engines import ENGINES, engine_of
from gqlab.tasks.on_ray import Ray
from gqlab.tasks.processes import Processes
from gqlab.tasks.threads import Threads

__all__ = [
    "ENGINES",
    "Engine",
    "Outcome",
    "Processes",
    "Ray",
    "Task",
    "Threads",
    "engine_of",
    "perform",
    "run_tasks",
]
