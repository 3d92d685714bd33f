"""What the reproduction keeps on disk: whole files, of these settings and no others, whatever happens in between."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import threading

import numpy as np
import pytest

import gqlab as gq
from gqlab.studies import keys, study
from gqlab.studies.archive import Archive
from gqlab.studies.keys import Call
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import BY_NAME
from gqlab.studies.paper.jobs import Job, Measurement, measure
from gqlab.studies.paper.problems import ProblemSpec
from gqlab.studies.paper.reproduction import Reproduction, run_reproduction
from gqlab.studies.study import How, Runner
from gqlab.support.files import read_arrays, write_arrays
from gqlab.support.sources import closure
from paper.conftest import Tiny, measured

JOB = Job(ProblemSpec("garnet", 0, 1), gq.GreedyGQ(), n_samples=1000, n_runs=2, record_every=100, metrics=("gradient",))
QUIET = How(progress=False)


def call_of(job: Job) -> Call:
    return Call(measure, (job,))


@pytest.fixture
def archive(tmp_path):
    made = Archive(tmp_path)
    made.prepare()
    return made


@pytest.fixture
def saved(archive):
    """An archive with the result of ``JOB``."""
    call = call_of(JOB)
    archive.save(call.key, call.settings, measure(JOB))
    return archive


def same(a: Measurement, b: Measurement) -> bool:
    counts = all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("updates", "samples", "diverged"))
    return counts and all(np.array_equal(a.values[name], b.values[name]) for name in a.values | b.values)


def test_what_is_saved_is_what_is_loaded(saved):
    loaded = Measurement.of(saved.load(call_of(JOB)))
    assert same(loaded, measured(JOB))
    assert np.array_equal(loaded.gradient_evaluations, measured(JOB).gradient_evaluations)
    assert set(loaded.values) == {"gradient"}


def test_times_are_in_files_of_their_own(tmp_path):
    with Runner(tmp_path, QUIET) as runner:
        [result] = runner.results([call_of(JOB)])
    assert result["times"]["seconds"] > 0
    [path] = (tmp_path / "data").iterdir()
    assert "seconds" not in str(read_arrays(path)["header"])
    assert (tmp_path / "times" / f"{path.stem}.json").is_file()


@pytest.mark.parametrize(
    "change",
    [
        {"problem": ProblemSpec("garnet", 1, 1)}, {"problem": ProblemSpec("garnet", 0, seed=0)},
        {"problem": ProblemSpec("frozen-lake", 0, slippery=False)}, {"algorithm": gq.GreedyGQ(0.03)},
        {"algorithm": gq.QLearning()}, {"n_samples": 1001}, {"n_runs": 3}, {"record_every": 50},
        {"metrics": ("mspbe",)}, {"device": "cuda"}, {"watch": "gradient"}, {"thin": 2}, {"windows": ((0, 500),)},
    ],
    ids=str,
)  # fmt: skip
def test_a_result_of_other_settings_is_not_taken(saved, change):
    assert saved.load(call_of(dataclasses.replace(JOB))) is not None
    assert saved.load(call_of(dataclasses.replace(JOB, **change))) is None


def test_results_of_other_code_are_not_taken(saved, monkeypatch):
    monkeypatch.setattr(keys, "code_digest", lambda *kinds: "other")
    assert saved.load(call_of(JOB)) is None


def test_what_draws_judges_or_learns_is_no_part_of_the_key():
    """A call depends on what runs and measures: not on figures, pages and claims, nor on agents and logged data."""
    found = closure(measure.__module__).modules
    rooms = {name.split(".")[1] for name in found}
    assert not rooms & {"plots", "learn", "data", "theory", "cli", "encoders"}
    own = {name for name in found if name.startswith("gqlab.studies.")}
    assert own == {"gqlab.studies.paper.jobs", "gqlab.studies.paper.problems"}
    assert {"gqlab.exact.objective", "gqlab.estimators.svrg", "gqlab.lab.variance", "gqlab.engine.loop"} <= set(found)


def test_problems_do_not_share_their_luck_and_algorithms_do():
    """Two feature draws on the same lake have other trajectories; two algorithms on one problem the same: paired."""
    lakes = [ProblemSpec("frozen-lake", k, 1) for k in (0, 1)]
    paths = [np.stack(gq.trajectory(spec.build(), 50, seed=spec.draw)) for spec in lakes]
    assert not np.array_equal(*paths)
    jobs = [dataclasses.replace(JOB, algorithm=a, n_samples=3000) for a in (gq.GreedyGQ(), gq.VRGreedyGQ())]
    first, second = (measured(job).values["gradient"][:, 0] for job in jobs)
    assert np.array_equal(first, second)  # the same θ₀, run by run
    assert len(set(first)) == 2


def test_the_lake_is_part_of_the_key_only_where_it_matters():
    lake, dry = (ProblemSpec("frozen-lake", 0, slippery=slippery) for slippery in (True, False))
    assert lake != dry
    assert ProblemSpec("garnet", 0, slippery=False) == ProblemSpec("garnet", 0)
    jobs = [dataclasses.replace(JOB, problem=ProblemSpec("garnet", 0, 1, slippery)) for slippery in (True, False)]
    assert len({call_of(job).key for job in jobs}) == 1


def test_a_file_that_is_not_ours_is_done_again(saved):
    path = saved.path(call_of(JOB).key)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"something else"):
        path.write_bytes(content)
        assert saved.load(call_of(JOB)) is None
    other = call_of(dataclasses.replace(JOB, n_runs=9))
    saved.save(other.key, other.settings, measure(*other.arguments))
    os.replace(saved.path(other.key), path)  # the right name, the settings of another
    assert saved.load(call_of(JOB)) is None


def made(monkeypatch, most: int | None = None) -> list[str]:
    """The keys of the calls that are made from here on; after ``most`` of them Ctrl-C comes."""
    keys_made: list[str] = []
    lock, make_call = threading.Lock(), study.make_call

    def counted(shared, function, arguments, key, settings):
        with lock:
            if len(keys_made) == most:
                raise KeyboardInterrupt
            keys_made.append(key)
        return make_call(shared, function, arguments, key, settings)

    monkeypatch.setattr(study, "make_call", counted)
    return keys_made


def test_an_interruption_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    wanted = Reproduction([BY_NAME["garnet-mspbe"]], Tiny())
    calls = wanted.calls()
    with monkeypatch.context() as patch:
        done = made(patch, 3)
        with pytest.raises(KeyboardInterrupt), Runner(tmp_path, How(workers=1, progress=False)) as runner:
            runner.results(calls)  # one after another: Ctrl-C ends a call that has begun
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == sorted(f"{key}.npz" for key in done)
    again = made(monkeypatch)
    with Runner(tmp_path, QUIET) as runner:
        assert runner.kept(calls) is None
        runner.results(calls)
        assert set(again) == {call.key for call in calls} - set(done)
        assert len(again) == len(calls) - len(done)
        assert runner.kept(calls) is not None
        runner.results(calls)
    assert len(again) == len(calls) - 3
    forced = Reproduction([BY_NAME["garnet-mspbe"], BY_NAME["garnet-gradient"]], Tiny())
    run_reproduction(forced, tmp_path, How(force=True, progress=False))
    assert len(again) == 3 * len(calls) - 3  # of the second experiment its own part alone: the other is shared


def test_an_interruption_while_writing_leaves_no_half_file(archive, monkeypatch):
    call, value = call_of(JOB), measure(JOB)

    def dying(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", dying)
    with pytest.raises(KeyboardInterrupt):
        archive.save(call.key, call.settings, value)
    assert list((archive.folder / "data").iterdir()) == []


def test_half_files_of_a_killed_process_are_cleared_and_those_of_a_living_one_are_not(archive):
    folder = archive.folder / "data"
    left, held = folder / ".a.npz.x.part", folder / ".b.npz.y.part"
    left.write_bytes(b"half")
    with held.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as write_whole does while it writes
        archive.prepare()
        assert not left.exists()
        assert held.exists()
    archive.prepare()
    assert not held.exists()


def flipped(content, rng):
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :]


def test_a_damaged_file_is_named_once_and_counts_as_none_or_holds_what_was_saved(saved, capsys):
    """One bit flipped, anywhere: in what zipfile, NumPy or JSON reads."""
    call, whole_result = call_of(JOB), measured(JOB)
    path, rng = saved.path(call.key), np.random.default_rng(0)
    whole, refused = path.read_bytes(), 0
    for _ in range(400):
        path.write_bytes(flipped(whole, rng))
        with Runner(saved.folder, QUIET) as runner:
            loaded = runner.kept([call])
            assert runner.kept([call]) == loaded
        printed = capsys.readouterr().err
        if loaded is None:
            refused += 1
            assert printed.startswith(f"gqlab: {path} is damaged and will be computed again (")
            assert printed.count("\n") == 1
        else:  # a bit that nobody reads, such as of a date
            assert printed == ""
            assert same(Measurement.of(loaded[0]), whole_result)
    assert refused > 300


@pytest.mark.parametrize(
    "change",
    [
        {"header": np.array("[" * 100_000)}, {"header": np.array("no JSON")}, {"header": np.array("{}")},
        {"header": np.zeros(3)},
    ],
    ids=lambda change: "-".join(f"{name}{array.dtype}" for name, array in change.items()),
)  # fmt: skip
def test_a_crafted_file_counts_as_none(saved, capsys, change):
    path = saved.path(call_of(JOB).key)
    write_arrays(path, read_arrays(path) | change)
    assert saved.load(call_of(JOB)) is None
    assert "is damaged" in capsys.readouterr().err


def test_a_file_that_is_damaged_is_computed_again_and_force_does_not_read(tmp_path, monkeypatch, capsys):
    calls = Reproduction([BY_NAME["garnet-mspbe"]], Tiny(population=1)).calls()
    with Runner(tmp_path, QUIET) as runner:
        runner.results(calls)
    files = {path: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    victim = min(files)
    for force in (False, True):
        victim.write_bytes(files[victim][:-30])
        with monkeypatch.context() as patch:
            again = made(patch)
            with Runner(tmp_path, How(force=force, progress=False)) as runner:
                runner.results(calls)
        assert len(again) == (len(files) if force else 1)
        assert capsys.readouterr().err.count(str(victim)) == (0 if force else 1)
        assert victim.read_bytes() == files[victim]


def test_experiments_share_what_they_have_in_common():
    def keys_of(name: str) -> set[str]:
        return {call.key for call in Reproduction([BY_NAME[name]], Request(quick=True)).calls()}

    assert keys_of("garnet-mspbe") < keys_of("garnet-gradient")
    assert keys_of("garnet-reward") == keys_of("garnet-reward-iterations")
    assert keys_of("garnet-reward") < keys_of("garnet-baselines")


def test_settings_are_plain_json():
    settings = call_of(JOB).settings
    assert json.loads(json.dumps(settings)) == settings
    assert len(call_of(JOB).key) == 32
