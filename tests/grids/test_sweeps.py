"""Sweeps: cells in tasks, engines, and the store that keeps what is finished."""

from __future__ import annotations

import dataclasses
import errno
import importlib.util
import json
import re
import shutil
import sys
import time
import types
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.engine.cells import Settings
from gqlab.grids import batches, description
from gqlab.grids import store as stores
from gqlab.lab.results import PLAIN_FIELDS
from gqlab.support.sources import closure
from gqlab.tasks import Task, Threads, engine_of, on_ray
from helpers.futures import FakeFuture
from helpers.made_results import made_result

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sweep_problems():
    mdps = [gq.garnet(seed=0), gq.garnet(seed=1), gq.garnet(6, 2, 2, seed=2)]
    return [gq.Problem(mdp, gq.random_features(mdp, dim=dim)) for mdp, dim in zip(mdps, (4, 4, 3), strict=True)]


ALGORITHMS = [*gq.vary(gq.GreedyGQ, eta_theta=[0.1, 0.2]), gq.GreedyGQ(radius=2.0)]


def run(problems, n_seeds=4, **where):
    return gq.grid(problems, ALGORITHMS, 200, n_runs=2, seeds=range(n_seeds), record_every=50, **where)


def content(grid):
    """Everything in the results, cell by cell."""
    return [
        (
            {name: str(value) for name, value in label.items()},
            result.metadata,
            *((a.dtype.str, a.shape, a.tobytes()) for a in (getattr(result, name) for name in PLAIN_FIELDS)),
            *(array.tobytes() for array in result.memory.values()),
            *(np.stack(seen).tobytes() for seen in result.watched.values()),
        )
        for label, result in grid
    ]


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def whole(sweep_problems):
    return content(run(sweep_problems))


@pytest.fixture
def counted(monkeypatch):
    """The cells that were run."""
    ran = []

    def execute(problems, cells, settings):
        ran.extend(cells)
        return real(problems, cells, settings)

    real = batches.execute
    monkeypatch.setattr(batches, "execute", execute)
    return ran


@pytest.fixture
def small_tasks(monkeypatch):
    """A few cells in each task, whatever they take."""
    monkeypatch.setattr(batches, "MOST_BYTES", 2000)


# --- The store -------------------------------------------------------------------------------------------------------


def test_a_sweep_is_the_grid_and_a_second_call_runs_nothing(tmp_path, sweep_problems, whole, counted, small_tasks):
    assert content(run(sweep_problems, engine="threads")) == whole
    assert content(run(sweep_problems, engine=Threads(workers=3), store=tmp_path / "s")) == whole
    assert len(counted) == 2 * len(whole)
    assert len(list(tmp_path.glob("s/cells/*/*.npz"))) > 5
    before = files(tmp_path)
    assert content(run(sweep_problems, store=tmp_path / "s")) == whole
    opened = gq.open_grid(tmp_path / "s")
    assert content(opened) == whole
    assert opened.results[-1].metadata == opened.results[len(whole) - 1].metadata
    assert [r.metadata["seed"] for r in opened.results[2:4]] == [2, 3]
    assert len(counted) == 2 * len(whole)
    assert files(tmp_path) == before


def test_every_result_knows_its_problem_wherever_it_was_run(tmp_path, sweep_problems):
    grids = [run(sweep_problems), run(sweep_problems, engine="threads"), run(sweep_problems, store=tmp_path)]
    alone = gq.open_grid(tmp_path)
    assert {result.problem for result in alone.results} == {None}
    with pytest.raises(ValueError, match="metric is 'mspbe', which was not watched and needs the problem"):
        alone.best("mspbe")
    grids.append(gq.open_grid(tmp_path, problems=sweep_problems))
    scores = []
    for grid in grids:
        for label, result in grid:
            assert result.problem is sweep_problems[label["problem"]]  # itself, no copy
        scores.append(grid.best("mspbe").labels["score"].tolist())
    assert scores == [scores[0]] * 4
    other = [*sweep_problems[1:], sweep_problems[0]]
    with pytest.raises(ValueError, match=r"problems\[0\] is Problem\(.*\), which is not that of the grid in "):
        gq.open_grid(tmp_path, problems=other)
    with pytest.raises(ValueError, match=f"problems has 1, expected the {len(sweep_problems)} of the grid in "):
        gq.open_grid(tmp_path, problems=sweep_problems[0])
    with pytest.raises(ValueError, match=r"problems\[0\] is 'lake', expected a Problem"):
        gq.open_grid(tmp_path, problems=["lake"] * len(sweep_problems))


