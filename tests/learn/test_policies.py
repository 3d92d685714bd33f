"""Every kind of policy in everything that takes one: the same probabilities give the same answers."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import gqlab as gq
from gqlab.learn.playing import play

# 400 rows of a lake hold little of what another policy does, and evaluating one on them says so.
pytestmark = pytest.mark.filterwarnings("ignore:the values of the policy move by")

LAKE = "FrozenLake-v1"
TABLE = np.random.default_rng(4).dirichlet(np.ones(4), 16)
WALK = gq.collect(LAKE, n_steps=400, seed=2).to_chunk()
LOG = gq.Transitions.from_arrays(
    WALK.observations, WALK.actions, np.sin(WALK.observations[:, 0] + WALK.actions), WALK.next_observations,
    terminated=WALK.terminated, episodes=WALK.episode, probabilities=WALK.probability, n_actions=4,
)  # fmt: skip


def looked_up(rows):
    return TABLE[rows[:, 0].astype(int)]


def model(target=None):
    """Q = log π, of which Softmax(1) makes π."""
    return gq.LinearQ(np.log(TABLE).T, gq.OneHot(16).fit([[0]]), gq.Softmax(1.0) if target is None else target)


def agent():
    made = gq.Agent(LAKE, gq.OneHot(), gq.GreedyGQ(), target=gq.Softmax(1.0))
    made._live.point.theta.u[:] = np.log(TABLE).T.ravel()
    return made


KINDS = {
    "function": lambda: looked_up,
    "FixedPolicy": lambda: gq.FixedPolicy(TABLE),
    "array": lambda: TABLE,
    "object": lambda: SimpleNamespace(probabilities=looked_up),
    "LinearQ": model,
    "LinearQ of a FixedPolicy": lambda: gq.LinearQ(np.zeros((4, 16)), gq.OneHot(16).fit([[0]]), gq.FixedPolicy(TABLE)),
    "its method": lambda: model().probabilities,
    "Agent": agent,
}


def fitted(policy):
    return gq.fit(LOG, gq.OneHot(16), gq.FittedQ(), target=policy, discount=0.9).theta


def healthy(policy):
    return gq.health(LOG, target=policy)["effective sample size of the target"].value


def weighed(policy):
    return gq.importance_sampling(LOG, policy, discount=0.9)


def collected(policy):
    chunk = gq.collect(LAKE, policy, n_steps=200, seed=3).to_chunk()
    return np.column_stack([chunk.observations, chunk.actions, chunk.probability])


def played(policy):
    return gq.evaluate(policy, LAKE, 20).lengths


def valued(policy):
    return gq.LinearQ(np.ones((4, 16)).cumsum(axis=0), gq.OneHot(16).fit([[0]])).value(np.c_[:16], policy)


TAKERS = [fitted, healthy, weighed, collected, played, valued]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "function"])
@pytest.mark.parametrize("takes", TAKERS, ids=[f.__name__ for f in TAKERS])
def test_whatever_takes_a_policy_takes_all_of_them(takes, kind):
    np.testing.assert_allclose(takes(KINDS[kind]()), takes(looked_up), rtol=1e-12)


def test_the_answers_are_those_of_the_policy():
    """By hand: none of the functions above gives the same for another policy."""
    other = TABLE[:, ::-1]
    for takes in TAKERS:
        assert not np.allclose(takes(other), takes(TABLE))
    np.testing.assert_allclose(valued(TABLE), TABLE @ [1, 2, 3, 4])
    chunk = LOG.to_chunk()
    rho = 4 * TABLE[chunk.observations[:, 0].astype(int), chunk.actions]
    assert healthy(TABLE) == pytest.approx(rho.sum() ** 2 / (rho**2).sum())


def test_a_film_shows_any_policy(tmp_path):
    """Its best actions: of a table the first of the most probable ones."""
    for kind in KINDS.values():
        policy = kind()
        found = play(policy, LAKE, 5, deterministic=True, seed=1)
        if kind is not KINDS["LinearQ of a FixedPolicy"]:  # whose best actions are those of its values
            greedy = play(lambda rows: looked_up(rows).argmax(axis=1), LAKE, 5, deterministic=True, seed=1)
            assert found.lengths.tolist() == greedy.lengths.tolist()


class Noted(gymnasium.Wrapper):
    """Keeps what was seen and done."""

    seen: list
    done: list

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        self.seen, self.done = [observation], []
        return observation, info

    def step(self, action):
        found = super().step(action)
        self.seen.append(found[0])
        self.done.append(action)
        return found


@pytest.mark.parametrize("target", [gq.Greedy(), gq.Softmax(0.5), gq.FixedPolicy(TABLE)])
def test_to_play_is_to_do_what_predict_says(target):
    asked, env = model(target), Noted(gymnasium.make(LAKE))
    asked.evaluate(env, 1, seed=3)
    assert env.done == [asked.predict(s)[0] for s in env.seen[:-1]]
    assert env.done == asked.predict(np.c_[env.seen[:-1]])[0].tolist()
    random = np.random.default_rng([3, 1])  # that of an evaluation with seed 3
    asked.evaluate(env, 1, deterministic=False, seed=3)
    assert env.done == [asked.draw(np.array([[s]], float), random)[0][0] for s in env.seen[:-1]]


def test_an_evaluation_without_a_seed_draws_from_the_targets_policy():
    """Of a FixedPolicy its rows, whatever Q is: the frequencies of 20,000 draws are within five standard deviations."""
    fixed = gq.LinearQ(np.zeros((4, 16)), gq.OneHot(16).fit([[0]]), gq.FixedPolicy(TABLE))
    actions, state = fixed.predict(np.full((20_000, 1), 7.0), deterministic=False, seed=1)
    assert state is None
    assert np.abs(np.bincount(actions, minlength=4) / 20_000 - TABLE[7]).max() < 5 * 0.5 / np.sqrt(20_000)
    np.testing.assert_array_equal(
        fixed.evaluate(LAKE, 20, deterministic=False).lengths, gq.evaluate(TABLE, LAKE, 20).lengths
    )


def test_a_model_of_anothers_values_says_that_it_has_no_policy():
    values = gq.fit(LOG, gq.OneHot(16), gq.FittedQ(), target=looked_up)
    for ask in (
        lambda: values.probabilities([3.0]),
        lambda: values.predict([3.0], deterministic=False),
        lambda: values.evaluate(LAKE, 2, deterministic=False),
        lambda: gq.collect(LAKE, values, n_steps=5),
        lambda: gq.evaluate(values, LAKE, 2),
    ):
        with pytest.raises(ValueError, match=r"^this model has the values of a policy, but not the policy itself: ask"):
            ask()
    assert values.value([3.0], looked_up) == pytest.approx(TABLE[3] @ values.q([3.0]))
    assert values.predict([3.0])[0] == values.q([3.0]).argmax()


def test_an_operator_is_a_policy_where_there_are_values():
    asked = model()
    q = asked.q([3.0])
    assert asked.value([3.0], gq.Greedy()) == q.max()
    assert asked.value([3.0], gq.EpsilonGreedy(0.4)) == pytest.approx(0.6 * q.max() + 0.4 * q.mean())
    for ask in (
        lambda: gq.importance_sampling(LOG, gq.Greedy()),
        lambda: gq.health(LOG, target=gq.Greedy()),
        lambda: gq.collect(LAKE, gq.Greedy(), n_steps=5),
        lambda: gq.evaluate(gq.Greedy(), LAKE, 5),
    ):
        with pytest.raises(
            ValueError, match=r"^(policy|target) is Greedy\(\), which makes a policy of action values; exp"
        ):
            ask()


def test_an_agents_policy_is_the_one_that_it_has_when_it_is_asked():
    made = agent()
    np.testing.assert_allclose(made.probabilities(np.c_[:16]), TABLE, rtol=1e-12)
    np.testing.assert_allclose(made.probabilities(3), TABLE[3], rtol=1e-12)
    assert made.best(np.c_[:16]).tolist() == TABLE.argmax(axis=1).tolist()
    before = made.snapshot()
    assert made.snapshot() is before
    made.learn(50)
    assert not np.array_equal(made.probabilities(np.c_[:16]), before.probabilities(np.c_[:16]))


# --- One order, one name ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", [model, agent])
@pytest.mark.parametrize("number", [20, 3.5, np.int64(7)])
def test_a_number_in_place_of_the_environment_gets_one_line(owner, number):
    with pytest.raises(
        ValueError, match=r"^env is .*, expected an environment: it comes first, evaluate\(env, n_episodes\)$"
    ):
        owner().evaluate(number)


def test_old_names_are_answered_with_the_new_ones():
    with pytest.raises(AttributeError, match=r"^LinearQ.policy is called LinearQ.probabilities now$"):
        model().policy  # noqa: B018 - the name is what is tried
    with pytest.raises(TypeError, match=r"^learn\(\): progress_bar is called progress now$"):
        agent().learn(5, progress_bar=True)


def test_what_is_no_policy_gets_one_line_everywhere():
    for ask in (
        lambda: model().value([3.0], policy=3),
        lambda: gq.fit(LOG, gq.OneHot(16), gq.FittedQ(), target=3),
        lambda: gq.health(LOG, target=3),
        lambda: gq.importance_sampling(LOG, 3),
        lambda: gq.collect(LAKE, 3, n_steps=5),
        lambda: gq.evaluate(3, LAKE, 2),
        lambda: gq.Agent(LAKE, gq.OneHot(), gq.GreedyGQ(), target=3),
        lambda: gq.LinearQ(np.zeros((4, 16)), gq.OneHot(16).fit([[0]]), 3),
    ):
        with pytest.raises(ValueError, match=r"^(policy|target) is 3, expected (a policy|an operator)") as error:
            ask()
        assert "\n" not in str(error.value)


def test_the_seed_of_a_draw_is_a_whole_number():
    for asked in (model(), agent()):
        with pytest.raises(ValueError, match=r"^seed is 0.5, expected a whole number$"):
            asked.predict([3], deterministic=False, seed=0.5)
        one, two = (asked.predict(np.c_[np.arange(16.0)], deterministic=False, seed=8)[0] for _ in range(2))
        assert one.tolist() == two.tolist()
