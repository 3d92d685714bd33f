"""Splitting data by episodes: nothing is lost, nothing is in both parts, and files are split as memory is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gqlab as gq
from gqlab.data import parquet
from gqlab.data.assemble import arrays_of


def log(lengths, seed=0):
    """Episodes of these lengths, every number of which occurs once."""
    n = sum(lengths)
    episode = np.repeat(np.arange(len(lengths)), lengths)
    ends = np.append(np.diff(episode) != 0, True)
    x = np.random.default_rng(seed).random((n, 2))
    return gq.Transitions.from_arrays(x, np.arange(n) % 3, np.arange(n), x + 1, ends, episodes=episode)


def rows(chunk):
    return {name: array.tolist() for name, array in arrays_of(chunk).items()}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=12), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_every_row_is_in_one_part_with_its_whole_episode(lengths, share, seed):
    data = log(lengths)
    whole, parts = data.to_chunk(), [part.to_chunk() for part in data.split(share, seed)]
    assert sorted(np.concatenate([part.rewards for part in parts])) == list(range(sum(lengths)))
    assert not {int(whole.episode[int(r)]) for r in parts[0].rewards} & {
        int(whole.episode[int(r)]) for r in parts[1].rewards
    }
    for part in parts:
        picked = part.rewards.astype(int)
        assert (np.diff(picked) > 0).all()  # in their order
        for name, array in arrays_of(part).items():
            if name != "episode":
                np.testing.assert_array_equal(array, getattr(whole, name)[picked])
        np.testing.assert_array_equal(part.episode, np.unique(whole.episode[picked], return_inverse=True)[1])
    expected = min(max(round(share * len(lengths)), 1), len(lengths) - 1)
    assert parts[0].episode[-1] + 1 == expected


@pytest.mark.parametrize("at_a_time", [1, 3, 1000])
def test_files_are_split_as_memory_is_and_stay_where_they_are(tmp_path, monkeypatch, at_a_time):
    data = log([3, 1, 4, 1, 5, 9, 2, 6])
    data.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(parquet, "ROWS", at_a_time)
    files = gq.Transitions.from_parquet(tmp_path / "log.parquet")
    for of_files, of_memory in zip(files.split(0.4, 7), data.split(0.4, 7), strict=True):
        assert not of_files.in_memory
        assert of_memory.in_memory
        assert rows(of_files.to_chunk()) == rows(of_memory.to_chunk())
        assert of_files.fingerprint == of_memory.fingerprint == of_files.load().fingerprint
        assert (of_files.n_rows, of_files.n_actions, of_files.observation_size) == (of_memory.n_rows, 3, 2)
        firsts = [chunk.first_row for chunk in of_files.chunks()]
        assert firsts == list(np.cumsum([0, *(len(chunk) for chunk in of_files.chunks())])[:-1])
        of_files.to_parquet(tmp_path / "part.parquet")
        assert gq.Transitions.from_parquet(tmp_path / "part.parquet").fingerprint == of_memory.fingerprint
        again, _ = of_files.split()
        assert again.fingerprint == of_memory.split()[0].fingerprint


def test_the_same_seed_gives_the_same_parts_and_another_others():
    data = log([2] * 40)
    assert data.split(seed=3)[0].fingerprint == data.split(seed=3)[0].fingerprint
    assert data.split(seed=3)[0].fingerprint != data.split(seed=4)[0].fingerprint
    assert data.split()[0].description == "20 of 40 episodes of arrays"
    with pytest.raises(ValueError, match="read-only"):
        data.split()[0].to_chunk().rewards[0] = 1


def test_a_model_is_fitted_to_a_part_of_files_as_to_that_part(tmp_path):
    data = gq.collect("FrozenLake-v1", n_steps=600)
    data.to_parquet(tmp_path / "log.parquet")
    encoder = gq.OneHot(16)
    parts = [made.split(0.3)[0] for made in (data, gq.Transitions.from_parquet(tmp_path / "log.parquet"))]
    one, other = (gq.fit(part, encoder, gq.FittedQ(), discount=0.9).theta for part in parts)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("share", "seed", "message"),
    [
        (0, 0, "share is 0, expected a finite number above 0 and below 1"),
        (1, 0, "share is 1, expected a finite number above 0 and below 1"),
        ("half", 0, "share is 'half', expected a number"),
        (0.5, -1, "seed is -1, expected at least 0"),
    ],
)
def test_bad_arguments(share, seed, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        log([1, 1]).split(share, seed)


def test_one_episode_is_not_cut_in_two():
    with pytest.raises(ValueError, match="split: the data are one episode, expected at least 2"):
        log([5]).split()


def test_files_that_have_grown_since(tmp_path):
    log([2, 2]).to_parquet(tmp_path / "log.parquet")
    part, _ = gq.Transitions.from_parquet(tmp_path / "log.parquet").split()
    log([2, 2, 2]).to_parquet(tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="data has changed: it had 2 episodes, and now has more"):
        part.to_chunk()