def test_what_is_watched_and_where_runs_begin_are_kept_too(tmp_path, garnet_problem):
    settings = {"n_samples": 100, "n_runs": 2, "theta0": [0.1, 0.2, 0.3, 0.4], "watch": gq.Watch("mspbe", every=3)}
    algorithms = gq.vary(gq.VRGreedyGQ, batch_size=[10, 20, 30])
    grid = gq.grid(garnet_problem, algorithms, **settings, store=tmp_path)
    assert content(grid) == content(gq.grid(garnet_problem, algorithms, **settings))
    grid.to_parquet(tmp_path / "p.parquet")
    lowest = [r.watched["mspbe"].lowest.reshape(-1) for r in grid.results]
    assert np.array_equal(pq.read_table(tmp_path / "p.parquet")["mspbe_lowest"], np.concatenate(lowest), equal_nan=True)
    longer = gq.run(garnet_problem, algorithms[2], 300, resume=grid.results[2])
    assert longer.updates[-1] == 300
    with pytest.raises(ValueError, match="which belongs to another sweep, with theta0 = "):
        gq.grid(garnet_problem, algorithms, **(settings | {"theta0": [0, 0, 0, 0]}), store=tmp_path)


def test_a_recipe_cannot_have_a_module_imported(tmp_path, monkeypatch, capsys):
    (tmp_path / "evilmod.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(
        'n_samples = 100\n[[problems]]\nmdp = "gymnasium"\nenv_id = "evilmod:FrozenLake-v1"\n'
        '[[algorithms]]\nname = "GreedyGQ"\n'
    )
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", "s.toml"])
    assert "env_id is 'evilmod:FrozenLake-v1': a file cannot have a module imported" in capsys.readouterr().err


def test_a_recipe_that_is_nested_too_deeply_is_one_line(tmp_path, capsys):
    (tmp_path / "s.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", str(tmp_path / "s.toml")])
    assert "nested too deeply" in capsys.readouterr().err


def test_only_what_is_missing_or_damaged_is_run_again(tmp_path, sweep_problems, whole, counted, small_tasks, capsys):
    run(sweep_problems, store=tmp_path)
    first, second, *_ = sorted(tmp_path.glob("cells/*/*.npz"))
    lost = [len(stores.read_array(path, "numbers")) for path in (first, second)]
    first.unlink()
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    with pytest.raises(ValueError, match=rf"{lost[0]} of 36 cells are missing; run the same sweep again to resume it"):
        gq.open_grid(tmp_path)
    assert len(gq.open_grid(tmp_path, partial=True)) == 36 - lost[0]
    counted.clear()
    capsys.readouterr()
    assert content(run(sweep_problems, store=tmp_path)) == whole
    assert len(counted) == sum(lost)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"gqlab: {second} is damaged and will be computed again (")
    assert content(run(sweep_problems, store=tmp_path)) == whole  # which names no file any more
    assert capsys.readouterr().err == ""


def test_a_cell_that_is_in_two_files_counts_once(tmp_path, sweep_problems, whole):
    grid = run(sweep_problems, store=tmp_path)
    files = stores.Files(tmp_path, grid.results.store.description.digest)
    files.save(stores.pack([5, 6], [grid.results[5], grid.results[6]]))
    assert content(gq.open_grid(tmp_path)) == whole
    assert content(run(sweep_problems, store=tmp_path)) == whole


