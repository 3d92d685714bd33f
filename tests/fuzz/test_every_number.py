"""Every number of every kind of file, set to what it can not be: one line that names the file, and nothing else.

Each array of a file that was written by gqlab gets, in one of its places, −1, the end of its range, 2³¹ and 10¹⁸, or NaN
and ±∞; the file is sealed again, so that its digest is right. What is refused is refused in one line that names the file,
and the argument where it is used. What is within its range is read, and used: compiled code leaves no array with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gqlab as gq
from gqlab.algorithms import ALGORITHMS
from gqlab.engine.memory import declared
from gqlab.engine.ranges import check_part
from gqlab.estimators.kept import SAGAKept, SVRGKept
from gqlab.estimators.traces import Traces
from gqlab.measure.watch import Watching
from gqlab.rules.memory import COUNT, INDEX, SAMPLE, Sizes, far
from gqlab.support.files import read_arrays, write_arrays
from helpers.agent_loops import Walk, coder

MDP = gq.garnet(8, 3, 2, seed=1)
PROBLEM = gq.Problem(MDP, gq.random_features(MDP, 4, seed=1))

#: Whole numbers that no array may hold, or hardly any; the end of the range of each comes on top.
WHOLE = (-1, 2**31, 10**18)
FLOATS = (math.nan, math.inf, -math.inf)


class Kind:
    """A kind of file: how it is written, and how what was read is used."""

    def __init__(self, write: Callable[[Path], Any], use: Callable[[Path], Any], free: str = "(?!)") -> None:
        self.write, self.use = write, use
        #: Arrays whose numbers nothing depends on: they are shown.
        self.free = re.compile(free)


def result_of(algorithm: Any, **settings: Any) -> Kind:
    def write(path: Path) -> None:
        gq.run(PROBLEM, algorithm, 200, n_runs=2, record_every=100, **settings).save(path)

    def use(path: Path) -> None:
        gq.run(PROBLEM, algorithm, 400, resume=gq.RunResult.load(path))

    # Watched values may be infinite, or none at all where nothing was looked at; an output may never be drawn again.
    return Kind(write, use, r"watched/|memory/watch\.(gradient|mspbe|reward)|next_output")


def agent_of(algorithm: Any, replay: Any = None) -> Kind:
    def write(path: Path) -> None:
        gq.Agent(Walk(limit=12), coder(), algorithm, replay=replay, seed=3, epsilon=0.2).learn(75).save(path)

    def use(path: Path) -> None:
        gq.Agent.load(path, env=Walk(limit=12)).learn(40)

    return Kind(write, use)


def walks() -> gq.Transitions:
    return gq.collect(Walk(limit=12), n_steps=120, seed=0)


def fit_of(algorithm: Any) -> Kind:
    def fit(path: Path, n_passes: int) -> None:
        gq.fit(walks(), coder(), algorithm, discount=0.9, n_passes=n_passes, checkpoint=path)

    # What was measured of iterates may overflow: it is shown, and nothing depends on it. Rows come in their order,
    # and no output is drawn.
    free = r"history\.(mspbe|gradient|max_q|q_bound)|state\.2\.(cursor|next_output|output_update)"
    return Kind(lambda path: fit(path, 2), lambda path: fit(path, 4), free)


def model() -> Kind:
    def write(path: Path) -> None:
        gq.fit(walks(), coder(), gq.FittedQ(n_iterations=2), discount=0.9).save(path)

    return Kind(write, lambda path: gq.LinearQ.load(path).q(np.zeros((2, 2))), "history")


def cell() -> Kind:
    """A task of a sweep: the file of the first of its cells."""

    def sweep(path: Path) -> Any:
        return gq.grid(PROBLEM, gq.SAGAGreedyGQ(), seeds=[0, 1], n_samples=200, n_runs=2, store=path.parent / "sweep")

    def write(path: Path) -> None:
        sweep(path)
        path.write_bytes(file_of(path).read_bytes())

    def file_of(path: Path) -> Path:
        return next(iter(sorted((path.parent / "sweep" / "cells").rglob("*.npz"))))

    def use(path: Path) -> None:
        file_of(path).write_bytes(path.read_bytes())
        try:
            for result in gq.open_grid(path.parent / "sweep").results:
                gq.run(PROBLEM, result.algorithm, 400, resume=result)
        except ValueError as error:
            raise ValueError(str(error).replace(file_of(path).name, path.name)) from None

    return Kind(write, use, "next_output")


SAGA = gq.SAGAQLearning(0.2)
KINDS: dict[str, Any] = {
    "result": lambda: result_of(gq.GreedyGQ(), watch=gq.Watch("mspbe")),
    "result of SAGA": lambda: result_of(gq.SAGAGreedyGQ()),
    "result of least squares": lambda: result_of(gq.LeastSquaresGreedyGQ()),
    "cell": cell,
    "model": model,
    "agent": lambda: agent_of(gq.QLearning(0.2)),
    "agent with traces": lambda: agent_of(gq.Sarsa(0.2, trace=0.9)),
    "agent with batches": lambda: agent_of(gq.VRGreedyGQ(0.2, 0.1, batch_size=30)),
    "agent that replays": lambda: agent_of(SAGA, gq.Replay(updates=2, n_step=3, size=120, average=0.05)),
    "agent with SVRG that replays": lambda: agent_of(gq.VRGreedyGQ(0.2, 0.1, batch_size=30), gq.Replay(updates=2)),
    "fit": lambda: fit_of(gq.GreedyGQ(0.1, 0.1)),
    "fit with SAGA": lambda: fit_of(gq.SAGAGreedyGQ(0.1, 0.1)),
    "fit with batches": lambda: fit_of(gq.VRGreedyGQ(0.1, 0.1, batch_size=30)),
    "fit with batches that grow": lambda: fit_of(gq.VRGreedyGQ(0.1, 0.1, batch_size=20, growth=1.5, keep=True)),
    "fit with traces": lambda: fit_of(gq.QLearning(0.1, trace=0.5)),
}

#: Each compiles a step, or a loop, of its own.
LONG = (
    "agent with batches",
    "agent with SVRG that replays",
    "fit with batches",
    "fit with batches that grow",
    "fit with SAGA",
)


def changed(arrays: dict[str, Any], name: str, place: int, value: float) -> dict[str, Any] | None:
    """The arrays with another number in one place; None where its kind cannot hold it."""
    array = arrays[name].copy()
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        value = info.max if value > info.max or value < info.min else value
    array.reshape(-1)[place] = value
    return None if np.array_equal(array, arrays[name], equal_nan=array.dtype.kind == "f") else {**arrays, name: array}


def told(kind: Kind, path: Path, arrays: dict[str, Any]) -> str:
    """What is said of a file with these arrays; "" where it is used."""
    write_arrays(path, arrays)
    try:
        kind.use(path)
    except ValueError as error:
        return str(error)
    return ""


def numbers(arrays: dict[str, Any], kinds: str) -> Iterator[tuple[str, int]]:
    """Arrays of some kinds, and the first and the last place of each."""
    for name, array in arrays.items():
        if array.dtype.kind in kinds and array.size and name != "digest":
            yield from ((name, place) for place in {0, array.size - 1})


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in KINDS])
@pytest.mark.filterwarnings("ignore:the agent has diverged:RuntimeWarning")
def test_a_number_that_cannot_be_gets_one_line_that_names_the_file(tmp_path, capsys, name):
    kind, path = KINDS[name](), tmp_path / "crafted.npz"
    kind.write(path)
    arrays = read_arrays(path)
    accepted, n = [], 0
    for array, place in numbers(arrays, "iuf"):
        values: list[float] = list(WHOLE if arrays[array].dtype.kind in "iu" else FLOATS)
        for value in values:
            made = changed(arrays, array, place, value)
            if made is None:
                continue
            said, n = told(kind, path, made), n + 1
            end = re.search(r"expected (-?\d+) … (\d+)", said)
            if end and value == -1:
                values.append(int(end[2]) + 1)  # where the range ends
            if said:
                assert "crafted.npz" in said or " is damaged and " in capsys.readouterr().err, (array, value, said)
                assert "\n" not in said
                assert len(said) < 500
            elif not kind.free.match(array) and not (0 <= value < 2**48):
                accepted.append((array, place, value))
    assert n > 20
    assert accepted == []


def test_every_part_says_what_its_whole_numbers_may_be():
    n = Sizes(
        4, 3, 5, 6, 7, dict.fromkeys(("batch_size", "growth_units", "keeps_all", "has_omega", "epoch_updates"), 2)
    )
    ways = [way for kind in ALGORITHMS.values() if kind.__module__.startswith("gqlab.") for way in kind().ways]
    kinds = {*(way.estimator for way in ways if way.estimator is not None), SAGAKept, SVRGKept, Traces, Watching}
    assert len(kinds) > 10
    seen = 0
    for kind in kinds | {kind.sparse_form() for kind in kinds if hasattr(kind, "sparse_form")}:
        for name, array in declared(kind, n).items():
            if array.kind in (SAMPLE, INDEX, COUNT):
                least, below = array.within
                assert least <= array.fill < below, (kind, name)
                seen += 1
    assert seen > 15


class Counting(NamedTuple):
    """A part that keeps a count, and does not say of what."""

    count: Any

    @staticmethod
    def memory(n: Sizes) -> dict[str, Any]:
        return {"count": far(1, COUNT, kept=True)}


class Indexed(NamedTuple):
    """A part whose array is made elsewhere."""

    index: Any


def test_a_part_that_does_not_say_so_is_refused():
    with pytest.raises(ValueError, match=r"^Counting: count holds whole numbers: say in memory\(\)"):
        declared(Counting, Sizes(4, 3))
    with pytest.raises(ValueError, match="index holds whole numbers, and its part does not say"):
        check_part(Indexed(np.zeros(3, dtype=np.int64)), Sizes(4, 3))
