"""The CUDA path under Numba's simulator, against the compiled CPU: every operator, algorithm and kind of memory.

The simulator runs the kernels' source as Python, one thread at a time, so the cases are small. What it cannot show
(that the source compiles for a GPU, and how fast it is) the benchmarks show on a machine that has one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, assert_close, operator_of, problem_of
from gqlab.lab import execute
from gqlab.operators import OPERATORS

SIMULATED = """
import sys, warnings
warnings.filterwarnings("ignore", "overflow")  # random words are products modulo 2**64
sys.path.insert(0, "tests")
from engine.test_cuda import cases, numbers_of
import numpy as np
from gqlab.engine import cuda, cuda_kernels
memory = sys.argv[1]
if memory != "shared":
    cuda_kernels.MOST_SHARED_ARRAYS = cuda_kernels.MOST_SHARED_TABLES = 0
if memory == "global":
    cuda_kernels.MOST_LOCAL = 0
if memory == "split":
    cuda.free_memory = lambda: 3000
    cuda.LAUNCH_NUMBERS = 1  # a launch for each epoch
for result in cases("cuda"):
    print(*numbers_of(result))
"""


#: The members of the family that run on a GPU, with small parameters.
ETAS = gq.Decay(0.2), gq.Decay(0.1)
FAMILY = (
    gq.AveragedGreedyGQ(*ETAS), gq.SAGAGreedyGQ(*ETAS), gq.StreamingGreedyGQ(*ETAS, first=3),
    gq.STORMGreedyGQ(*ETAS), gq.SARAHGreedyGQ(*ETAS, batch_size=2), gq.NestedGreedyGQ(0.2, 0.1, 2, 2),
    gq.VRGreedyGQ(0.2, 0.1, 2, 50.0, 1.5, "all"), gq.VRGreedyGQ(0.2, 0.1, 2, 50.0, 2.0),
)  # fmt: skip


def cases(device: str) -> list[gq.RunResult]:
    """The same runs on any device."""
    results = []
    for vector in (VECTORS[6], *VECTORS[2:6]):
        problem = problem_of(vector)
        theta0 = np.full(problem.dim, 0.2 / np.sqrt(problem.dim))
        for algorithm in (
            gq.GreedyGQ(0.2, 0.1, 0.3),
            gq.VRGreedyGQ(0.2, 0.1, 1, 50.0),
            gq.VRGreedyGQ(0.2, 0.1, 7, 0.3),
        ):
            results.append(
                gq.run(problem, algorithm, 15, n_runs=2, seed=5, theta0=theta0, record_every=4, device=device)
            )
    problems = [problem_of(VECTORS[3]), problem_of(VECTORS[4])]
    grid = gq.grid(
        problems,
        [gq.GreedyGQ(0.2), *gq.vary(gq.VRGreedyGQ, batch_size=[3, 8])],
        10,
        n_runs=2,
        seeds=[0, 1],
        device=device,
    )
    vr = gq.VRGreedyGQ(batch_size=4)
    watch = [gq.Watch("gradient"), gq.Watch("mspbe", every=3), gq.Watch("reward", n_steps=3)]
    half = gq.run(problems[0], vr, 8, n_runs=3, device=device, watch=watch)
    resumed = gq.run(problems[0], vr, 16, resume=half, device=device)
    softmax = problem_of(VECTORS[6])
    ending = gq.Problem(softmax.mdp, softmax.features[..., :4], softmax.behavior, softmax.target)  # of a usual size
    decaying = gq.QRC(gq.Decay(0.3, 5, 0.5), gq.Decay(0.2, 7, 1.0), beta=0.5)
    others = [
        gq.run(ending, algorithm, 12, n_runs=2, device=device)
        for algorithm in (decaying, gq.ActorCritic(0.2, 0.1), gq.PolicyGradient(0.1, 2, 3))
    ]
    family = [gq.run(problems[0], algorithm, 15, n_runs=2, seed=5, device=device) for algorithm in FAMILY]
    half = [gq.run(problems[0], algorithm, 8, n_runs=2, seed=5, device=device) for algorithm in FAMILY]
    family += [gq.run(problems[0], a, 15, resume=h, device=device) for a, h in zip(FAMILY, half, strict=True)]
    mixed = gq.grid(problems, gq.SAGAGreedyGQ(*ETAS), 15, n_runs=2, device=device).results
    # An even number of samples: rows in shared memory are longer by one, which must not be kept.
    mdp = gq.garnet(seed=0)
    even = gq.run(gq.Problem(mdp, gq.random_features(mdp, dim=4)), gq.SAGAGreedyGQ(*ETAS), 15, n_runs=3, device=device)
    sizes = gq.grid(
        [problems[0], softmax], gq.GreedyGQ(0.2, 0.1), 10, n_runs=2, device=device
    ).results  # another A and d
    return [*results, *grid.results, resumed, *others, *family, *mixed, even, *sizes]


def numbers_of(result: gq.RunResult) -> np.ndarray:
    """All that a run gives, as one vector."""
    columns = [result.theta, result.omega, result.output, result.next_output, result.state, *result.memory.values()]
    columns += [column for seen in result.watched.values() for column in seen]
    return np.nan_to_num(np.concatenate([np.ravel(column) for column in columns]), nan=-7.0)


@pytest.mark.parametrize("memory", ["shared", "local", "global", pytest.param("split", marks=pytest.mark.long)])
def test_simulated_gpu_and_cpu_agree(memory):
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", SIMULATED, memory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    expected = cases("cpu")
    assert len(lines) == len(expected) == 15 + 12 + 1 + 3 + 2 * len(FAMILY) + 2 + 1 + 2
    for line, result in zip(lines, expected, strict=True):
        assert_close(np.array(line.split(), dtype=float), numbers_of(result), 1e-12)


def test_shared_memory_stays_within_what_every_gpu_has():
    assert cuda_limit("MOST_SHARED_ARRAYS") + cuda_limit("MOST_SHARED_TABLES") <= 48 << 10


def cuda_limit(name: str) -> int:
    source = (Path(gq.__file__).parent / "engine" / "cuda_kernels.py").read_text()
    [value] = re.findall(rf"^{name} = (\d+) << 10$", source, flags=re.M)
    return int(value) << 10


def test_all_operators_are_in_the_cases():
    used = {type(operator_of(v["target"])) for v in (VECTORS[6], *VECTORS[2:6])}
    assert used == set(OPERATORS)


def test_without_a_gpu_there_is_one_clear_line(garnet_problem, monkeypatch):
    from numba import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"^device 'cuda': no CUDA GPU, or no driver for it, was found$"):
        gq.run(garnet_problem, gq.GreedyGQ(), 10, n_runs=1, device="cuda")


def test_a_numpy_that_numba_cuda_does_not_know_is_named(monkeypatch):
    from numba import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.delattr(np, "row_stack", raising=False)
    with pytest.raises(
        ValueError, match=r"numba-cuda does not work with NumPy .*, which has no row_stack; pip install"
    ):
        execute.load_cuda()
