"""Settings from files, keywords of environments, files of the user's own, and the folders of runs."""

from __future__ import annotations

import json

import pytest

from gqlab.cli.commands import COMMANDS
from gqlab.cli.completion import arguments_of
from gqlab.cli.config_files import expanded
from gqlab.cli.env_options import EnvOptions, env_plan, typed_keywords
from gqlab.cli.fit import Fit
from gqlab.cli.main import main
from gqlab.cli.run_folder import run_folder
from gqlab.cli.train import Train, plan_of
from gqlab.grids.recipe import read_recipe
from gqlab.support.own_files import OwnCode
from gqlab.support.words import counted

TINY = ["--steps", "300", "--every", "300", "--episodes", "2", "--quiet"]

OWN = """
from dataclasses import dataclass
import numpy as np
import gqlab as gq

@dataclass(frozen=True)
class MyQRC(gq.QRC):
    beta: float = 2.0

def problem(seed):
    mdp = gq.garnet(seed=seed)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4))

fixed = problem(3)
number = 5
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A file of the user's own, in the folder where the command runs; its module's name is of this test alone."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"own_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(OWN)
    return path.name


def refused(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


# --- Keywords of environments -----------------------------------------------------------------------------------------


def test_keywords_are_typed_as_the_environment_wants_them():
    assert typed_keywords("FrozenLake-v1", ("is_slippery=False", "map_name=8x8")) == {
        "is_slippery": False,
        "map_name": "8x8",
    }
    assert typed_keywords("CartPole-v1", ("sutton_barto_reward=true",)) == {"sutton_barto_reward": True}
    found = typed_keywords("Pendulum-v1", ("g=9",))
    assert found == {"g": 9.0}
    assert type(found["g"]) is float


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "is_slipery=False",
            "FrozenLake-v1 has no is_slipery, expected any of render_mode, desc, map_name, is_slippery",
        ),
        ("is_slippery=8", "is_slippery is '8', expected true or false"),
        ("is_slippery", "expected KEY=VALUE"),
    ],
)
def test_a_wrong_keyword_is_one_line(given, message):
    with pytest.raises(ValueError, match=message):
        typed_keywords("FrozenLake-v1", (given,))


def test_wrappers_have_keywords_too():
    plan = env_plan("CartPole-v1", EnvOptions(wrappers=("TimeLimit:max_episode_steps=30", "FlattenObservation")))
    assert plan.wrappers == (("TimeLimit", {"max_episode_steps": 30}), ("FlattenObservation", {}))


def test_a_module_that_is_not_there_is_one_line(capsys):
    assert "No module named 'nowhere'" in refused(capsys, "train", "nowhere:Some-v0", *TINY)


def test_an_environment_of_a_file_is_learned_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two_doors.py").write_text(
        "import gymnasium\n"
        "class Doors(gymnasium.Env):\n"
        "    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return 0, {}\n"
        "    def step(self, action):\n"
        "        return 1, float(action), True, False, {}\n"
        "gymnasium.register('Doors-v0', Doors)\n"
    )
    main(["train", "two_doors.py:Doors-v0", *TINY])
    assert "Doors-v0: mean return 1.0 over 2 episodes after 300 steps" in capsys.readouterr().out


# --- Files of settings ------------------------------------------------------------------------------------------------


def test_a_file_of_settings_gives_what_the_command_line_does_not(tmp_path):
    path = tmp_path / "lake.toml"
    path.write_text(
        'env = "FrozenLake-v1"\nsteps = 2_000\nquiet = true\njson = false\ninitial-value = 1\neta = -0.5\n'
        'wrappers = ["FlattenObservation"]\n[env_kwargs]\nis_slippery = false\nmap_name = "8x8"\n'
    )
    given = expanded(["train", "--config", str(path), "--steps", "7"], COMMANDS["train"])
    assert given == [
        "train", "FrozenLake-v1", "--steps", "7", "--quiet", "--initial-value", "1", "--eta=-0.5",
        "--wrappers", "FlattenObservation", "--env-kwargs", "is_slippery=false", "map_name=8x8",
    ]  # fmt: skip
    assert expanded(["train", "Other-v0", f"--config={path}"], COMMANDS["train"])[1] == "Other-v0"
    assert expanded(["train", "Other-v0"], COMMANDS["train"]) == ["train", "Other-v0"]


def test_every_option_may_stand_in_a_file(tmp_path):
    path = tmp_path / "all.toml"
    for command in ("train", "fit"):
        for argument in arguments_of(COMMANDS[command], {}):
            name = argument.flag.removeprefix("--").removeprefix("no-")
            if name in ("code", "config", ""):
                continue
            value = "true" if argument.takes == "nothing" else "'1'"
            path.write_text(f"{name} = {value}\n")
            assert len(expanded([command, "x", "--config", str(path)], COMMANDS[command])) > 2 or name == "decide"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed = 3", r"x.toml: speed is unknown, expected any of env, "),
        ("code = ['a.py']", "x.toml: code is unknown"),
        ("steps = [1, 2]", r"steps is \[1, 2\], expected one value"),
        ("quiet = 1", "quiet is 1, expected true or false"),
        ("steps = ", "x.toml: this is not TOML"),
        ("env = 'os:Some-v0'", "env is 'os:Some-v0': a file cannot have a module imported"),
        ("algorithm = 'a.py:B'", "algorithm is 'a.py:B': no file has another one run; add --code a.py to the command"),
        ("steps = 2020-01-01", "steps is .*, expected text, a number"),
    ],
)
def test_what_no_file_may_say_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        expanded(["train", "CartPole-v1", "--config", str(path)], COMMANDS["train"])


def test_a_file_may_name_code_that_the_command_line_names(own, tmp_path):
    (tmp_path / "x.toml").write_text(f"algorithm = '{own}:MyQRC'\n")
    given = expanded(["train", "CartPole-v1", "--config", "x.toml", "--code", own], COMMANDS["train"])
    assert given[-2:] == ["--algorithm", f"{own}:MyQRC"]


# --- Algorithms, problems and operators of one's own ------------------------------------------------------------------


def test_train_and_fit_take_an_algorithm_of_a_file(own):
    from gqlab.cli.fit import algorithm_of

    made = plan_of(Train("CartPole-v1", algorithm=f"{own}:MyQRC", eta=0.5)).algorithm
    assert (type(made).__name__, made.beta, made.eta_theta) == ("MyQRC", 2.0, 0.5)
    assert algorithm_of(Fit(("log.csv",), algorithm=f"{own}:MyQRC"), 10).beta == 2.0
    with pytest.raises(ValueError, match="is 5, expected a class of algorithms"):
        plan_of(Train("CartPole-v1", algorithm=f"{own}:number"))


def test_the_theory_takes_a_problem_of_a_file(own, capsys):
    main(["theory", f"{own}:fixed", "--radius", "10", "--json"])
    assert json.loads(capsys.readouterr().out)["problem"].startswith("Problem(n_states=5")
    main(["theory", f"{own}:problem", "--seed", "2", "--radius", "10"])
    assert "expected a Problem or a function" in refused(capsys, "theory", f"{own}:number")
    assert "problem is 'lake', expected garnet, frozen-lake, or FILE.py:NAME" in refused(capsys, "theory", "lake")


SWEEP = """
n_samples = 300
n_runs = 2
seeds = [0]
[[problems]]
mdp = "{own}:problem"
seed = [1, 2]
[[problems]]
mdp = "{own}:fixed"
[[algorithms]]
name = "{own}:MyQRC"
eta_theta = [0.01, 0.02]
"""


def test_a_sweep_names_a_file_that_the_command_line_names(own, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.format(own=own))
    with pytest.raises(ValueError, match=r"problems\[0\]: mdp is .*: no file has another one run; add --code own_"):
        read_recipe(path)
    recipe = read_recipe(path, OwnCode((tmp_path / own,)))
    assert len(recipe.problems) == 3
    assert [type(one).__name__ for one in recipe.algorithms] == ["MyQRC", "MyQRC"]
    path.write_text(SWEEP.format(own=own).replace(":fixed", ":number"))
    with pytest.raises(ValueError, match="expected a Problem"):
        read_recipe(path, OwnCode((tmp_path / own,)))


# --- Folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_carries_what_distinguishes_a_run(tmp_path):
    def name(**options):
        return run_folder(tmp_path, "CartPole-v1", Train("CartPole-v1", **options)).name

    assert name() == name(steps=5, quiet=True, json=True, force=True, threshold=3.0) == "CartPole-v1"
    assert name(seed=1) == "CartPole-v1-seed-1"
    assert name(algorithm="QRC", replay=True) == "CartPole-v1-algorithm-QRC-replay"
    several = {name(env_kwargs=(f"x={k}", "map_name=8x8", "is_slippery=False"), encoder="tiles:16") for k in range(20)}
    assert len(several) == 20
    assert max(map(len, several)) <= 80


def test_another_seed_and_another_algorithm_have_folders_of_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--seed", "1"], ["--algorithm", "QLearning"]):
        main(["train", "FrozenLake-v1", *TINY, *more])
    first = (tmp_path / "results/train").iterdir()
    assert len(list(first)) == 3
    folder = ["--out", "one"]
    main(["train", "FrozenLake-v1", *TINY, *folder])
    line = refused(capsys, "train", "FrozenLake-v1", *TINY, *folder, "--seed", "1")
    assert line.endswith("start over with --force, or take another folder with --out")
    main(["train", "FrozenLake-v1", *TINY, *folder, "--seed", "1", "--force"])
    assert json.loads((tmp_path / "one/settings.json").read_text())["seed"] == 1


def test_one_thing_is_not_several():
    assert [counted(n, "problem") for n in (0, 1, 2)] == ["0 problems", "1 problem", "2 problems"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_no_none_and_every_flag_once(command, capsys):
    with pytest.raises(SystemExit) as end:
        main(["help", command])
    assert not end.value.code
    text = capsys.readouterr().out
    assert "{None" not in text
    assert "None}" not in text
    assert text.count(", --no-") == (command == "reproduce")  # its ice is slippery, or not
