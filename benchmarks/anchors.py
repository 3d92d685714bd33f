"""Hand-written kernels of the same algorithm, read from a folder of the user's and timed beside ours."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.cpu import GQ_STEP, VR_STEP
from benchmarks.gpu import VR_RATE
from benchmarks.problems import paper_garnet
from benchmarks.table import Table, best_of

N_RUNS, M, EPOCHS = 40, 3000, 33
#: The functions of vr.c.
KERNELS = {"vr_scalar": "C, scalar, one thread", "vr_lanes": "C, several runs together, one thread"}


def time_c(table: Table, folder: Path) -> None:
    """The scalar C kernel and the one that advances several runs together, on the same problem."""
    table.section("Hand-written C on the same problem (gcc -O3 -march=native -ffast-math)")
    if shutil.which("gcc") is None:
        table.note("gcc was not found")
        return
    problem = paper_garnet()
    mdp = problem.mdp
    columns = [np.cumsum(mdp.transition, axis=-1), mdp.reward, problem.features, np.zeros(4)]
    arrays = [np.ascontiguousarray(column, dtype=np.float64) for column in columns]
    out = np.zeros((N_RUNS, 4))
    with tempfile.TemporaryDirectory() as build:
        library = Path(build) / "vr.so"
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, str(folder / "vr.c"), "-o", str(library), "-lm"], check=True)
        loaded = ctypes.CDLL(str(library))
        for name, what in KERNELS.items():
            function = getattr(loaded, name)
            pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, out)]
            numbers = [ctypes.c_double(x) for x in (0.95, 0.02, 0.01, 100.0)]

            arguments = (*pointers[:4], N_RUNS, M, EPOCHS, *numbers, pointers[4])
            table.row(what, best_of(partial(function, *arguments), 5) / (N_RUNS * M * EPOCHS) * 1e9, "ns")
    fastest = min(KERNELS.values(), key=lambda what: table.figures[what])
    table.note(f"{'':<6}ours, against the fastest: VR {table.ratio(VR_STEP, fastest)}, "
               f"Greedy-GQ {table.ratio(GQ_STEP, fastest)} (VR)")  # fmt: skip


def time_gpu(table: Table, folder: Path) -> None:
    """The CUDA C and JAX kernels print their own figures; they need CuPy and JAX with a GPU."""
    if not any(name.startswith(VR_RATE) for name in table.figures):
        return
    table.section("Hand-written CUDA C (CuPy) and JAX on a Garnet(5,3,2,4), as they print it")
    for script, arguments in (("vr_cuda_cupy.py", []), ("vr_jax.py", ["135168", "2"])):
        command = [sys.executable, script, *arguments]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            table.note(f"{script}: not finished after 180 s")
            continue
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        for line in lines if done.returncode == 0 else lines[-1:]:
            table.note(f"{script}: {line}")
