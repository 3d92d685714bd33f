"""Results that no run gave, as files and in memory: nothing of them reaches compiled code."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys

import numpy as np
import pytest

import gqlab as gq
from gqlab.support.files import write_arrays

P = np.array([[[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], [[0.0, 0.5, 0.5]] * 3, [[0.0, 0.0, 1.0]] * 3])
PHI = np.random.default_rng(0).random((3, 3, 4))  # d = 4, A = 3: one of the usual sizes
LAST = np.array([False, False, True])
ALGORITHM = gq.GreedyGQ()


@pytest.fixture(scope="module")
def problem():
    return gq.Problem(gq.FiniteMDP(P, np.ones((3, 3)), 0.9, LAST, [0.5, 0.5, 0.0]), PHI)


@pytest.fixture(scope="module")
def result(problem):
    return gq.run(problem, ALGORITHM, 500, n_runs=3, record_every=250, watch=gq.Watch("mspbe"))


def array(name, change):
    """A result with one of its arrays changed."""
    return lambda r: dataclasses.replace(r, **{name: change(getattr(r, name).copy())})


def kept(name, change):
    return lambda r: dataclasses.replace(r, memory=r.memory | {name: change(r.memory[name].copy())})


def settings(**change):
    return lambda r: dataclasses.replace(r, metadata={**r.metadata, **change})


def at(index, value):
    def change(a):
        a[index] = value
        return a

    return change


def without_records(r):
    none = {name: getattr(r, name)[:, :0] for name in ("theta", "omega")}
    counts = {name: getattr(r, name)[:0] for name in ("samples", "updates", "gradient_evaluations")}
    return dataclasses.replace(r, **none, **counts, watched={"mspbe": gq.Watched(*np.zeros((3, 3, 0)))})


def one_feature(r):
    thin = {name: getattr(r, name)[..., :1] for name in ("theta", "omega", "output")}
    return dataclasses.replace(r, **thin, memory=r.memory | {"theta": r.memory["theta"][:, :1]})


CRAFTED = {
    "negative updates": array("updates", lambda a: -a),
    "updates that end below 0": array("updates", at(-1, -500)),
    "more updates than records": array("updates", at(-1, 2**47)),
    "one feature instead of four": one_feature,
    "one feature in memory": kept("theta", lambda a: a[:, :1]),
    "one run in memory": kept("theta", lambda a: a[:1]),
    "negative next_output": array("next_output", at(0, -1)),
    "next_output in the past": array("next_output", at(1, 499)),
    "next_output beyond all counts": array("next_output", at(1, 2**63 - 1)),
    "output_update after the end": array("output_update", at(0, 500)),
    "no output_update": array("output_update", at(0, -1)),
    "diverged after the end": array("diverged_at", at(0, 500)),
    "terminal state": array("state", at(0, 2)),
    "no such state": array("state", at(0, 3)),
    "record_every 0": settings(record_every=0),
    "record_every negative": settings(record_every=-250),
    "record_every true": settings(record_every=True),
    "record_every text": settings(record_every="250"),
    "no records": without_records,
    "no runs": lambda r: dataclasses.replace(r, theta=r.theta[:0], omega=r.omega[:0]),
    "NaN in theta": array("theta", at((0, -1, 0), math.nan)),
    "infinity in memory": kept("theta", at((0, 0), math.inf)),
    "infinity in output": array("output", at((0, 0), math.inf)),
    "other byte order": array("theta", lambda a: a.astype(">f8")),
    "whole numbers": array("theta", lambda a: a.astype(int)),
    "single precision": settings(dtype="float32"),
    "another precision": settings(dtype="float16"),
    "no precision": settings(dtype=None),
    "seed too large": settings(seed=2**64),
    "seed negative": settings(seed=-1),
    "seed text": settings(seed="0"),
    "n_samples text": settings(n_samples="many"),
    "no algorithm": settings(algorithm={"name": "Nothing"}),
    "algorithm with code": settings(algorithm={"name": "GreedyGQ", "eta_theta": "__import__('os')"}),
    "algorithm in depth": settings(algorithm={"name": "GreedyGQ", "eta_theta": {"eta": {"eta": 1}}}),
    "another number of samples": array("samples", at(-1, 499)),
    "another number of evaluations": array("gradient_evaluations", at(-1, 1)),
    "watch that was not": settings(watch=[]),
    "watch of nothing": settings(watch=[{"quantity": "nothing"}]),
    "watch without end": settings(watch=[{"quantity": "mspbe", "every": 0}]),
    "watch is a number": settings(watch=5),
    "watched too short": lambda r: dataclasses.replace(
        r, watched={"mspbe": gq.Watched(*(seen[:, :1] for seen in r.watched["mspbe"]))}
    ),
    "problem is a number": settings(problem=0),
    "no memory of the watch": lambda r: dataclasses.replace(r, memory={"theta": r.memory["theta"]}),
    "short memory of the watch": lambda r: dataclasses.replace(
        r, memory={name: a if name == "theta" else a[:, :0] for name, a in r.memory.items()}
    ),
    "memory of another type": lambda r: dataclasses.replace(
        r, memory={name: a if name == "theta" else a.astype(np.float32) for name, a in r.memory.items()}
    ),
}


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_a_result_that_was_changed_in_memory_is_not_resumed(problem, result, change):
    with pytest.raises(ValueError, match=r"^resume: ") as error:
        gq.run(problem, ALGORITHM, 1000, resume=change(result))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_a_file_with_the_same_content_is_not_loaded_or_not_resumed(tmp_path, problem, result, change):
    path = tmp_path / "crafted.npz"
    change(result).save(path)
    with pytest.raises(ValueError, match=r"^resume: |crafted\.npz is not a result that gqlab saved \(") as error:
        gq.run(problem, ALGORITHM, 1000, resume=gq.RunResult.load(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["theta", "updates", "state", "memory", "watched", "metadata"])
@pytest.mark.parametrize("value", [None, 5, "text", {}, []], ids=str)
def test_a_result_with_something_else_in_place_of_an_array_is_not_resumed(problem, result, name, value):
    with pytest.raises(ValueError, match=r"^resume: that result is not one of gqlab\.run's"):
        gq.run(problem, ALGORITHM, 1000, resume=dataclasses.replace(result, **{name: value}))


def test_what_was_not_changed_is_resumed(problem, result):
    whole = gq.run(problem, ALGORITHM, 1000, n_runs=3, record_every=250, watch=gq.Watch("mspbe"))
    # Views with gaps between their numbers are copied before compiled code reads them.
    strided = {name: np.repeat(getattr(result, name), 2, axis=0)[::2] for name in ("theta", "omega", "state", "output")}
    for half in (result, dataclasses.replace(result, **strided)):
        assert np.array_equal(gq.run(problem, ALGORITHM, 1000, resume=half).theta, whole.theta)


@pytest.mark.parametrize("depth", [100, 1000, 100_000])
def test_deep_json_is_refused(tmp_path, result, depth):
    result.save(tmp_path / "deep.npz")
    with np.load(tmp_path / "deep.npz") as file:
        content = {name: file[name] for name in file if name != "digest"}
    text = json.dumps({"format": "gqlab run result 2", **result.metadata})
    nested = text[:-1] + ', "seed": ' + "[" * depth + "]" * depth + "}"
    write_arrays(tmp_path / "deep.npz", content | {"metadata": np.array(nested)})
    with pytest.raises(ValueError, match=r"deep\.npz is not a result that gqlab saved"):
        gq.RunResult.load(tmp_path / "deep.npz")


@pytest.mark.parametrize("path", [0, 1, True, None, 2.5, b"r.npz", "", "r\0.npz", ["r.npz"]], ids=repr)
def test_a_path_is_text(result, path):
    """A number would be an open file: loading 1 closed stdout, and 0 waited for input."""
    for call in (gq.RunResult.load, result.save):
        with pytest.raises(ValueError, match=r"^path is .*, expected the name of a file$"):
            call(path)


def test_loading_a_number_leaves_the_standard_files_alone():
    code = """
import gqlab as gq
for k in (0, 1, 2):
    try:
        gq.RunResult.load(k)
    except ValueError:
        print("refused", k, flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input="", capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["refused", "0", "refused", "1", "refused", "2"], "")
