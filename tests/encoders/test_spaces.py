"""Gymnasium's spaces as vectors."""

from __future__ import annotations

import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from gqlab.encoders import Flattener, discrete_actions

NESTED = spaces.Dict(
    {
        "b": spaces.Tuple([spaces.Discrete(3, start=2), spaces.Box(-1, 1, (2, 2))]),
        "a": spaces.Dict(z=spaces.MultiBinary(2), y=spaces.MultiDiscrete([2, 5], start=[0, 1])),
    }
)  # sorted, where a dict is given; in their order, where keywords are
CASES = {
    "box": (spaces.Box(-1, 2, (3,)), [-1] * 3, [2] * 3, False),
    "box of rank 2": (spaces.Box(-1, 2, (2, 2)), [-1] * 4, [2] * 4, False),
    "a box of one number": (spaces.Box(-1, 2, ()), [-1], [2], False),
    "bytes": (spaces.Box(0, 255, (2,), np.uint8), [0, 0], [255, 255], True),
    "unbounded": (spaces.Box(-np.inf, np.inf, (1,)), [-np.inf], [np.inf], False),
    "discrete": (spaces.Discrete(4), [0], [3], True),
    "discrete from -1": (spaces.Discrete(4, start=-1), [-1], [2], True),
    "multi-discrete": (spaces.MultiDiscrete([2, 5], start=[0, 1]), [0, 1], [1, 5], True),
    "multi-discrete of rank 2": (spaces.MultiDiscrete([[2, 5], [3, 4]]), [0] * 4, [1, 4, 2, 3], True),
    "multi-binary": (spaces.MultiBinary([2, 1]), [0, 0], [1, 1], True),
    "nested": (NESTED, [0, 0, 0, 1, 2, -1, -1, -1, -1], [1, 1, 1, 5, 4, 1, 1, 1, 1], [True] * 5 + [False] * 4),
}


@pytest.mark.parametrize("case", CASES)
def test_a_space_is_flattened_as_one_vector(case):
    space, low, high, whole = CASES[case]
    flat = Flattener(space)
    assert flat.size == len(low)
    np.testing.assert_array_equal(flat.low, np.array(low, float))
    np.testing.assert_array_equal(flat.high, np.array(high, float))
    np.testing.assert_array_equal(flat.whole, np.full(flat.size, whole))
    space.seed(0)
    samples = [space.sample() for _ in range(5)]
    rows = np.array([flat.flatten(x) for x in samples])
    assert rows.dtype == np.float64
    assert rows.shape == (5, flat.size)
    assert (rows >= flat.low).all()
    assert (rows <= flat.high).all()
    out = np.zeros(flat.size)
    for x, row in zip(samples, rows, strict=True):
        flat.write(x, out)
        np.testing.assert_array_equal(out, row)
    batch = gymnasium.vector.utils.concatenate(space, samples, gymnasium.vector.utils.create_empty_array(space, 5))
    np.testing.assert_array_equal(flat.flatten_batch(batch), rows)
    assert batch_space(space, 5).contains(batch)


def test_dicts_are_in_the_order_of_gymnasium():
    place = spaces.Dict({"b": spaces.Box(0, 1, (2,)), "a": spaces.Box(0, 1, (1,))})
    x = {"b": np.array([0.25, 0.5], np.float32), "a": np.array([0.75], np.float32)}
    np.testing.assert_array_equal(Flattener(place).flatten(x), spaces.flatten(place, x))


def test_what_a_flattener_gives_is_new():
    x = np.zeros(3)
    assert not np.shares_memory(Flattener(spaces.Box(-1, 1, (3,), np.float64)).flatten(x), x)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(5), "space is Text("),
        (spaces.Dict(a=spaces.Sequence(spaces.Discrete(2))), "space['a'] is Sequence("),
        (spaces.Tuple([spaces.Discrete(2), spaces.Graph(spaces.Discrete(2), None)]), "space[1] is Graph("),
        (3, "space is 3, expected Box, Discrete"),
        (spaces.Tuple([]), "space is Tuple(), which has no numbers"),
    ],
)
def test_other_spaces_are_refused(space, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        Flattener(space)


def test_observations_that_are_not_of_the_space_are_named():
    flat = Flattener(NESTED)
    good = NESTED.sample()
    for x, message in (
        ({**good, "b": (2, np.zeros(3))}, r"observation\['b'\]\[1\] has shape \(3,\), expected \(2, 2\)"),
        ({"b": good["b"]}, r"observation is .*, expected an entry 'a' in it"),
        ({**good, "b": (2,)}, r"observation\['b'\] is \(2,\), expected an entry 1 in it"),
        ([1, 2], r"observation is \[1, 2\], expected an entry 'a' in it"),
        ({**good, "b": ("two", good["b"][1])}, r"observation\['b'\]\[0\] is not an array of numbers"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            flat.flatten(x)
    with pytest.raises(ValueError, match=r"^observation has shape \(2, 4\), expected \(n, 3\)$"):
        Flattener(spaces.Box(-1, 1, (3,))).flatten_batch(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"^observation\[1\] has shape \(3,\), expected \(2\)$"):
        Flattener(spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])).flatten_batch(([0, 1], [0, 1, 1]))


def test_actions_are_counted_where_they_are_discrete():
    assert discrete_actions(spaces.Discrete(5)) == discrete_actions(spaces.Discrete(5, start=1)) == 5
    assert discrete_actions(spaces.MultiDiscrete([2, 3])) == 6
    with pytest.raises(ValueError, match=r"^space is Box\(.*: continuous actions are not supported, expected Discrete"):
        discrete_actions(spaces.Box(-1, 1, (1,)))
    with pytest.raises(ValueError, match=r"^space is MultiBinary\(.*: such actions are not supported"):
        discrete_actions(spaces.MultiBinary(3))
