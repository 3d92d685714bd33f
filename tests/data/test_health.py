"""The health of data: findings on made-up data with known answers, and on environments' own."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.data import Transitions, parquet
from gqlab.encoders.specs import encoder_from_text


def chain(n=4000, seed=0, n_actions=2, dim=2):
    """Independent rows of episodes of 10, each with its next observation: nothing is wrong with them."""
    random = np.random.default_rng(seed)
    observations = random.random((n + 1, dim))
    return {
        "observations": observations[:-1],
        "actions": random.integers(n_actions, size=n),
        "rewards": random.normal(size=n),
        "next_observations": observations[1:],
        "terminated": np.arange(n) % 20 == 19,
        "truncated": np.arange(n) % 20 == 9,
        "probabilities": np.full(n, 1 / n_actions),
    }


def found(name, encoder=None, **changes):
    return gq.health(Transitions.from_arrays(**{**chain(), **changes}), encoder)[name]


def test_data_with_nothing_wrong():
    report = gq.health(Transitions.from_arrays(**chain()), gq.Fourier(2), discount=0.5)
    assert {finding.level for finding in report.findings} == {"ok"}
    assert report.worst == "ok"
    values = {finding.name: finding.value for finding in report.findings}
    assert values["rows"] == 4000
    assert values["episodes"] == 400
    assert values["terminations"] == 200
    assert values["truncations"] == 200
    assert values["episode lengths"] == {"least": 10, "mean": 10.0, "most": 10}
    assert values["largest |Q|"] == np.abs(chain()["rewards"]).max() * 2
    assert values["actions"] == np.bincount(chain()["actions"]).tolist()


@pytest.mark.parametrize("at_a_time", [1, 7, 1000])
def test_the_chunks_do_not_matter(tmp_path, monkeypatch, at_a_time):
    chunk = gq.collect("CartPole-v1", n_steps=500, seed=3).to_chunk()
    following = chunk.next_observations.copy()
    following[[6, 20, 21, 300]] += 1  # rows that do not follow, one of them the last of a chunk of 7
    data = Transitions.from_arrays(
        chunk.observations, chunk.actions, chunk.rewards, following, chunk.terminated, chunk.truncated
    )
    assert gq.health(data)["next observations that do not follow"].value == 4
    data.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(parquet, "ROWS", at_a_time)
    encoder = gq.TileCoder(2, 3).fit(data.to_chunk().observations)
    whole = gq.health(data, encoder).to_dict()["findings"]
    parts = gq.health(Transitions.from_parquet(tmp_path / "log.parquet"), encoder).to_dict()["findings"]
    for a, b in zip(whole, parts, strict=True):
        assert a["level"] == b["level"]
        assert a["value"] == b["value"] or a["value"] == pytest.approx(b["value"], rel=1e-9, abs=1e-15)


# --- One thing wrong at a time ------------------------------------------------------------------------------------------


def test_ends():
    never = np.zeros(4000, bool)
    assert found("terminations", terminated=never).level == "warning"
    without = found("episodes without an end", truncated=never, terminated=never, episodes=np.arange(4000) // 100)
    assert (without.level, without.value) == ("note", 40)
    limit = found("truncations", terminated=np.arange(4000) % 20 == 19, truncated=never)
    assert limit.level == "warning"
    assert "200 of 200 episodes terminate after exactly 20 rows" in limit.meaning


def test_rows_that_are_left_out():
    data = Transitions.from_arrays([0, 1, 2, 3], [0, 1, 0, 1], [0, 0, 1, 0], truncated=[0, 1, 0, 1])
    assert gq.health(data)["rows left out"].value == 2


def test_rewards():
    assert found("rewards", rewards=np.zeros(4000)).level == "problem"
    assert found("rewards", rewards=np.ones(4000)).level == "note"
    assert found("rewards", rewards=np.arange(4000)).value == {"least": 0.0, "mean": 1999.5, "most": 3999.0}


def test_constant_columns():
    observations = chain()["observations"].copy()
    observations[:, 1] = 7
    assert found("constant columns", observations=observations).value == [1]
    assert found("constant columns", observations=np.ones((4000, 2))).level == "problem"


def test_next_observations_that_do_not_follow():
    following = chain()["next_observations"].copy()
    following[[0, 5, 9]] += 1  # row 9 ends an episode: nothing follows
    finding = found("next observations that do not follow", next_observations=following)
    assert (finding.level, finding.value) == ("warning", 2)
    shuffled = np.random.default_rng(0).permutation(4000)
    rows = {name: value[shuffled] for name, value in chain().items()}
    assert found("next observations that do not follow", **rows).level == "note"
    single = chain()["observations"].astype(np.float32).astype(np.float64)
    assert found("next observations that do not follow", observations=single).value == 0


def test_duplicated_rows():
    rows = {name: np.concatenate([value, value[:100]]) for name, value in chain().items()}
    assert found("duplicated rows", **rows).value == 100
    assert found("duplicated rows", **rows).level == "warning"
    lake = gq.health(gq.collect("FrozenLake-v1", n_steps=500))["duplicated rows"]
    chunk = gq.collect("FrozenLake-v1", n_steps=500).to_chunk()
    different = {(s, a, r, n) for s, a, r, n in zip(chunk.observations[:, 0], chunk.actions, chunk.rewards, chunk.next_observations[:, 0], strict=True)}  # fmt: skip
    assert (lake.level, lake.value) == ("ok", 500 - len(different))


def test_actions():
    assert found("actions", actions=np.zeros(4000, int)).level == "problem"
    never = found("actions", actions=np.arange(4000) % 2 * 2)
    assert (never.level, never.value) == ("problem", [2000, 0, 2000])
    rare = np.zeros(4000, int)
    rare[:20] = 1
    assert found("actions", actions=rare).level == "warning"


def test_behaviour_probabilities_and_importance_weights():
    assert found("behaviour probabilities", probabilities=None).level == "note"
    rows = chain()
    p = np.where(rows["actions"] == 0, 0.25, 0.75)
    data = Transitions.from_arrays(**{**rows, "probabilities": p})

    def target(observations):
        right = observations[:, 0]
        return np.stack([1 - right, right], axis=1)

    weights = target(rows["observations"])[np.arange(4000), rows["actions"]] / p
    expected = weights.sum() ** 2 / (weights**2).sum()
    assert gq.health(data, target=target)["effective sample size of the target"].value == pytest.approx(expected)


def test_a_table_is_a_target_where_the_observation_is_the_state():
    data = gq.collect("FrozenLake-v1", n_steps=1000)
    table = np.tile([0.7, 0.1, 0.1, 0.1], (16, 1))
    weights = np.where(data.to_chunk().actions == 0, 2.8, 0.4)
    expected = weights.sum() ** 2 / (weights**2).sum()
    report = gq.health(data, target=gq.FixedPolicy(table))
    assert report["effective sample size of the target"].value == pytest.approx(expected)


def test_correlated_rows_are_worth_less():
    """An autoregression with coefficient 0.9: n (1 − 0.9)/(1 + 0.9) independent rows. Batch means of √n rows: within 40 %."""
    random = np.random.default_rng(1)
    x = np.zeros(40_001)
    for t in range(40_000):
        x[t + 1] = 0.9 * x[t] + random.normal()
    data = Transitions.from_arrays(1e9 + x[:-1], random.integers(2, size=40_000), np.ones(40_000), 1e9 + x[1:])
    finding = gq.health(data)["effective sample size of the rows"]
    assert finding.value == pytest.approx(40_000 * 0.1 / 1.9, rel=0.4)
    assert "number 0 of the observation" in finding.meaning
    independent = gq.health(
        Transitions.from_arrays(
            random.random(40_000), random.integers(2, size=40_000), np.ones(40_000), np.ones(40_000)
        )
    )
    assert independent["effective sample size of the rows"].value > 30_000


# --- Rewards that are shifted -------------------------------------------------------------------------------------------


def moved(chunk, by, *, within):
    """Rewards of another row: rolled through all rows, or within episodes, where 0 takes the place of what is missing."""
    rewards = np.roll(chunk.rewards, by)
    if within:
        edge = np.diff(chunk.episode, prepend=-1) != 0 if by > 0 else np.append(np.diff(chunk.episode) != 0, True)
        rewards[edge] = 0
    return Transitions.from_arrays(
        chunk.observations,
        chunk.actions,
        rewards,
        chunk.next_observations,
        chunk.terminated,
        chunk.truncated,
        chunk.episode,
    )


def pump(rows):
    return np.where(rows[:, 1] >= 0, 2, 0)


ENVIRONMENTS = {
    "CartPole": ("CartPole-v1", None),
    "MountainCar": ("MountainCar-v0", None),
    "MountainCar, solved": ("MountainCar-v0", pump),
    "FrozenLake": ("FrozenLake-v1", None),
    "CliffWalking": ("CliffWalking-v1", None),
    "Blackjack": ("Blackjack-v1", None),
}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def log(request):
    return request.param, gq.collect(*ENVIRONMENTS[request.param], n_steps=10_000, seed=1).to_chunk()


def test_rewards_that_are_right_raise_no_alarm(log):
    assert gq.health(moved(log[1], 0, within=False))["shifted rewards"].level == "ok"


#: By environment: the shifts that data can tell. A reward that never changes stays what it is when it is rolled.
SEEN = {
    "CartPole": {(1, True)},
    "MountainCar": {(1, True)},
    "MountainCar, solved": {(1, True)},
    "FrozenLake": {(1, False), (-1, False), (-1, True)},
    "CliffWalking": {(1, False), (1, True), (-1, False), (-1, True)},
    "Blackjack": {(1, False), (-1, False)},
}


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("within", [False, True])
def test_rewards_that_are_shifted_raise_the_alarm_where_data_can_tell(log, by, within):
    finding = gq.health(moved(log[1], by, within=within))["shifted rewards"]
    assert (finding.level == "problem") == ((by, within) in SEEN[log[0]]), finding
    if finding.level == "problem":
        assert ("one row too late" in finding.meaning) == (by > 0)


def test_rewards_that_are_0_only_at_terminations_get_a_note():
    chunk = gq.collect("CartPole-v1", n_steps=2000).to_chunk()
    assert gq.health(moved(chunk, -1, within=True))["shifted rewards"].level == "note"


def test_all_rewards_lost_by_a_shift_are_a_problem():
    chunk = gq.collect("FrozenLake-v1", n_steps=2000).to_chunk()
    assert gq.health(moved(chunk, 1, within=True))["rewards"].level == "problem"


# --- What an encoder sees -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoder", [gq.TileCoder(3, 2, [0, 0], [1, 1]), gq.Fourier(1, [0, 0], [1, 1])], ids=["tiles", "fourier"]
)
def test_C_against_the_plain_mean(encoder):
    rows = chain(500)
    encoder.fit(rows["observations"])
    x = encoder.transform(rows["observations"])
    x = x.toarray() if hasattr(x, "toarray") else x
    K = x.shape[1]
    C = np.zeros((2 * K, 2 * K))
    for features, action in zip(x, rows["actions"], strict=True):
        phi = np.zeros(2 * K)
        phi[action * K : (action + 1) * K] = features
        C += np.outer(phi, phi) / 500
    values = np.linalg.eigvalsh(C)
    rank = np.linalg.matrix_rank(C, hermitian=True)
    report = gq.health(Transitions.from_arrays(**rows), encoder)
    assert report["rank of C"].value == rank
    least = values[-rank]
    assert report["smallest eigenvalue of C"].value == pytest.approx(least if rank == 2 * K else 0.0)
    assert report["condition of C"].value == pytest.approx(values[-1] / least, rel=1e-6)
    never = int((np.diag(C) == 0).sum())
    assert report["features never active"].value == never


def test_regions_where_an_action_was_never_tried():
    """Four states; in state 3 only action 0 was taken, so of 4 features 3 have seen both actions."""
    states = np.array([0, 1, 2, 3] * 50)
    actions = np.arange(200) // 4 % 2 * (states < 3)
    data = Transitions.from_arrays(states, actions, np.zeros(200), states)
    report = gq.health(data, gq.OneHot(4).fit(states[:, None]))
    assert report["features with every action tried"].value == 0.75
    assert report["features never active"].value == 1
    assert report["rank of C"].value == 7


def test_large_features_get_the_diagonal_only():
    report = gq.health(Transitions.from_arrays(**chain()), gq.TileCoder(8, 20, [0, 0], [1, 1]))
    assert report["diagonal of C"].level == "note"
    assert "rank of C" not in {finding.name for finding in report.findings}


def test_observations_outside_the_bounds():
    rows = chain()
    finding = found("observations outside the bounds", gq.Fourier(2, [0, 0], [0.5, 1]))
    assert finding.value == int((rows["observations"][:, 0] > 0.5).sum())
    assert finding.level == "warning"
    assert found("observations outside the bounds", gq.Fourier(2, [0, 0], [1, 1])).value == 0


# --- Reports and bad input ----------------------------------------------------------------------------------------------


def test_the_report_is_text_and_plain_values():
    report = gq.health(gq.collect("FrozenLake-v1", n_steps=500), gq.OneHot(16))
    text = str(report)
    assert text == report.table()
    for finding in report.findings:
        assert f"{finding.level:<8} {finding.name}: " in text
        assert finding.level in ("ok", "note", "warning", "problem")
        assert finding.meaning.endswith((".", ")"))
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["findings"][0]["name"] == "rows"


def test_the_report_of_the_page_is_what_its_code_prints(capsys):
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], {})  # noqa: S102 - the page's own code
    [printed] = re.findall(r"```text\n(.*?)```", page, re.S)
    assert capsys.readouterr().out == printed


def test_bad_input():
    data = Transitions.from_arrays(**chain(100))
    with pytest.raises(ValueError, match="data is 3, expected Transitions"):
        gq.health(3)
    with pytest.raises(ValueError, match="discount is 1, expected a finite number at least 0 and below 1"):
        gq.health(data, discount=1)
    with pytest.raises(ValueError, match="encoder is 3, expected one of"):
        gq.health(data, encoder=3)
    with pytest.raises(ValueError, match="encoder takes observations of 1 numbers, and those of data have 2"):
        gq.health(data, encoder=gq.Fourier(2).fit([[0.0], [1.0]]))
    with pytest.raises(ValueError, match=r"target is 3, expected a policy: a LinearQ, an Agent, a function"):
        gq.health(data, target=3)
    with pytest.raises(ValueError, match=r"target\(observations\) has shape \(2,\), expected probabilities \(100, 2\)"):
        gq.health(data, target=lambda observations: [0.5, 0.5])
    with pytest.raises(
        ValueError, match=r"target is FixedPolicy.*, a policy for observations of 1 numbers, expected 2"
    ):
        gq.health(data, target=gq.FixedPolicy(np.full((4, 2), 0.5)))
    lake = gq.collect("FrozenLake-v1", n_steps=100)
    with pytest.raises(ValueError, match=r"target: its table has the states 0, ..., 1, but observation \d+ is"):
        gq.health(lake, target=gq.FixedPolicy(np.full((2, 4), 0.25)))


# --- The command line -------------------------------------------------------------------------------------------------


def test_the_command_prints_the_table_and_json(tmp_path, capsys):
    path = tmp_path / "log.parquet"
    data = gq.collect("MountainCar-v0", n_steps=600)
    data.to_parquet(path)
    main(["health", str(path), "--encoder", "tiles:4,bins=4"])
    text = capsys.readouterr().out
    assert "rank of C" in text
    assert text.startswith(f"Health of Parquet: {path}")
    main(["health", str(path), "--json", "--discount", "0.5"])
    values = {f["name"]: f["value"] for f in json.loads(capsys.readouterr().out)["findings"]}
    assert values["largest |Q|"] == 2
    assert values["rows"] == 600


def test_names_of_files_cannot_write_to_the_terminal(tmp_path, capsys):
    name = "red \x1b[31m\u202e.parquet"
    gq.collect("MountainCar-v0", n_steps=60).to_parquet(tmp_path / name)
    main(["health", str(tmp_path / name)])
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "red \\x1b[31m\\u202e.parquet" in text


def test_the_command_maps_columns(tmp_path, capsys):
    import pandas as pd

    pd.DataFrame(
        {"x": [0.0, 1.0], "v": [0.0, 1.0], "lever": [0, 1], "reward": [0.0, 1.0], "done": [False, True]}
    ).to_parquet(tmp_path / "log.parquet")
    main(["health", str(tmp_path / "log.parquet"), "--column", "observation=x,v", "action=lever"])
    assert "observations of 2 numbers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.parquet"], "gqlab: path is 'no.parquet': there is no such file"),
        (
            ["no.parquet", "--encoder", "tile"],
            "gqlab: encoder is 'tile', expected one of tiles, fourier, rbf, onehot, identity",
        ),
        (["no.parquet", "--column", "action"], "gqlab: --column is 'action', expected ROLE=NAME, as in action=lever"),
    ],
)
def test_bad_commands_get_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        main(["health", *arguments])
    assert end.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(message)
    assert printed.count("\n") == 1


def test_encoders_as_text():
    tiles = encoder_from_text("tiles:16,bins=8/4,low=-1.5/0,high=1/1e2")
    assert (tiles.n_tilings, tiles.bins, tiles.low, tiles.high) == (16, [8, 4], [-1.5, 0], [1, 100.0])
    assert encoder_from_text("fourier:2,max_interactions=1").max_interactions == 1
    assert encoder_from_text("rbf:3,width=0.5").width == 0.5
    assert encoder_from_text("onehot:16").n_values == 16
    assert encoder_from_text("identity:no").bias is False
    assert encoder_from_text("tiles").n_tilings == gq.TileCoder().n_tilings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (3, "encoder is 3, expected text such as"),
        ("", "encoder is '', expected one of tiles"),
        ("tiles:", "encoder 'tiles:': '' is not a number"),
        ("tiles:x", "encoder 'tiles:x': 'x' is not a number"),
        ("tiles:8,8", "encoder 'tiles:8,8': '8' is not of the form KEY=VALUE"),
        (
            "tiles:8,tiles=8",
            "encoder 'tiles:8,tiles=8': 'tiles' is not one of n_tilings, bins, low, high, groups, hash_size",
        ),
        ("tiles:8,n_tilings=8", "encoder 'tiles:8,n_tilings=8': 'n_tilings' is not one of"),
        ("fourier:2,low=1/a", "encoder 'fourier:2,low=1/a': 'a' is not a number"),
    ],
)
def test_bad_texts(text, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - its beginning is compared
        encoder_from_text(text)
    assert str(error.value).startswith(message)


def test_no_finding_is_without_end(tmp_path):
    """One row: nothing divides by zero."""
    report = gq.health(Transitions.from_arrays([1.0], [0], [1.0], [2.0]), gq.Identity(scale=False))
    values = [finding.value for finding in report.findings if isinstance(finding.value, float)]
    assert all(math.isfinite(value) for value in values)
