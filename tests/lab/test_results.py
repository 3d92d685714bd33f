"""Saving and loading."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import gqlab as gq
from gqlab.support.files import write_arrays, write_whole


@pytest.fixture
def result(garnet_problem):
    return gq.run(garnet_problem, gq.VRGreedyGQ(batch_size=50), 500, n_runs=3, seed=11)


def test_a_loaded_result_is_the_saved_one(tmp_path, result, garnet_problem):
    result.save(tmp_path / "r.npz")
    back = gq.RunResult.load(tmp_path / "r.npz")
    for name in ("theta", "omega", "output", "samples", "state", "next_output", "diverged"):
        assert np.array_equal(getattr(back, name), getattr(result, name))
    assert back.metadata == result.metadata
    assert back.algorithm == gq.VRGreedyGQ(batch_size=50)
    assert back.metadata["problem"] == garnet_problem.fingerprint
    assert back.metadata["seed"] == 11
    assert set(back.metadata["versions"]) == {"gqlab", "numpy", "numba", "python"}


def test_a_result_knows_its_problem_and_a_loaded_one_is_given_it_again(tmp_path, result, garnet_problem):
    assert result.problem is garnet_problem  # itself, no copy
    result.save(tmp_path / "r.npz")
    alone = gq.RunResult.load(tmp_path / "r.npz")
    assert alone.problem is None
    wanted = (garnet_problem.exact.gradient(result.theta) ** 2).sum(axis=-1).ravel()
    for back in (alone.with_problem(garnet_problem), gq.RunResult.load(tmp_path / "r.npz", problem=garnet_problem)):
        assert back.problem is garnet_problem
        assert back.to_dataframe("gradient").gradient.tolist() == wanted.tolist()
    assert alone.with_problem(garnet_problem).theta is alone.theta  # the arrays are shared
    message = r"^problem is Problem\(.*\), which is not the one of this result$"
    with pytest.raises(ValueError, match=message):
        alone.with_problem(gq.baird())
    with pytest.raises(ValueError, match=message):
        gq.RunResult.load(tmp_path / "r.npz", problem=gq.baird())
    with pytest.raises(ValueError, match=r"^problem is 3, expected a Problem$"):
        alone.with_problem(3)
    resumed = gq.run(garnet_problem, result.algorithm, n_samples=600, resume=alone)
    assert resumed.problem is garnet_problem


def test_the_name_is_exactly_the_given_one_and_nothing_else_is_left(tmp_path, result):
    result.save(tmp_path / "plain-name")
    assert [p.name for p in tmp_path.iterdir()] == ["plain-name"]


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04broken"])
def test_a_file_that_is_not_one_is_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.npz is not a result that gqlab saved"):
        gq.RunResult.load(path)


def test_another_npz_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", theta=np.zeros(3))
    with pytest.raises(ValueError, match="not a result that gqlab saved"):
        gq.RunResult.load(tmp_path / "other.npz")


def test_a_pickle_is_never_opened(tmp_path, result):
    arrays = {name: getattr(result, name) for name in ("theta", "omega")}
    np.savez(tmp_path / "evil.npz", metadata=np.array([object()], dtype=object), **arrays)
    with pytest.raises(ValueError, match="not a result that gqlab saved"):
        gq.RunResult.load(tmp_path / "evil.npz")


def test_a_missing_file_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        gq.RunResult.load(tmp_path / "none.npz")


def test_a_failed_write_changes_nothing(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def fail(file):
        file.write(b"half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_whole(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_fingerprints_tell_problems_apart(garnet_problem):
    mdp, phi = garnet_problem.mdp, garnet_problem.features
    others = [
        gq.Problem(mdp, phi, target=gq.Softmax(2.0)),
        gq.Problem(mdp, phi, target=gq.Mellowmax(1.0)),
        gq.Problem(mdp, 0.5 * phi),
        gq.Problem(mdp, phi, target=gq.FixedPolicy(np.full((5, 3), 1 / 3))),
        gq.Problem(gq.garnet(seed=1), phi),
        gq.Problem(gq.FiniteMDP(mdp.transition, mdp.reward, 0.9), phi),
    ]
    prints = {p.fingerprint for p in [garnet_problem, *others]}
    assert len(prints) == 7
    assert gq.Problem(mdp, phi.copy()).fingerprint == garnet_problem.fingerprint


def rewritten(tmp_path, result, **changes):
    """The file of ``result`` with some arrays replaced."""
    result.save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as file:
        content = {**file, **changes}
    del content["digest"]
    write_arrays(tmp_path / "changed.npz", content)
    return tmp_path / "changed.npz"


@pytest.mark.parametrize(
    "changes",
    [
        {"updates": np.array([0, 95])},
        {"updates": np.array([0.0, 500.0])},
        {"updates": np.array([], dtype=int)},
        {"output": np.zeros((3, 2))},
        {"theta": np.zeros((3, 2))},
        {"theta": np.zeros((3, 2, 4), dtype=np.float32)},
        {"diverged_at": np.array([0.5, 1, 2])},
        {"state": np.zeros(3)},
        {"metadata": np.array("[1, 2]")},
        {"metadata": np.array('{"format": "gqlab run result 1"}')},
        {"metadata": np.array("not json")},
    ],
    ids=lambda c: "-".join(f"{k}{np.shape(v)}" for k, v in c.items()),
)
def test_a_file_that_was_tampered_with_is_refused(tmp_path, result, changes):
    with pytest.raises(ValueError, match=r"changed\.npz is not a result that gqlab saved"):
        gq.RunResult.load(rewritten(tmp_path, result, **changes))


def first_format(path, result):
    """``result`` as the first release wrote it: no watches, nothing kept."""
    result.save(path)
    with np.load(path) as file:
        content = {name: array for name, array in file.items() if "/" not in name and name != "digest"}
    metadata = json.loads(str(content.pop("metadata")))
    del metadata["watch"]
    np.savez(path, metadata=np.array(json.dumps({**metadata, "format": "gqlab run result 1"})), **content)


@pytest.mark.parametrize("algorithm", [gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=50)], ids=lambda a: type(a).__name__)
def test_a_file_of_the_first_format_is_read_and_resumed_bit_for_bit(tmp_path, garnet_problem, algorithm):
    half, whole = (gq.run(garnet_problem, algorithm, n, n_runs=3, record_every=70) for n in (250, 500))
    first_format(tmp_path / "first.npz", half)
    back = gq.RunResult.load(tmp_path / "first.npz")
    assert back.watched == {}
    resumed = gq.run(garnet_problem, algorithm, 500, resume=back)
    for name in ("theta", "omega", "updates", "samples", "output", "output_update", "state", "next_output"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name)), name
    resumed.save(tmp_path / "second.npz")
    with np.load(tmp_path / "second.npz") as file:
        assert json.loads(str(file["metadata"]))["format"] == "gqlab run result 2"


@pytest.mark.parametrize("form", ["gqlab run result 3", "another program", None], ids=str)
def test_another_format_says_so(tmp_path, result, form):
    metadata = np.array(json.dumps({**result.metadata, "format": form}))
    with pytest.raises(ValueError, match=r"changed\.npz is not a result that gqlab saved \(another format\)"):
        gq.RunResult.load(rewritten(tmp_path, result, metadata=metadata))


def test_a_plain_array_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(ValueError, match="not a result that gqlab saved"):
        gq.RunResult.load(tmp_path / "array.npy")


def test_a_state_that_the_problem_does_not_have_is_refused(tmp_path, result, garnet_problem):
    odd = dataclasses.replace(result, state=np.full(3, 77, dtype=np.uint32))
    with pytest.raises(ValueError, match=r"npz is not a result that gqlab saved \(state\[0\] is 77, expected 0 … 4"):
        gq.RunResult.load(rewritten(tmp_path, result, state=odd.state))
    odd = dataclasses.replace(odd, metadata={k: v for k, v in odd.metadata.items() if k != "sizes"})
    with pytest.raises(ValueError, match="resume: that result has a state that the problem does not have"):
        gq.run(garnet_problem, gq.VRGreedyGQ(batch_size=50), 600, resume=odd)


def test_fingerprints_see_behaviour_terminal_states_and_starts(garnet_problem):
    mdp, phi = garnet_problem.mdp, garnet_problem.features
    P, r = mdp.transition, mdp.reward
    skewed = np.tile([0.5, 0.25, 0.25], (5, 1))
    last = np.arange(5) == 4
    starts = [0.5, 0.5, 0, 0, 0], [0.25, 0.25, 0.25, 0.25, 0]
    problems = [
        garnet_problem,
        gq.Problem(mdp, phi, behavior=skewed),
        *(gq.Problem(gq.FiniteMDP(P, r, 0.95, last, start), phi) for start in starts),
        gq.Problem(gq.FiniteMDP(P, r, 0.95, None, starts[0]), phi),
    ]
    assert len({p.fingerprint for p in problems}) == 5


def test_a_saved_file_can_be_read_by_others(tmp_path, result):
    (tmp_path / "ordinary").write_bytes(b"")
    result.save(tmp_path / "r.npz")
    assert (tmp_path / "r.npz").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