def test_a_damaged_file_is_named_when_its_cell_is_read(tmp_path, garnet_problem):
    gq.grid(garnet_problem, gq.GreedyGQ(), 100, store=tmp_path)
    grid = gq.open_grid(tmp_path)
    [path] = tmp_path.glob("cells/*/*.npz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"npz is damaged \(.*\); run the same sweep again to recompute its cells"):
        grid.results[0]


REFUSED = {
    "samples": ({"n_samples": 300}, "another sweep, with n_samples = 200 instead of 300"),
    "runs": ({"n_runs": 3}, "another sweep, with n_runs = 2 instead of 3"),
    "seeds": ({"seeds": [0, 1]}, "another sweep, with other seeds"),
    "algorithms": ({"algorithms": gq.GreedyGQ()}, "another sweep, with other algorithms"),
    "problems": ({"problems": gq.baird()}, "another sweep, with other problems"),
    "precision": ({"dtype": "float32"}, "another sweep, with dtype = 'float64' instead of 'float32'"),
    "watch": ({"watch": gq.Watch("mspbe")}, "another sweep, with other watch"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_the_store_of_another_sweep_is_refused_and_kept(tmp_path, garnet_problem, changes, message):
    arguments = {"problems": garnet_problem, "algorithms": ALGORITHMS, "n_samples": 200, "n_runs": 2, "seeds": [0]}
    gq.grid(**arguments, store=tmp_path)
    before = files(tmp_path)
    with pytest.raises(ValueError, match=message):
        gq.grid(**(arguments | changes), store=tmp_path)
    assert files(tmp_path) == before


def test_of_two_sweeps_that_begin_in_one_new_folder_one_is_refused(tmp_path, garnet_problem, monkeypatch):
    def check_writable(folder):
        monkeypatch.setattr(stores, "check_writable", real)
        gq.grid(garnet_problem, gq.GreedyGQ(), 200, store=folder)  # another driver, faster
        real(folder)

    real = stores.check_writable
    monkeypatch.setattr(stores, "check_writable", check_writable)
    with pytest.raises(ValueError, match="another sweep, with n_samples = 200 instead of 100"):
        gq.grid(garnet_problem, gq.GreedyGQ(), 100, store=tmp_path)
    assert gq.open_grid(tmp_path).results[0].metadata["n_samples"] == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells", "sweep.json"]


def test_the_store_of_other_code_is_refused_and_kept(tmp_path, garnet_problem, monkeypatch):
    gq.grid(garnet_problem, gq.GreedyGQ(), 100, store=tmp_path)
    before = files(tmp_path)
    monkeypatch.setattr(description, "code_digest", lambda *_: "of another version")
    with pytest.raises(ValueError, match="belongs to another version of the code: choose another folder"):
        gq.grid(garnet_problem, gq.GreedyGQ(), 100, store=tmp_path)
    assert files(tmp_path) == before
    assert len(gq.open_grid(tmp_path)) == 1  # what was found may be read


def own_algorithm(scale: float) -> gq.Algorithm:
    """One of a notebook, whose step sizes depend on a name outside the class."""
    scope = {"__name__": "__main__", "gq": gq, "SCALE": scale}
    text = "class Own(gq.GreedyGQ):\n    def for_problem(self, problem):\n        return type(self)(SCALE)"
    exec(text, scope)  # noqa: S102 - as a notebook does
    return scope["Own"]()


def test_all_that_the_code_of_an_algorithm_in_a_notebook_reads_is_part_of_a_sweep(tmp_path, garnet_problem):
    gq.grid(garnet_problem, own_algorithm(0.01), 100, store=tmp_path)
    again = gq.grid(garnet_problem, own_algorithm(0.01), 100, store=tmp_path)
    assert again.results.n_computed == 0
    digests = {description.code_digest(type(own_algorithm(scale))) for scale in (0.01, 0.02)}
    assert len(digests) == 2
    with pytest.raises(ValueError, match=r"store is .*, which belongs to another"):
        gq.grid(garnet_problem, own_algorithm(0.02), 100, store=tmp_path)


def sweep_of(problem: gq.Problem, algorithm: gq.Algorithm, **first_points) -> description.Sweep:
    axes = description.axes_of([problem], [algorithm], [0])
    return description.Sweep([problem], axes, 2, Settings(100, 10), **first_points)


def own_estimator(factor: float) -> type:
    """One of a notebook, which reads a number from outside the class."""
    scope = {"__name__": "__main__", "NamedTuple": NamedTuple, "FACTOR": factor}
    text = "class Step(NamedTuple):\n    def step(self, world, point, cursor, u, rates, d, A):\n        return FACTOR"
    exec(text, scope)  # noqa: S102 - as a notebook does
    return scope["Step"]


def test_the_code_of_an_estimator_from_elsewhere_is_part_of_a_sweep(garnet_problem):
    """The class of the algorithm stands in this file, which does not know what its estimator will be."""
    steps = [own_estimator(factor) for factor in (1.0, 1.0, 2.0)]
    kinds = [type("OfThisFile", (gq.GreedyGQ,), {"estimator": step, "__module__": __name__}) for step in steps]
    first, same, other = (sweep_of(garnet_problem, kind()).description.code for kind in kinds)
    assert first == same
    assert first != other


def test_where_each_of_the_two_iterates_begins_is_part_of_a_sweep(garnet_problem):
    points = [None, np.zeros(4), np.full(4, 0.5)]
    sweeps = [
        sweep_of(garnet_problem, gq.GreedyGQ(), theta0=theta, omega0=omega) for theta in points for omega in points
    ]
    assert len({sweep.description.digest for sweep in sweeps}) == len(sweeps)
    for sweep in sweeps:
        assert sweep.cell(0).theta0 is sweep.theta0
        assert sweep.cell(0).omega0 is sweep.omega0


def test_the_store_of_a_sweep_depends_on_what_runs_a_cell_alone():
    """Not on a command, a figure or the theory; but on the engine and on the estimator."""
    covered = set(closure(description.RUNS_CELLS).modules)
    assert not [
        name for name in covered if name.startswith(("gqlab.cli", "gqlab.plots", "gqlab.theory", "gqlab.learn"))
    ]
    assert {"gqlab.engine.loop", "gqlab.rules.gradient", "gqlab.samples.streams", "gqlab.measure.watch"} <= covered


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is not the description of a sweep"),
        (b"[1]", "is not the description of a sweep"),
        (b"[" * 100_000, "is not the description of a sweep"),
        (b'{"format": "gqlab sweep 7"}', "its format is 'gqlab sweep 7', expected 'gqlab sweep 1'"),
        (b'{"format": "gqlab sweep 1"}', "is not the description of a sweep"),
        (None, "which has cells but no sweep.json"),
        (lambda text: text.replace(b'"n_runs": 40', b'"n_runs": 41'), "its content is not what was written"),
        (lambda text: text.replace(b'"seeds": [', b'"seeds": [-1, '), "seeds is -1, expected at least 0"),
    ],
)
def test_a_damaged_description_is_refused_and_nothing_is_lost(tmp_path, garnet_problem, text, message):
    gq.grid(garnet_problem, gq.GreedyGQ(), 100, store=tmp_path)
    file = tmp_path / "sweep.json"
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text if isinstance(text, bytes) else text(file.read_bytes()))
    before = files(tmp_path)
    with pytest.raises(ValueError, match=message):
        gq.grid(garnet_problem, gq.GreedyGQ(), 100, store=tmp_path)
    assert files(tmp_path) == before


