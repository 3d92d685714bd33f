"""Fits whose rows are shared among workers: parts of files, maps and sums, and what goes wrong on the way."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import gqlab as gq
from gqlab.algorithms import LSPI
from gqlab.cli.main import main
from gqlab.data import parquet, parts
from gqlab.data.assemble import arrays_of
from gqlab.learn.fit import part_tasks, shared_fit
from gqlab.learn.fit.fit import fit
from gqlab.tasks import Processes, Ray, Threads

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

A, GAMMA = 2, 0.9
TILES = gq.TileCoder(2, 3, low=-1, high=1).fit(np.zeros((1, 2)))
K = TILES.n_features_out_
VR = gq.WholeDataVRGreedyGQ(0.2, 0.1, epoch_updates=250)


def rows(n, explicit):
    """Rows that follow each other, in episodes of 7 and 11, some of them cut off; or rows with their next one."""
    t = np.arange(n)
    x = np.stack([np.sin(t), np.cos(0.7 * t)], axis=1)
    out = {"obs_0": x[:, 0], "obs_1": x[:, 1], "action": t % 3 % A, "reward": np.sin(3 * t)}
    if explicit:
        out |= {"next_obs_0": np.roll(x[:, 0], -1), "next_obs_1": np.roll(x[:, 1], -1)}
    return out | {"terminated": t % 7 == 6, "truncated": (t % 11 == 10) & (t % 7 != 6) | ((t == n - 1) & (t % 7 != 6))}


def write(folder, n=1003, explicit=False):
    """Three files of row groups of 40 rows."""
    table = pa.table(rows(n, explicit))
    for k, (first, last) in enumerate(zip([0, 300, 301], [300, 301, n], strict=True)):
        pq.write_table(table.slice(first, last - first), folder / f"part-{k}.parquet", row_group_size=40)
    return gq.Transitions.from_parquet(str(folder), n_actions=A)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Pieces of three row groups, and parts of two pieces, where a file does not end before."""
    monkeypatch.setattr(parts, "PIECE_ROWS", 100)
    monkeypatch.setattr(parts, "MOST_PARTS", 5)
    monkeypatch.setattr(shared_fit, "LEAST_DRAWN", 40)


@pytest.fixture
def data(tmp_path):
    return write(tmp_path)


def read(data, some):
    """For each of some parts its transitions, as arrays by name."""
    return [
        {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in arrays_of(chunks[0])}
        for chunks in ([*parts.chunks_of(data._source, part)] for part in some)
    ]


def found_pieces(data):
    files = data._source
    return read(data, [piece for part in parts.parts_of(files) for piece in parts.pieces_of(files, part, 100)])


def assert_whole(data, found):
    """One behind the other, they are the files."""
    whole = arrays_of(data.to_chunk())
    for name in set(whole) - {"episode"}:
        np.testing.assert_array_equal(np.concatenate([part[name] for part in found]), whole[name])


@pytest.mark.parametrize("explicit", [False, True], ids=["consecutive", "explicit"])
def test_parts_one_behind_the_other_are_the_files(tmp_path, explicit):
    data = write(tmp_path, explicit=explicit)
    found, pieces = read(data, parts.parts_of(data._source)), found_pieces(data)
    assert (len(found), len(pieces)) == (2 + 1 + 3, 3 + 1 + 6)
    assert_whole(data, found)
    assert_whole(data, pieces)


@pytest.mark.parametrize("every", [1, 3, 7, 64])
def test_a_first_look_picks_every_so_many_th_row_of_all_files(tmp_path, monkeypatch, every):
    """Whatever part, piece or batch of rows it lies in."""
    monkeypatch.setattr(parquet, "BATCH_BYTES", 600)
    data = write(tmp_path, explicit=True)
    shared = {"files": data._source, "piece_rows": 100}
    looks = [part_tasks.look(shared, part, every) for part in parts.parts_of(data._source)]
    picked = np.concatenate([row["observations"] for look in looks for row in look.rows])
    np.testing.assert_array_equal(picked, data.to_chunk().observations[::every])
    assert sum(sum(look.counts) for look in looks) == data.n_rows


def test_a_last_observation_alone_is_lent_to_the_part_before(tmp_path):
    """RLDS: a row with ``is_last`` is no transition; here every part but the first begins with one."""
    t = np.arange(400)
    columns = {"observation": np.sin(t), "action": t % A, "reward": 1.0 * t}
    columns |= {"is_last": (t % 100 == 0) & (t > 0) | (t == 399), "is_terminal": t == 200}
    pq.write_table(pa.table(columns), tmp_path / "one.parquet", row_group_size=50)
    data = gq.Transitions.from_parquet(str(tmp_path))
    assert_whole(data, found_pieces(data))


# --- What is learned ------------------------------------------------------------------------------------------------


def phi(observations, actions):
    """φ(s, a), (n, A, K)."""
    out = np.zeros((len(observations), A, K))
    out[np.arange(len(actions)), actions] = TILES.transform(observations).toarray()
    return out


