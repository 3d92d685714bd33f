"""Models of logs whose actions are text: they answer with labels, in memory and from their files."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.messy_logs import COLUMNS, messy, write_csv

import gqlab as gq

LOG = messy([6, 5, 7], [True, True, False])


@pytest.fixture(scope="module")
def data():
    return gq.Transitions.from_dataframe(LOG, COLUMNS)


@pytest.fixture(scope="module")
def model(data):
    return gq.fit(data, gq.Identity(), gq.FittedQ(), discount=0.9)


def test_a_model_answers_with_labels(model, data, tmp_path):
    rows = data.to_chunk().observations
    assert model.action_labels == ('a "lot"', "none", "ten")
    model.save(tmp_path / "model.npz")
    for one in (model, gq.LinearQ.load(tmp_path / "model.npz")):
        actions, _ = one.predict(rows)
        assert [one.action_labels.index(action) for action in actions] == one.q(rows).argmax(axis=1).tolist()
        assert one.best(rows).tolist() == one.q(rows).argmax(axis=1).tolist()
        single, _ = one.predict(rows[0])
        assert (type(single), single) == (str, actions[0])
        random, _ = one.predict(rows, deterministic=False, seed=1)
        assert set(random) <= set(one.action_labels)
        assert one.schema == data.schema


def test_a_model_of_numbers_answers_with_numbers(data):
    plain = gq.LinearQ(np.zeros((2, 2)), gq.Identity().fit([[0.0], [1.0]]))
    assert plain.action_labels is None
    assert plain.predict([0.5]) == (0, None)
    assert type(plain.predict([0.5])[0]) is int


def test_another_file_is_read_like_the_model(model, data, tmp_path):
    model.save(tmp_path / "model.npz")
    few = LOG[:6].assign(region="east", order="ten")
    again = gq.Transitions.from_csv(
        write_csv(few, tmp_path / "few.csv"), COLUMNS, like=gq.LinearQ.load(tmp_path / "model.npz")
    )
    assert again.schema == data.schema
    assert len(model.predict(again.to_chunk().observations)[0]) == 6


def test_labels_that_do_not_fit_the_weights_are_refused():
    with pytest.raises(ValueError, match="metadata has 2 labels of actions, and theta 3 actions"):
        gq.LinearQ(np.zeros((3, 2)), gq.Identity().fit([[0.0], [1.0]]), metadata={"action_labels": ["a", "b"]})
    with pytest.raises(ValueError, match="action_labels is 'ab', expected a list of texts"):
        gq.LinearQ(np.zeros((2, 2)), gq.Identity().fit([[0.0], [1.0]]), metadata={"action_labels": "ab"})
