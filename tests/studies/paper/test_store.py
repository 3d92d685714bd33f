"""What is kept on disk: whole files, of these settings and no others, whatever happens in between."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import threading

import numpy as np
import pytest

import gqlab as gq
from gqlab.studies.paper import runner
from gqlab.studies.paper.design import Scale
from gqlab.studies.paper.experiments import BY_NAME
from gqlab.studies.paper.jobs import Job, measure
from gqlab.studies.paper.problems import ProblemSpec
from gqlab.studies.paper.runner import collect, run_missing
from gqlab.studies.paper.store import Store
from gqlab.support.files import read_arrays, write_arrays
from paper.conftest import Tiny

JOB = Job(ProblemSpec("garnet", 0, 1), gq.GreedyGQ(), n_samples=1000, n_runs=2, record_every=100, metrics=("gradient",))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "data")


def test_what_is_saved_is_what_is_loaded(store):
    assert JOB not in store
    measured = measure(JOB)
    store.save(JOB, measured)
    loaded = Store(store.folder).load(JOB)
    for name in ("updates", "samples", "gradient_evaluations", "diverged"):
        assert np.array_equal(getattr(loaded, name), getattr(measured, name))
    assert np.array_equal(loaded.values["gradient"], measured.values["gradient"])
    assert loaded.seconds == measured.seconds > 0


def test_a_result_that_is_saved_again_replaces_the_one_that_was_read(store):
    first = measure(JOB)
    store.save(JOB, first)
    assert store.load(JOB).seconds == first.seconds
    again = dataclasses.replace(first, seconds=first.seconds + 1, values={"gradient": first.values["gradient"] + 1})
    store.save(JOB, again)
    assert store.load(JOB).seconds == again.seconds
    assert np.array_equal(store.load(JOB).values["gradient"], again.values["gradient"])


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
def test_a_result_of_other_settings_is_not_taken(store, change):
    store.save(JOB, measure(JOB))
    assert dataclasses.replace(JOB, **change) not in store


def test_results_of_other_code_are_not_taken(store, monkeypatch):
    store.save(JOB, measure(JOB))
    monkeypatch.setattr("gqlab.studies.paper.jobs.source_digest", lambda: "other")
    assert dataclasses.replace(JOB) not in Store(store.folder)


def test_problems_do_not_share_their_luck_and_algorithms_do():
    """Two feature draws on the same lake have other trajectories; two algorithms on one problem the same: paired."""
    lakes = [ProblemSpec("frozen-lake", k, 1) for k in (0, 1)]
    paths = [np.stack(gq.trajectory(spec.build(), 50, seed=spec.draw)) for spec in lakes]
    assert not np.array_equal(*paths)
    jobs = [dataclasses.replace(JOB, algorithm=a, n_samples=3000) for a in (gq.GreedyGQ(), gq.VRGreedyGQ())]
    first, second = (measure(job).values["gradient"][:, 0] for job in jobs)
    assert np.array_equal(first, second)  # the same θ₀, run by run
    assert len(set(first)) == 2


def test_the_lake_is_part_of_the_key_only_where_it_matters():
    lake, dry = (ProblemSpec("frozen-lake", 0, slippery=slippery).to_dict() for slippery in (True, False))
    assert lake != dry
    assert ProblemSpec("garnet", 0, slippery=False).to_dict() == ProblemSpec("garnet", 0).to_dict()


def test_a_file_that_is_not_ours_is_done_again(store):
    store.save(JOB, measure(JOB))
    path = store.path(JOB)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"something else"):
        path.write_bytes(content)
        assert JOB not in Store(store.folder)
    other = dataclasses.replace(JOB, n_runs=9)
    store.save(other, measure(other))
    os.replace(store.path(other), path)  # the right name, the settings of another
    assert JOB not in Store(store.folder)


def test_an_interruption_loses_nothing_that_was_finished(store, monkeypatch):
    experiment, scale = BY_NAME["garnet-mspbe"], Tiny()
    jobs = scale.jobs(experiment)
    done: list[Job] = []

    lock = threading.Lock()

    def interrupted(job):
        with lock:
            if len(done) == 3:
                raise KeyboardInterrupt
            done.append(job)
        return measure(job)

    monkeypatch.setattr(runner, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_missing(experiment, scale, store, quiet=True)
    assert sorted(p.name for p in store.folder.iterdir()) == sorted(f"{job.digest}.npz" for job in done)
    assert collect(experiment, scale, store) is None
    again: list[Job] = []
    monkeypatch.setattr(runner, "measure", lambda job: again.append(job) or measure(job))
    run_missing(experiment, scale, store, quiet=True)
    assert {job.digest for job in again} == {job.digest for job in jobs} - {job.digest for job in done}
    assert len(again) == len(jobs) - len(done)
    assert collect(experiment, scale, store) is not None
    run_missing(experiment, scale, store, quiet=True)
    assert len(again) == len(jobs) - 3
    later = Store(store.folder)
    run_missing(experiment, scale, later, force=True, quiet=True)
    assert len(again) == 2 * len(jobs) - 3
    run_missing(BY_NAME["garnet-gradient"], scale, later, force=True, quiet=True)  # its own part alone is left to do
    assert len(again) == 3 * len(jobs) - 3


def test_an_interruption_while_writing_leaves_no_half_file(store, monkeypatch):
    measured = measure(JOB)

    def dying(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", dying)
    with pytest.raises(KeyboardInterrupt):
        store.save(JOB, measured)
    assert list(store.folder.iterdir()) == []


def test_half_files_of_a_killed_process_are_cleared_and_those_of_a_living_one_are_not(store):
    store.folder.mkdir()
    left, held = store.folder / ".a.npz.x.part", store.folder / ".b.npz.y.part"
    left.write_bytes(b"half")
    with held.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as write_whole does while it writes
        Store(store.folder)
        assert not left.exists()
        assert held.exists()
    Store(store.folder)
    assert not held.exists()


def flipped(content, rng):
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :]


def test_a_damaged_file_is_named_once_and_counts_as_none_or_holds_what_was_saved(store, capsys):
    """One bit flipped, anywhere: in what zipfile, NumPy or JSON reads."""
    measured = measure(JOB)
    store.save(JOB, measured)
    path, rng = store.path(JOB), np.random.default_rng(0)
    whole, refused = path.read_bytes(), 0
    for _ in range(400):
        path.write_bytes(flipped(whole, rng))
        again = Store(store.folder)
        loaded = again.load(JOB)
        assert again.load(JOB) is loaded
        printed = capsys.readouterr().err
        if loaded is None:
            refused += 1
            assert printed.startswith(f"gqlab: {path} is damaged and will be computed again (")
            assert printed.count("\n") == 1
        else:  # a bit that nobody reads, such as of a date
            assert printed == ""
            assert np.array_equal(loaded.values["gradient"], measured.values["gradient"])
            assert np.array_equal(loaded.diverged, measured.diverged)
            assert all(
                np.array_equal(getattr(loaded, name), getattr(measured, name)) for name in ("updates", "samples")
            )
    assert refused > 300


@pytest.mark.parametrize(
    "change",
    [
        {"updates": np.zeros((2, 2), int)}, {"updates": np.array(1)}, {"diverged": np.zeros(3, bool)},
        {"value gradient": np.zeros(3)}, {"value gradient": np.zeros((2, 99))}, {"seconds": np.zeros(3)},
        {"settings": np.array("[" * 100_000)}, {"settings": np.array("no JSON")},
    ],
    ids=lambda change: "-".join(f"{name}{array.shape}" for name, array in change.items()),
)  # fmt: skip
def test_a_crafted_file_counts_as_none(store, capsys, change):
    store.save(JOB, measure(JOB))
    write_arrays(store.path(JOB), read_arrays(store.path(JOB)) | change)
    assert JOB not in Store(store.folder)
    assert "is damaged" in capsys.readouterr().err


def test_a_file_that_is_damaged_is_computed_again_and_force_does_not_read(store, monkeypatch, capsys):
    experiment, scale = BY_NAME["garnet-mspbe"], Tiny(population=1)
    run_missing(experiment, scale, store, quiet=True)
    files = {path: path.read_bytes() for path in store.folder.iterdir()}
    victim = min(files)
    for force in (False, True):
        victim.write_bytes(files[victim][:-30])
        again: list[Job] = []
        with monkeypatch.context() as patch:
            patch.setattr(runner, "measure", lambda job, again=again: again.append(job) or measure(job))
            run_missing(experiment, scale, Store(store.folder), force=force, quiet=True)
        assert len(again) == (len(files) if force else 1)
        assert capsys.readouterr().err.count(str(victim)) == (0 if force else 1)
        assert read_arrays(victim).keys() == {*read_arrays(min(set(files) - {victim}))}


def test_experiments_share_what_they_have_in_common():
    scale = Scale()
    mspbe = {job.digest for job in scale.jobs(BY_NAME["garnet-mspbe"])}
    assert mspbe < {job.digest for job in scale.jobs(BY_NAME["garnet-gradient"])}
    reward = {job.digest for job in scale.jobs(BY_NAME["garnet-reward"])}
    assert reward == {job.digest for job in scale.jobs(BY_NAME["garnet-reward-iterations"])}
    assert reward < {job.digest for job in scale.jobs(BY_NAME["garnet-baselines"])}


def test_settings_are_plain_json():
    assert json.loads(json.dumps(JOB.settings)) == JOB.settings
    assert len(JOB.digest) == 32
