"""Minari's data sets: episodes with one observation more than actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gqlab.data.arrow import needed
from gqlab.data.spaces import spaces_of
from gqlab.support import checks
from gqlab.support.files import one_line


def _check_lengths(number: int, episode: Any, n_observations: int) -> None:
    """``ValueError`` where the parts of an episode do not belong together: joined, they would fit by chance."""
    n = len(episode.rewards)
    lengths = {
        "actions": (len(episode.actions), n), "observations": (n_observations, n + 1),
        "terminations": (len(episode.terminations), n), "truncations": (len(episode.truncations), n),
    }  # fmt: skip
    for name, (found, expected) in lengths.items():
        if found != expected:
            raise ValueError(f"dataset: episode {number} has {found} {name} for {n} rewards, expected {expected}")


def arrays_of_minari(dataset: Any) -> tuple[dict[str, Any], str]:
    """What ``Transitions.from_arrays`` takes, of all episodes one after the other, and the data set's name."""
    if isinstance(dataset, str):
        minari = needed("minari", "reading a Minari data set")
        try:
            dataset = minari.load_dataset(dataset)
        except Exception as error:  # whatever reading its folder raises
            raise ValueError(f"dataset is {checks.shown(dataset)}: {one_line(error)[:200]}") from None
    if not hasattr(dataset, "iterate_episodes") or not hasattr(dataset, "action_space"):
        raise ValueError(f"dataset is {checks.shown(dataset)}, expected a Minari data set or the name of one")
    n_actions, flat = spaces_of(dataset, "dataset")
    dtype = np.float32 if getattr(dataset.observation_space, "dtype", None) == np.float32 else np.float64
    parts: dict[str, list[Any]] = {}
    for number, episode in enumerate(dataset.iterate_episodes()):
        n = len(episode.rewards)
        observations = flat.flatten_batch(episode.observations).astype(dtype)
        _check_lengths(number, episode, len(observations))
        values = {
            "observations": observations[:-1], "next_observations": observations[1:],
            "actions": episode.actions, "rewards": episode.rewards,
            "terminated": episode.terminations, "truncated": episode.truncations, "episodes": np.full(n, number),
        }  # fmt: skip
        for name, value in values.items():
            parts.setdefault(name, []).append(value)
    if not parts:
        raise ValueError("dataset has no episodes, expected at least one")
    arrays: dict[str, Any] = {name: np.concatenate(values) for name, values in parts.items()}
    return {**arrays, "n_actions": n_actions}, str(getattr(getattr(dataset, "spec", None), "dataset_id", "data set"))
