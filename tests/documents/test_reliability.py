"""What hostile calls, terminals and interruptions once broke."""

from __future__ import annotations

import copy
import enum
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli import main as cli
from gqlab.support import checks
from gqlab.support.files import check_writable, clear_parts, write_whole
from gqlab.support.progress import Silent, progress_bar
from gqlab.theory.inputs import RANGES
from helpers.refusals import refused

MDP = gq.garnet(4, 2, 2, seed=3)
PHI = gq.random_features(MDP, 3, seed=1)
PROBLEM = gq.Problem(MDP, PHI)
GREEDY = gq.Problem(MDP, PHI, target=gq.Greedy())


class Two(enum.IntEnum):
    TWO = 2


# --- Numbers that are none ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize(
    "target", [gq.Greedy(), gq.EpsilonGreedy(), gq.Softmax(1.0), gq.FixedPolicy(np.full((4, 2), 0.5))], ids=repr
)
def test_no_policy_reward_or_value_of_a_theta_that_is_not_finite(target, bad):
    problem = gq.Problem(MDP, PHI, target=target)
    for function in (
        problem.policy, problem.exact.value, problem.exact.average_reward, problem.exact.mspbe, problem.exact.q,
        lambda theta: gq.sampled_reward(problem, theta),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^theta\[1\] is (nan|inf), expected a finite number$"):
            function([0.0, bad, 0.0])


CASES = {
    "policy too large": (lambda: gq.Problem(MDP, 9 * PHI).policy([1e308] * 3), "theta is too large"),
    "mspbe too large": (lambda: PROBLEM.exact.mspbe([1e308] * 3), "theta: the result overflows"),
    "update_error result": (lambda: gq.update_error("r.npz"), "result is 'r.npz', expected a RunResult"),
    "sampled_reward problem": (lambda: gq.sampled_reward(None, [0]), "problem is None, expected a Problem"),
    "analyse problem": (lambda: gq.theory.analyse(5, gq.VRGreedyGQ(radius=1.0)), "problem is 5, expected a Problem"),
    "steps problem": (lambda: gq.theory.step_sizes("p", 10, radius=1.0), "problem is 'p', expected a Problem"),
    "edge problem": (lambda: gq.theory.mean_dynamics_step_sizes({}), "problem is {}, expected a Problem"),
    "sharp": (lambda: gq.theory.best_steps(None, "interior", batch_size=1, n_epochs=1, start=(1, 1)), "c is None, expected what gqlab.theory.sharp_constants"),
    "huge number": (lambda: gq.GreedyGQ(eta_theta=10**400), "eta_theta is 10000"),
    "huge entry": (lambda: PROBLEM.policy([10**400, 0, 0]), "theta is not an array of numbers"),
    "huge count": (lambda: gq.update_error(gq.run(PROBLEM, gq.GreedyGQ(), 5, n_runs=1), n_draws=2**70), "n_draws is 1180591620717411303424"),
    "complex": (lambda: PROBLEM.policy([1j, 0, 0]), "theta is not an array of numbers, but of complex128"),
    "complex features": (lambda: gq.Problem(MDP, PHI + 0j), "features is not an array of numbers, but of complex128"),
    "dates": (lambda: PROBLEM.policy(np.array(["2020"] * 3, "M8[D]")), "theta is not an array of numbers, but of datetime64[D]"),
    "masked": (lambda: PROBLEM.policy(np.ma.array([1.0, 2, 3], mask=[0, 1, 0])), "theta has masked entries"),
    "array device": (lambda: gq.run(PROBLEM, gq.GreedyGQ(), 5, device=np.array([["cpu"] * 40] * 40)), "device is array([['cpu',"),
    "array dtype": (lambda: gq.run(PROBLEM, gq.GreedyGQ(), 5, dtype=np.array(["float64"])), "dtype is array(['float64']"),
    "float16": (lambda: gq.run(PROBLEM, gq.GreedyGQ(), 5, dtype=np.float16), "dtype is 'float16', expected one of 'float64', 'float32'"),
    "single radius": (lambda: gq.run(PROBLEM, gq.GreedyGQ(radius=1e-60), 5, dtype="float32"), "radius is too small for float32"),
    "single eta_omega": (lambda: gq.run(PROBLEM, gq.GreedyGQ(0.1, 1e-60), 5, dtype="float32"), "eta_omega is too small for float32"),
    "single beta": (lambda: gq.run(PROBLEM, gq.QRC(beta=1e-60), 5, dtype="float32"), "beta is too small for float32"),
    "single kappa": (
        lambda: gq.run(gq.Problem(MDP, PHI, target=gq.Mellowmax(1e-60)), gq.GreedyGQ(), 5, dtype="float32"),
        "kappa is too small for float32",
    ),
    "single sigma": (
        lambda: gq.run(gq.Problem(MDP, PHI, target=gq.Softmax(1e60)), gq.GreedyGQ(), 5, dtype="float32"),
        "sigma is too large for float32",
    ),
    "garnet without memory": (lambda: gq.garnet(10**9), "n_states is 1000000000: that needs"),
    "features without memory": (lambda: gq.random_features(MDP, 10**15), "dim is 1000000000000000: that needs"),
    "trajectory without memory": (lambda: gq.trajectory(PROBLEM, 10**15), "n_samples is 1000000000000000: that needs"),
    "indices without memory": (lambda: gq.check.batch_indices(gq.VRGreedyGQ(), 10**15), "n_samples is 1000000000000000: that needs"),
    "runs without memory": (lambda: gq.run(PROBLEM, gq.GreedyGQ(), 5, n_runs=10**15), "for n_runs = 1000000000000000, more than"),
    "batch without memory": (
        lambda: gq.run(PROBLEM, gq.VRGreedyGQ(batch_size=2**32 - 1), 2**40, n_runs=1, record_every=2**40, threads=1000),
        "algorithm is VRGreedyGQ(eta_theta=0.02, eta_omega=0.01, batch_size=4294967295, radius=inf): that needs",
    ),
    "steps that diverge": (
        lambda: gq.check.greedy_gq_steps(PROBLEM, gq.GreedyGQ(1e200, 1e200), [0] * 3, [0] * 3, gq.trajectory(PROBLEM, 50)),
        "]: the update overflows",
    ),
    "an epoch that diverges": (
        lambda: gq.check.svrg_epoch(PROBLEM, gq.VRGreedyGQ(1e200, 1e200), [1] * 3, [1] * 3, gq.trajectory(PROBLEM, 9), [0, 1] * 9),
        "]: the update overflows",
    ),
    "pseudo-gradient": (lambda: gq.check.pseudo_gradient(PROBLEM, [1e308] * 3, [1e308] * 3, (0, 0, 1)), "theta and omega are too large"),
    "operator shape": (lambda: gq.Softmax().policy(3.0), "q has shape (), expected (..., A)"),
    "operator NaN": (lambda: gq.Greedy().policy([0.0, math.nan]), "q[1] is nan, expected a finite number"),
    "operator fit": (lambda: gq.Softmax().curvature([1.0, 2.0], [1.0, 2.0, 3.0]), "q has shape (2,) and v has shape (3,)"),
    "table fit": (lambda: gq.FixedPolicy([[0.5, 0.5]]).policy([[1.0, 2.0, 3.0]]), "q has shape (1, 3), expected (..., 1, 2)"),
    "text for a number": (lambda: gq.Softmax("1.0"), "sigma is '1.0', expected a number"),
    "sweep of nothing": (lambda: gq.vary(5), "kind is 5, expected the class of an algorithm"),
    "sweep of another": (lambda: gq.vary(gq.GreedyGQ, eta=[1.0]), "eta is not a parameter of GreedyGQ"),
    "grid of nothing": (lambda: gq.grid(5, gq.GreedyGQ()), "problems[0] is 5, expected a Problem"),
    "radius of the theory": (lambda: gq.theory.sharp_constants(PROBLEM, 1e100), "radius is 1e+100, expected a finite number at least"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_message(case):
    call, message = case
    with refused(message):
        call()


def test_what_is_right_in_another_form_is_taken(garnet_problem):
    assert np.array_equal(gq.Softmax(2.0).policy([[0, 1]]), gq.Softmax(2.0).policy(np.array([[0.0, 1.0]])))
    plain = gq.run(PROBLEM, gq.GreedyGQ(), 20, n_runs=2)
    for dtype in (np.dtype("float64"), np.float64, float, "float64"):
        assert np.array_equal(gq.run(PROBLEM, gq.GreedyGQ(), 20, n_runs=Two.TWO, dtype=dtype).theta, plain.theta)
    assert gq.run(garnet_problem, gq.GreedyGQ(), 20, n_runs=2, dtype=np.float32).theta.dtype == np.float32
    assert type(checks.integer("n", Two.TWO, least=0)) is int
    assert np.array_equal(gq.trajectory(PROBLEM, Two.TWO), gq.trajectory(PROBLEM, 2))


# --- What stays closed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])  # noqa: S301
def test_a_copied_problem_cannot_be_changed(copied):
    table = gq.FixedPolicy(np.full((4, 2), 0.5))
    problem = gq.Problem(MDP, PHI, target=table)
    problem.exact.mspbe(np.zeros(3))
    again = copied(problem)
    arrays = [
        again.features, again.behavior, again.mdp.transition, again.mdp.reward, again.mdp.discount, again.mdp.terminal,
        again.target.table, again.exact.stationary, again.exact.moments.C, again.exact.transitions.phi,
    ]  # fmt: skip
    assert not any(array.flags.writeable for array in arrays)
    assert again.fingerprint == problem.fingerprint


# --- Without stderr, and in a narrow terminal -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def without_stderr():
    """Runs Python with stderr closed, where SciPy itself can be imported so: with NumPy 2.0 it cannot."""

    def run(*arguments):
        command = ["sh", "-c", '"$0" "$@" 2>&-', sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    if run("-c", "import scipy.sparse").returncode:
        pytest.skip("SciPy cannot be imported without stderr")
    return run


@pytest.mark.parametrize("wanted", [None, True])
def test_no_bar_is_drawn_without_stderr(wanted, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar(wanted, total=3) as bar:
        assert isinstance(bar, Silent)
        bar.set_postfix_str("return 1")
        bar.update(3)


@pytest.mark.parametrize(
    ("arguments", "status", "out"), [("--version", 0, f"gqlab {gq.__version__}\n"), ("health x", 2, "")]
)
def test_a_command_needs_no_stderr(without_stderr, arguments, status, out):
    """What would go to stderr goes nowhere: print(file=None) would write it to stdout."""
    done = without_stderr("-m", "gqlab", *arguments.split())
    assert (done.returncode, done.stdout) == (status, out)


@pytest.mark.parametrize("progress", [None, True])
def test_a_run_needs_no_stderr(without_stderr, progress):
    code = f"""
import sys
assert sys.stderr is None
import gqlab as gq
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
print(gq.run(problem, gq.GreedyGQ(), 50, n_runs=2, progress={progress}).theta.shape)
"""
    done = without_stderr("-c", code)
    assert (done.returncode, done.stdout) == (0, "(2, 2, 4)\n")


@pytest.mark.parametrize("columns", [1, 2, 5, 6, 20, 39, 80])
def test_help_ends_in_a_terminal_of_any_width(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as end:
        cli.main(["theory", "--help"])
    assert end.value.code == 0
    assert "--eta-theta" in capsys.readouterr().out
    assert os.environ["COLUMNS"] == str(columns)


# --- gqlab theory beyond all ranges ---------------------------------------------------------------------------------

EXTREMES = [
    "--radius 1e100", "--eta-theta 1e160", "--eta-omega 1e-160", "--eta-omega 1e-320", f"--n-epochs 1{'0' * 310}",
    "--radius nan", "--epsilon 1e-300", "--radius-omega 1e300", "--algorithm greedy-gq --eta-omega 1e-320",
]  # fmt: skip


@pytest.mark.parametrize("options", EXTREMES, ids=lambda options: options[:50])
def test_a_value_out_of_range_is_one_line(capsys, options):
    with pytest.raises(SystemExit) as end:
        cli.main(["theory", "garnet", *options.split(), "--json"])
    printed = capsys.readouterr()
    assert (end.value.code, printed.out) == (2, "")
    assert re.fullmatch(
        r"gqlab: (radius|eta_theta|eta_omega|n_epochs|epsilon|radius_omega) is .*, expected .*\n", printed.err
    )


@pytest.mark.parametrize("end", [0, 1], ids=["smallest", "largest"])
def test_the_ends_of_the_ranges_give_a_report_of_numbers(end):
    steps = {name: RANGES[name][end] for name in ("eta_theta", "eta_omega")}
    for radius in (100.0, 1e3):
        report = gq.theory.analyse(PROBLEM, gq.VRGreedyGQ(**steps, batch_size=10, radius=radius), n_epochs=2**63 - 1)
        assert "NaN" not in json.dumps(json.loads(report.to_json()))
        small = gq.theory.analyse_greedy(PROBLEM, gq.GreedyGQ(**steps, radius=radius), n_samples=2**62)
        assert "NaN" not in json.dumps(json.loads(small.to_json()))


# --- Half-written files ---------------------------------------------------------------------------------------------


def test_what_a_killed_process_left_is_cleared_wherever_it_wrote(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
from gqlab.support.files import write_whole
def die(file):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
write_whole(Path(sys.argv[1]), die)
"""
    path = tmp_path / "report [1].html"
    done = subprocess.run([sys.executable, "-c", code, str(path)], timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [p.suffix for p in tmp_path.iterdir()] == [".part"]
    write_whole(path, lambda file: file.write(b"whole"))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    subprocess.run([sys.executable, "-c", code, str(path)], timeout=300, check=False)
    check_writable(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_part_that_is_finished_while_it_is_looked_at_is_no_error(tmp_path, monkeypatch):
    """Another process renames its file between the listing and the look at it."""
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [folder / ".gone.npz.x.part"])
    clear_parts(tmp_path)


def test_rates_look_at_the_folder_before_they_compute(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gqlab.studies.study.make_call", lambda *_: pytest.fail("computed"))
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        cli.main(["rates", "--quick", "--out", str(tmp_path / "file" / "deeper")])
    assert "cannot write to the folder" in capsys.readouterr().err


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------

SETUP = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
import numpy as np, gqlab as gq
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
"""

LONG = {
    "sampled_reward": """
gq.sampled_reward(problem, np.zeros(4), n_steps=5)
print("go", flush=True)
gq.sampled_reward(problem, np.zeros((3, 4)), n_steps=2**31 - 1)
""",
    "update_error": """
result = gq.run(problem, gq.GreedyGQ(), 50, n_runs=2, record_every=10)
gq.update_error(result, n_draws=5)
print("go", flush=True)
gq.update_error(result, n_draws=2**31 - 1)
""",
    "policy gradient": """
large = gq.Problem(mdp, np.random.default_rng(0).random((5, 3, 70)))
gq.run(large, gq.PolicyGradient(n_trajectories=1, horizon=5), 5, n_runs=1)
print("go", flush=True)
gq.run(large, gq.PolicyGradient(n_trajectories=2**24 - 1, horizon=2**24 - 1), 2**48 - 1, n_runs=1, record_every=2**47)
""",
    "import": """
print("go", flush=True)
import gqlab.cli.main, matplotlib.pyplot
while True:
    pass
""",
}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, id=name, marks=[pytest.mark.long] * (name == "policy gradient"))
        for name, code in LONG.items()
    ],
)
def test_ctrl_c_ends_what_would_take_hours(code):
    """Not a time that is measured: without it the process would not end at all."""
    start = SETUP if "matplotlib" not in code else SETUP.partition("import numpy")[0]
    process = subprocess.Popen(
        [sys.executable, "-c", start + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "go\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    try:
        _, printed = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("it went on")
    assert process.returncode == -signal.SIGINT
    assert printed.rstrip().endswith("KeyboardInterrupt")
