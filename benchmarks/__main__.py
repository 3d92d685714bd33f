"""Print one table: this library, the same source in pure Python, other kernels and other libraries, in one run."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import numba
import numpy as np

from benchmarks import (
    anchors,
    cpu,
    data,
    decide,
    encoders,
    family,
    gpu,
    own_parts,
    passes,
    peers,
    solvers,
    sparse_fits,
    sweeps,
)
from benchmarks import scale as scale_benchmark
from benchmarks.table import Table


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--anchors", type=Path, metavar="PATH", help="a folder with vr.c and its companions, timed beside"
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=PATH", help=f"a checkout: {', '.join(peers.PEERS)}"
    )
    parser.add_argument("--quick", action="store_true", help="shorter runs, noisier figures")
    parser.add_argument(
        "--only",
        choices=(
            "steps",
            "family",
            "encoders",
            "data",
            "decide",
            "scale",
            "agents",
            "replay",
            "dqn",
            "presets",
            "sweeps",
            "passes",
            "sparse",
            "solvers",
            "gpu",
        ),
        help="the steps and what is compared with them, the family, the encoders, logged data, decisions, large problems, "
        "agents, agents that replay, curves of Stable-Baselines3's DQN (--peer sb3=PATH), presets with replay and without, sweeps, passes over files, fits on sparse features, fitted Q, or the GPU",
    )
    parser.add_argument("--curves", type=Path, default=Path("dqn.json"), help="the file for the curves of DQN")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the files of logged data")
    parser.add_argument("--million", action="store_true", help="large problems: one of a million states as well")
    parser.add_argument("--runs", type=int, default=50_000, help="runs of the large sweep; 1000000 takes minutes")
    options = parser.parse_args()
    try:
        chosen = peers.parse(options.peer)
        if options.anchors and not (options.anchors / "vr.c").is_file():
            raise ValueError(f"--anchors: no vr.c in {options.anchors}")
    except ValueError as error:
        sys.exit(f"benchmarks: {error}")
    scale = 0.2 if options.quick else 1.0
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, {processor()}\n")
    table = Table()
    if options.only in (None, "steps"):
        cpu.steps(table, scale)
        if options.anchors:
            anchors.time_c(table, options.anchors)
        own_parts.compare(table, scale)
        for name, path in chosen.items():
            peers.PEERS[name](table, path)
    if options.only is None:
        cpu.pure_python(table)
        cpu.library(table, scale)
        cpu.growth(table, scale)
        cpu.memory(table)
    if options.only in (None, "family"):
        family.costs(table, scale)
    if options.only in (None, "encoders"):
        encoders.costs(table, scale)
    if options.only in (None, "data"):
        data.costs(table, max(1000, int(options.rows * scale)))
    if options.only in (None, "decide"):
        decide.costs(table, max(2 * decide.BLOCK, int(options.rows * scale)))
    if options.only in (None, "scale"):
        scale_benchmark.costs(table, scale, options.million, chosen.get("mdp"))
    if options.only in (None, "agents"):
        from benchmarks import agents  # they need Gymnasium

        agents.costs(table, scale, chosen.get("sb3"))
    if options.only in (None, "replay"):
        from benchmarks import replay

        replay.costs(table, scale)
    if options.only == "dqn" and "sb3" in chosen:
        from benchmarks import dqn

        dqn.curves(table, chosen["sb3"], options.curves, scale)
    if options.only == "presets":
        from benchmarks import presets

        presets.costs(table)
    if options.only in (None, "passes"):
        passes.costs(table, max(2**17, int(options.rows * scale)))
    if options.only in (None, "sparse"):
        sparse_fits.costs(table, scale)
    if options.only in (None, "solvers"):
        solvers.costs(table)
    if options.only in (None, "sweeps"):
        sweeps.costs(table, scale, max(1000, int(options.runs * scale)))
    if options.only in (None, "gpu"):
        gpu.rates(table, scale)
        if options.anchors:
            anchors.time_gpu(table, options.anchors)


def processor() -> str:
    """What the machine calls its processor."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.is_file()
        else []
    )
    return f"{names[0]} ({len(names)} cores)" if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