def test_messages_of_stores_and_engines(tmp_path, garnet_problem, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setitem(sys.modules, "ray", None)
    for arguments, message in [
        ({"store": tmp_path / "file"}, "a file, expected a folder"),
        ({"store": 3}, "store is 3, expected the name of a file"),
        ({"engine": "dask"}, "engine is 'dask', expected one of 'threads', 'processes', 'ray'"),
        ({"engine": "ray"}, r"engine 'ray': Ray is missing .*; pip install 'gqlab\[ray\]'"),
        ({"store": tmp_path / "s", "algorithms": gq.VRGreedyGQ(batch_size=300)}, "batch_size"),
        ({"store": tmp_path / "s", "theta0": [1.0]}, r"theta0 has shape \(1,\), expected \(4,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            gq.grid(**{"problems": garnet_problem, "algorithms": gq.GreedyGQ(), "n_samples": 100, **arguments})
    assert not (tmp_path / "s").exists()
    with pytest.raises(ValueError, match=r"which is not the store of a sweep: it has no sweep\.json"):
        gq.open_grid(tmp_path)
    with pytest.raises(ValueError, match="address is 'auto', but engine 'threads' does not join a cluster"):
        engine_of("threads", address="auto")
    for address, message in [("here", "expected 'auto' or 'host:port'"), ("127.0.0.1:1", "no Ray cluster answers")]:
        with pytest.raises(ValueError, match=f"address is '{address}'.*{message}"):
            on_ray._check_address(address)


def test_a_worker_that_does_not_see_the_store_hands_its_cells_back(tmp_path, sweep_problems, whole, monkeypatch):
    monkeypatch.setattr(stores.Files, "seen", lambda self: False)
    assert content(run(sweep_problems, store=tmp_path)) == whole


class Elsewhere(Threads):
    """Workers with another disk, and a folder of the same name on it."""

    def __init__(self, folder):
        super().__init__(workers=2)
        self.folder = folder

    def prepare(self, shared, device="cpu"):
        super().prepare({**shared, "files": dataclasses.replace(shared["files"], folder=self.folder)}, device)


def test_a_worker_with_a_copy_of_the_store_hands_its_cells_back(tmp_path, sweep_problems, whole, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    run(sweep_problems, store=there)
    here.mkdir()
    shutil.copy(there / "sweep.json", here)
    shutil.rmtree(there / "cells")
    assert content(run(sweep_problems, store=here, engine=Elsewhere(there))) == whole
    assert [path.name for path in there.iterdir()] == ["sweep.json"]
    assert sorted(path.name for path in here.iterdir()) == ["cells", "sweep.json"]  # no token any more
    shutil.rmtree(here / "cells")
    monkeypatch.setattr(stores.Files, "seen", lambda self: True)
    with pytest.raises(ValueError, match="npz, which a worker has written, is missing"):
        run(sweep_problems, store=here, engine=Elsewhere(there))


# --- Failures --------------------------------------------------------------------------------------------------------


def test_a_cell_that_fails_is_named_when_all_others_are_kept(tmp_path, garnet_problem, monkeypatch):
    tried = []

    def execute(problems, cells, settings):
        if any(cell.seed == 5 for cell in cells):
            tried.append(len(cells))
            raise ArithmeticError("no good\nluck")
        return real(problems, cells, settings)

    real = batches.execute
    monkeypatch.setattr(batches, "execute", execute)
    arguments = {"problems": garnet_problem, "algorithms": gq.GreedyGQ(), "n_samples": 100, "seeds": range(20)}
    message = r"1 of 20 cells failed, the first on problems\[0\] with GreedyGQ\(.*\) and seed 5: ArithmeticError: no good luck"
    with pytest.raises(ValueError, match=message):
        gq.grid(**arguments, store=tmp_path)
    assert tried[-2:] == [1, 1]  # alone, and once more
    assert len(gq.open_grid(tmp_path, partial=True)) == 19
    monkeypatch.setattr(batches, "execute", real)
    assert content(gq.grid(**arguments, store=tmp_path)) == content(gq.grid(**arguments))


def test_a_full_disk_ends_the_sweep_at_once(tmp_path, sweep_problems, whole, counted, small_tasks, monkeypatch):
    def save(self, packed):
        if len(list(tmp_path.glob("cells/*/*.npz"))) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, packed)

    real = stores.Files.save
    monkeypatch.setattr(stores.Files, "save", save)
    message = f"^cannot write to the folder {re.escape(str(tmp_path))}: No space left on device$"
    with pytest.raises(ValueError, match=message):
        run(sweep_problems, store=tmp_path, engine=Threads(workers=1))
    assert len(counted) == len({(cell.problem, cell.algorithm, cell.seed) for cell in counted}) < len(whole)
    monkeypatch.setattr(stores.Files, "save", real)
    assert content(run(sweep_problems, store=tmp_path)) == whole


def test_closing_threads_ends_a_long_task(garnet_problem):
    axes = description.axes_of([garnet_problem], [gq.GreedyGQ()], [0])
    settings = Settings(10**9, 10**9)
    sweep = description.Sweep([garnet_problem], axes, 4, settings)
    with Threads(workers=1) as engine:
        engine.prepare({"sweep": sweep, "files": None})
        engine.submit(Task(batches.run_cells, (np.array([0]),)))
        time.sleep(0.5)
        [future] = engine._running
        assert not future.done()
    assert isinstance(future.exception(), KeyboardInterrupt)


# --- Tasks -----------------------------------------------------------------------------------------------------------


def test_tasks_hold_every_cell_once_are_of_one_kind_and_of_a_few_seconds(sweep_problems):
    axes = description.axes_of(sweep_problems, [gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=100)], range(1000))
    settings = Settings(100_000, 10_000)
    sweep = description.Sweep(sweep_problems, axes, 10, settings)
    missing = np.ones(len(sweep), dtype=bool)
    missing[10:20] = False
    tasks = batches.Batches(sweep, missing, workers=2)
    rate, sizes, numbers = 3e-9, [], []
    for task in tasks:
        [chosen] = task.arguments
        assert len(set(tasks.kind[chosen])) == 1
        seconds = rate * tasks.cost[chosen].sum() + 20 * (not sizes)  # the first one compiles
        tasks.learn(chosen, seconds)
        sizes.append(seconds)
        numbers += chosen.tolist()
    assert sorted(numbers) == np.flatnonzero(missing).tolist()
    assert len(set(tasks.kind)) == 4
    assert np.mean([1 <= seconds <= 10 for seconds in sizes]) > 0.8  # not the first and the last of a kind


# --- As data -----------------------------------------------------------------------------------------------------------

RECIPE = """
n_samples = 200
n_runs = 2
seeds = {count = 2, first = 3}
engine = "threads"
[[problems]]
mdp = "garnet"
seed = [0, 1]
features = {kind = "random", dim = 4}
[[algorithms]]
name = "GreedyGQ"
eta_theta = [0.1, 0.2]
"""


def test_the_command_runs_what_a_file_says_and_goes_on(tmp_path, capsys, counted):
    (tmp_path / "s.toml").write_text(RECIPE)
    arguments = ["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    main([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["cells"], found["computed"]) == (8, 8)
    assert [row["runs"] for row in found["rows"]] == [4] * 4
    main([*arguments, "--export", str(tmp_path / "s.parquet")])
    out = capsys.readouterr().out
    assert "garnet(seed=1, features=random(dim=4))\n  GreedyGQ(eta_theta=0.1, " in out
    assert "\nAll 8 cells were already in the store: nothing was computed; gqlab.open_grid(" in out
    assert len(counted) == 8
    problems = [gq.Problem(mdp, gq.random_features(mdp, 4)) for mdp in (gq.garnet(seed=0), gq.garnet(seed=1))]
    grid = gq.grid(problems, gq.vary(gq.GreedyGQ, eta_theta=[0.1, 0.2]), 200, n_runs=2, seeds=[3, 4])
    assert content(gq.open_grid(tmp_path / "out")) == content(grid)
    means = [(problems[0].exact.gradient(r.theta[:, -1]) ** 2).sum(-1).mean() for r in grid.results[:2]]
    assert found["rows"][0]["gradient"] == pytest.approx(np.mean(means))
    table = pq.read_table(tmp_path / "s.parquet").to_pandas()
    assert len(table) == 8 * 2 * 2
    row = table[(table.cell == 5) & (table.run == 1)].iloc[-1]
    assert (row.problem, row.seed, row.updates, row.eta_theta) == (1, 4, 200, 0.1)
    assert np.array_equal(row.theta, grid.results[5].theta[1, -1])


MISTAKES = {
    "TOML": ("n_samples = ", "n_samples = =", "is not TOML"),
    "key": ("n_runs", "n_rums", "n_rums is unknown, expected any of n_samples, n_runs, seeds"),
    "no problems": ("[[problems]]", "[[problem]]", "problem is unknown"),
    "mdp": ('"garnet"', '"maze"', r"problems\[0\]: mdp is 'maze', expected one of 'garnet', 'gymnasium', 'baird'"),
    "parameter": ("seed = [0, 1]", "sead = 0", r"problems\[0\]: sead is unknown, expected any of n_states"),
    "value": ("seed = [0, 1]", "branching = [2, 9]", r"problems\[0\]: branching is 9, expected at least 1 and below 6"),
    "empty": ("seed = [0, 1]", "seed = []", "seed is empty"),
    "features": ("dim = 4", "dims = 4", r"problems\[0\]: features.dims is unknown, expected any of dim, kind, seed"),
    "kind": ('"random"', '"deep"', r"problems\[0\]: features.kind is 'deep', expected one of"),
    "algorithm": ('"GreedyGQ"', '"DQN"', r"algorithms\[0\]: name is 'DQN', expected one of"),
    "step": ("[0.1, 0.2]", "-1", r"algorithms\[0\]: eta_theta is -1, expected"),
    "decay": ("[0.1, 0.2]", "{after = 3}", r"algorithms\[0\]: eta is missing"),
    "seeds": ("count = 2", "count = 0", "seeds.count is 0, expected at least 1"),
    "samples": ("n_samples = 200", 'n_samples = "many"', "n_samples is 'many', expected a whole number"),
    "engine": ('"threads"', '"dask"', "engine is 'dask', expected one of"),
}


for options, message in {
    "'x'": "options is 'x', expected a table",
    "[1, 2]": "options is 1, expected a table",
    "{env_id = 'a'}": "options.env_id is 'a': it is not for gymnasium.make",
    "{discount = 0.5}": "options.discount is 0.5: it is not for gymnasium.make",
}.items():
    new = f"mdp = 'gymnasium'\nenv_id = 'FrozenLake-v1'\noptions = {options}\nfeatures"
    MISTAKES[f"options = {options}"] = ('mdp = "garnet"\nseed = [0, 1]\nfeatures', new, rf"problems\[0\]: {message}")


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_file_is_named_in_one_line(tmp_path, capsys, old, new, message):
    assert old in RECIPE
    (tmp_path / "s.toml").write_text(RECIPE.replace(old, new))
    with pytest.raises(SystemExit) as end:
        main(["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")])
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(message, line), line
    assert not (tmp_path / "out").exists()


def test_the_file_of_the_documentation_can_be_read():
    from gqlab.grids.recipe import read_recipe

    recipe = read_recipe(ROOT / "docs" / "sweep.toml")
    assert (len(recipe.problems), len(recipe.algorithms)) == (4, 7)
    assert recipe.algorithms[2].eta_theta == gq.Decay(0.32, 1000, 0.5)


def test_a_list_among_options_is_one_value(tmp_path):
    from gqlab.grids.recipe import read_recipe

    options = 'options = [{desc = ["SF", "HG"], is_slippery = false}, {desc = ["SF", "FG"]}]'
    text = RECIPE.replace("seed = [0, 1]", f'env_id = "FrozenLake-v1"\ndiscount = [0.5, 0.9]\n{options}')
    (tmp_path / "s.toml").write_text(text.replace('"garnet"', '"gymnasium"'))
    recipe = read_recipe(tmp_path / "s.toml")
    assert [problem.mdp.n_states for problem in recipe.problems] == [4] * 4
    assert [int(problem.mdp.terminal.sum()) for problem in recipe.problems] == [2, 1, 2, 1]


def test_a_step_size_that_decays_is_three_columns_of_parquet(tmp_path, garnet_problem):
    algorithms = [gq.GreedyGQ(gq.Decay(0.3, after=10, power=1.0)), gq.GreedyGQ(0.1)]
    grid = gq.grid(garnet_problem, algorithms, 10, n_runs=1)
    assert grid.to_parquet(tmp_path / "p.parquet") == 4
    table = pq.read_table(tmp_path / "p.parquet").to_pandas()
    assert table.eta_theta.tolist() == [0.3, 0.3, 0.1, 0.1]
    assert table.eta_theta_after.tolist()[:2] == [10, 10]
    assert table.eta_theta_power.isna().tolist() == [False, False, True, True]


def test_a_grid_without_cells_is_not_exported(tmp_path, garnet_problem):
    grid = gq.grid(garnet_problem, gq.GreedyGQ(), 10).select(seed=7)
    with pytest.raises(ValueError, match=r"^the grid has no cells$"):
        grid.to_parquet(tmp_path / "p.parquet")
    assert not list(tmp_path.iterdir())


def test_diverged_is_of_a_record_in_parquet_and_in_data_frames(tmp_path, garnet_problem):
    result = made_result(garnet_problem, np.zeros((2, 4, 4)), diverged_at=[-1, 15])
    grid = gq.GridResult([result], {"problem": np.array([0])})
    grid.to_parquet(tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet").to_pandas()
    assert table.diverged.tolist() == [False] * 6 + [True] * 2
    assert table.drop(columns=["theta", "omega"]).equals(grid.to_dataframe(iterates=False))


def test_a_parameter_that_is_not_set_is_nan_and_still_told_from_others(tmp_path, garnet_problem):
    grid = gq.grid(garnet_problem, [gq.GreedyGQ(), gq.GreedyGQ(radius_omega=2.0)], 10, n_runs=1)
    assert grid.labels["radius_omega"].dtype == float
    assert repr(grid).split()[-3:] == ["radius_omega", "–", "2"]
    grid.to_parquet(tmp_path / "p.parquet")
    assert np.array_equal(
        pq.read_table(tmp_path / "p.parquet")["radius_omega"], [np.nan] * 2 + [2.0] * 2, equal_nan=True
    )


# --- The engine of the documentation -----------------------------------------------------------------------------------


class FakeClient:
    """What the engine uses of ``distributed.Client``."""

    def __init__(self, *_, **__):
        self.closed = False

    def nthreads(self):
        return {"one": 1, "two": 1}

    def scatter(self, value, broadcast, hash):
        return value

    def submit(self, call, *arguments, pure):
        return FakeFuture(call, arguments)

    def close(self):
        self.closed = True


class FakeCompleted:
    def __init__(self):
        self.futures = []

    def add(self, future):
        self.futures.append(future)

    def __iter__(self):
        while self.futures:
            yield self.futures.pop(0)


def test_the_engine_of_the_documentation_runs_a_sweep(tmp_path, sweep_problems, whole, monkeypatch):
    fake = types.SimpleNamespace(Client=FakeClient, as_completed=FakeCompleted)
    monkeypatch.setitem(sys.modules, "distributed", fake)
    spec = importlib.util.spec_from_file_location("dask_engine", ROOT / "docs" / "dask_engine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    engine = module.Dask()
    assert content(run(sweep_problems, engine=engine, store=tmp_path)) == whole
    assert engine.client.closed
