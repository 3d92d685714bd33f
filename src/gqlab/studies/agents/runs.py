"""The cells of the benchmark: each is one agent, learned and measured, in a process; finished ones are kept on disk."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gqlab.algorithms.schedules import LinearDecay
from gqlab.learn.agent.presets import preset_of
from gqlab.studies.agents.design import ALGORITHMS, DISCOUNT, ENVIRONMENTS, EPSILON, PRESET, Scale
from gqlab.studies.compare.store import Store, code_of

#: Added to the seed of an agent: the episodes that measure it are others than those that it learned in.
EVALUATION = 50_000


@dataclass(frozen=True)
class Cell:
    """One agent."""

    environment: str
    row: str
    step_size: float | None  # None: that of the preset
    seed: int
    steps: int
    n_episodes: int

    def arguments(self) -> dict[str, Any]:
        """Of :class:`gqlab.Agent`."""
        if self.step_size is None:
            return preset_of(self.environment)
        return {
            "encoder": ENVIRONMENTS[self.environment].encoder,
            "algorithm": ALGORITHMS[self.row](self.step_size),
            "discount": DISCOUNT,
            "epsilon": LinearDecay(EPSILON, 0.0, over=self.steps),
        }

    def key(self) -> dict[str, Any]:
        """All that decides the result."""
        import gymnasium

        given = self.arguments()
        algorithm = given["algorithm"]
        return {
            **asdict(self),
            "encoder": repr(given["encoder"]),
            "algorithm": algorithm.to_dict(),
            "epsilon": asdict(given["epsilon"]),
            "gymnasium": gymnasium.__version__,
            "code": code_of(algorithm),
        }


def cells_of(scale: Scale) -> list[Cell]:
    """All cells, those of one seed together, so that a part of the seeds is a whole table."""
    out = []
    for seed in range(scale.first_seed, scale.first_seed + scale.n_seeds):
        for name in scale.environments:
            steps = round(scale.share * ENVIRONMENTS[name].steps)
            out.append(Cell(name, PRESET, None, seed, steps, scale.n_episodes))
            out += [
                Cell(name, row, eta, seed, steps, scale.n_episodes) for row in scale.rows for eta in scale.step_sizes
            ]
    return out


def measure(cell: Cell, folder: Path) -> dict[str, Any]:
    """Learn, measure, and keep the result."""
    from gqlab.learn.agent.agent import Agent

    began = time.process_time()
    agent = Agent(cell.environment, seed=cell.seed, **cell.arguments())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an agent that diverged is a result
        agent.learn(cell.steps)
    returns = agent.evaluate(n_episodes=cell.n_episodes, seed=EVALUATION + cell.seed).returns
    result = {
        "mean": float(returns.mean()),
        "returns": returns.tolist(),
        "diverged": agent.diverged,
        "seconds": time.process_time() - began,
    }
    Store(folder).save(cell.key(), result)
    return result


def run_cells(
    cells: Sequence[Cell], folder: Path, processes: int, progress: Callable[[int, int, float], None]
) -> dict[Cell, dict[str, Any]]:
    """The results of all cells; ``tell(done, of, seconds left)`` hears of each that is finished."""
    store = Store(folder)
    found: dict[Cell, Any] = {cell: store.load(cell.key()) for cell in cells}
    missing = [cell for cell in cells if found[cell] is None]
    began = time.monotonic()
    for k, (cell, result) in enumerate(_finished(missing, folder, processes), 1):
        found[cell] = result
        left = (time.monotonic() - began) / k * (len(missing) - k)
        progress(len(cells) - len(missing) + k, len(cells), left)
    return found


def _finished(cells: Sequence[Cell], folder: Path, processes: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Every cell when it is done. A few wait at a time, so that Ctrl-C ends soon."""
    if processes == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, measure(cell, folder)
        return
    waiting = list(reversed(cells))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[dict[str, Any]], Cell] = {}
        try:
            while waiting or running:
                while waiting and len(running) < 2 * processes:
                    cell = waiting.pop()
                    running[pool.submit(measure, cell, folder)] = cell
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