def pseudo_gradients(rows, theta, omega):
    """G_x and H_x of rows, in plain NumPy, for the greedy target: (n, A, K) each."""
    first, n = phi(rows["observations"], rows["actions"]), len(rows["actions"])
    x = TILES.transform(rows["next_observations"]).toarray()
    best = (x @ theta.T).argmax(axis=1)
    after = np.zeros((n, A, K))
    after[np.arange(n), best] = x
    gamma = GAMMA * ~rows["terminated"]
    delta = rows["rewards"] + gamma * (after * theta).sum(axis=(1, 2)) - (first * theta).sum(axis=(1, 2))
    along = (first * omega).sum(axis=(1, 2))
    column = (slice(None), None, None)
    return -delta[column] * first + (gamma * along)[column] * after, (along - delta)[column] * first


def vr_greedy_gq(found, M, n_passes, seed):
    """Algorithm 1 with all rows as the batch, and inner steps along rows drawn as the documents say."""
    theta, omega = np.zeros((2, A, K))
    counts = np.array([len(part["actions"]) for part in found])
    whole = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    size = max(-(-M // len(counts)), 40)
    for k in range(1, n_passes + 1):
        theta_tilde, omega_tilde = theta, omega
        G, H = (values.mean(axis=0) for values in pseudo_gradients(whole, theta, omega))
        random, n_draws = np.random.default_rng([seed, k]), -(-M // size)
        places = (random.random() + random.permutation(n_draws)) / n_draws * counts.sum()
        for j, place in enumerate(places):
            part = int(np.flatnonzero(place < np.cumsum(counts))[0])
            draw, taken = np.random.default_rng([seed, k, j]), min(size, M - j * size)
            picks = np.sort(draw.integers(counts[part], size=taken))
            for row in picks[draw.permutation(taken)]:
                one = {name: values[row : row + 1] for name, values in found[part].items()}
                new, old = pseudo_gradients(one, theta, omega), pseudo_gradients(one, theta_tilde, omega_tilde)
                theta, omega = theta - 0.2 * (new[0] - old[0] + G)[0], omega - 0.1 * (new[1] - old[1] + H)[0]
    return theta


def test_variance_reduction_is_algorithm_1_with_all_rows_as_the_batch(data):
    model = fit(data, TILES, VR, discount=GAMMA, n_passes=3, seed=5, engine=Threads(1))
    np.testing.assert_allclose(model.theta, vr_greedy_gq(found_pieces(data), 250, 3, 5), atol=1e-10)
    assert model.history["updates"].tolist() == [0, 250, 500, 750]
    assert model.history["q_bound"][-1] == pytest.approx(np.abs(np.sin(3 * np.arange(1003))).max() / 0.1, rel=1e-3)


def assert_same(model, other):
    np.testing.assert_array_equal(model.theta, other.theta)
    for name, values in other.history.items():
        np.testing.assert_array_equal(model.history[name], values)


@pytest.mark.long
def test_the_number_of_workers_changes_no_digit(data):
    """See also the killed worker, which is one of two."""
    for algorithm, passes, engines in (
        (VR, 2, (Threads(3), Processes(1), Processes(4))),
        (gq.LeastSquaresGreedyGQ(), None, (Threads(3), Processes(2))),
    ):
        alone = fit(data, TILES, algorithm, discount=GAMMA, n_passes=passes, engine=Threads(1))
        for engine in engines:
            assert_same(fit(data, TILES, algorithm, discount=GAMMA, n_passes=passes, engine=engine), alone)


@pytest.mark.long
def test_ray_changes_no_digit(data):
    pytest.importorskip("ray")
    shared = fit(data, TILES, VR, discount=GAMMA, n_passes=2, engine=Ray(workers=2))
    assert_same(shared, fit(data, TILES, VR, discount=GAMMA, n_passes=2, engine=Threads(1)))


@pytest.mark.parametrize("target", [gq.Greedy(), gq.Softmax(2.0)], ids=lambda t: type(t).__name__)
def test_least_squares_on_parts_are_those_on_all_rows(data, target):
    shared = fit(data, TILES, gq.LeastSquaresGreedyGQ(), target, discount=GAMMA, engine="threads")
    alone = fit(data, TILES, gq.LeastSquaresGreedyGQ(), target, discount=GAMMA)
    np.testing.assert_allclose(shared.theta, alone.theta, atol=1e-10)
    for name in ("mspbe", "gradient", "max_q", "q_bound"):
        np.testing.assert_allclose(shared.history[name], alone.history[name], rtol=1e-6, atol=1e-10)


def test_rows_that_are_sent_ahead_come_in_their_order(data):
    shared = fit(data, TILES, gq.QRC(0.1, 0.1), n_passes=2, engine=Threads(3))
    np.testing.assert_array_equal(shared.theta, fit(data, TILES, gq.QRC(0.1, 0.1), n_passes=2).theta)


# --- What goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_killed_worker_changes_nothing(data):
    class Killing(Processes):
        submitted = 0

        def submit(self, task):
            super().submit(task)
            self.submitted += 1
            if self.submitted in (3, 17):
                process = next(iter(next(iter(self._pools.values()))._processes.values()))
                os.kill(process.pid, signal.SIGKILL)

    engine = Killing(2)
    model = fit(data, TILES, VR, discount=GAMMA, n_passes=2, engine=engine)
    assert engine.submitted >= 6 + 2 * (6 + 7)
    assert_same(model, fit(data, TILES, VR, discount=GAMMA, n_passes=2, engine=Threads(1)))


class Changing(Threads):
    """Calls a function before a task is taken, once."""

    def __init__(self, before, change):
        super().__init__(2)
        self.left, self.change = before, change

    def submit(self, task):
        self.left -= 1
        if self.left == 0:
            self.change()
        super().submit(task)


def test_a_file_that_goes_away_gets_one_line_and_the_checkpoint_stays(data, tmp_path):
    """Six parts: a first look, then six and seven tasks for each epoch."""
    file, kept = tmp_path / "part-2.parquet", tmp_path / "passes.npz"
    content = file.read_bytes()
    middle = content[: len(content) // 2] + bytes(64) + content[len(content) // 2 + 64 :]
    for change, message in (
        (file.unlink, "^path: .*part-2.parquet is not there$"),
        (lambda: file.write_bytes(content[:500]), "^path: .*part-2.parquet is not a Parquet file, or is damaged: "),
        (
            lambda: pq.write_table(pa.table(rows(90, False)), file),
            "^path: .*part-2.parquet has changed: it had 702 rows",
        ),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            fit(data, TILES, VR, n_passes=4, checkpoint=kept, engine=Changing(6 + 13 + 3, change))
        assert kept.exists()
    file.write_bytes(content)
    again = fit(data, TILES, VR, n_passes=4, checkpoint=kept, engine="threads")
    whole = fit(data, TILES, VR, n_passes=4, engine="threads")
    np.testing.assert_array_equal(again.theta, whole.theta)
    np.testing.assert_array_equal(again.history["mspbe"], whole.history["mspbe"])
    file.write_bytes(middle)
    with pytest.raises(ValueError, match="part-2"):
        fit(data, TILES, VR, engine="threads")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"algorithm": LSPI()},
            "^algorithm is LSPI.* needs all rows of a log in memory at once: gqlab.fit with an engine",
        ),
        (
            {"algorithm": gq.VRGreedyGQ()},
            "as a batch: .* not offer that; WholeDataVRGreedyGQ takes all rows as its batch$",
        ),
        ({"rows": "shuffled"}, "rows is 'shuffled', but WholeDataVRGreedyGQ draws its rows from all the data"),
        ({"rows": "shuffled", "algorithm": gq.GreedyGQ()}, "rows is 'shuffled', but files are read as they stand"),
        ({"engine": "dask"}, "engine is 'dask'"),
        ({"engine": "processes", "target": lambda x: x}, "target: engine 'processes' cannot send it to a process"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_bad_input_gets_one_message(data, arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        fit(**{"data": data, "encoder": TILES, "algorithm": VR, "engine": "threads", **arguments})
    assert "\n" not in str(error.value)


def test_data_in_memory_have_no_parts(data):
    with pytest.raises(ValueError, match="engine: workers share Parquet files as they stand, and data is in memory"):
        fit(data.load(), TILES, VR, engine="threads")


def test_the_command_shares_the_files(data, tmp_path, capsys):
    line = ["fit", str(tmp_path), "--encoder", "tiles:2,bins=3,low=-1/-1,high=1/1", "--batch-size", "250"]
    line += ["--algorithm", "WholeDataVRGreedyGQ"]
    out = tmp_path / "out"
    main([*line, "--passes", "2", "--engine", "threads", "--workers", "2", "--out", str(out)])
    assert "After 500 updates: J " in capsys.readouterr().out
    algorithm = gq.WholeDataVRGreedyGQ(0.1, 0.1, epoch_updates=250)
    shared = fit(data, TILES, algorithm, n_passes=2, engine="threads")
    np.testing.assert_array_equal(gq.LinearQ.load(out / "model.npz").theta, shared.theta)
    with pytest.raises(SystemExit) as end:
        main([*line, "--workers", "2", "--out", str(out)])
    assert end.value.code == 2
    assert "workers is 2, but there is no engine" in capsys.readouterr().err


def test_workers_share_parquet_files_as_they_stand(data, tmp_path):
    """What one process does to the rows on the way is not done by workers, each of which sees a part."""
    expected = "engine: workers share Parquet files as they stand, and data is .*: to_parquet writes one"
    for other in (
        data.load(),
        data.split()[0],
        gq.Transitions.from_parquet(str(tmp_path), n_actions=A, ends="truncated"),
    ):
        with pytest.raises(ValueError, match=expected):
            gq.fit(other, gq.TileCoder(2, 3), gq.QRC(0.1, 0.1), engine="threads")
