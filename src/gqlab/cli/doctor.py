"""``gqlab doctor``: what is installed, what works, and how to get the rest."""

from __future__ import annotations

import os
import platform
import re
import shlex
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import numba
import numpy as np
import tyro

from gqlab.engine import code_folder, cpu
from gqlab.lab.execute import load_cuda
from gqlab.problems.features import random_features
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support.plain_json import print_json
from gqlab.version import __version__

#: What gqlab can do, and the packages that it needs for it. The first row is the core.
FEATURES = {
    "problems, exact quantities, runs": ("numpy", "scipy", "numba"),
    "command line": ("tyro",),
    "progress bars": ("tqdm",),
    "figures and reports": ("matplotlib",),
    "environments": ("gymnasium",),
    "encoders, agents, models": ("scikit-learn",),
    "logs in Parquet files and data frames": ("pyarrow",),
    "Minari's data sets": ("minari",),
    "TensorBoard's logs": ("tensorboard",),
    "results as data frames and data sets": ("pandas", "xarray"),
    "films of policies": ("pygame-ce", "pillow"),
    "sweeps on a Ray cluster": ("ray",),
    "GPU": ("numba-cuda",),
}
CORE = next(iter(FEATURES))


@dataclass(frozen=True)
class Package:
    """A package that a feature needs."""

    name: str
    wanted: str  # as pip reads it
    installed: str | None

    @property
    def is_enough(self) -> bool:
        """Whether it is installed, in a version that is new enough."""
        least = re.search(r">=([\d.]+)", self.wanted)
        return self.installed is not None and (least is None or _numbers(self.installed) >= _numbers(least[1]))


@dataclass(frozen=True)
class Feature:
    """One row of the answer."""

    name: str
    works: bool
    packages: tuple[Package, ...]
    problem: str  # "" where it works
    install: str  # the command that installs what is missing; "" if no package is


@dataclass(frozen=True)
class Diagnosis:
    """Everything that ``gqlab doctor`` found."""

    gqlab: str
    python: str
    platform: str
    cores: int
    cores_usable: int
    cache_folder: str | None
    cache_writable: bool
    cache_refused: tuple[str, ...]
    cache_bytes: int
    core_works: bool
    features: tuple[Feature, ...]


def _numbers(text: str) -> tuple[int, ...]:
    """The release numbers of a version, without suffixes such as rc1 in 2.0.0rc1."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _requirements() -> dict[str, str]:
    """What gqlab asks of each package, as pip reads it, by name."""
    try:
        texts = [text.partition(";")[0].strip() for text in requires("gqlab") or ()]
    except PackageNotFoundError:  # a source tree that was not installed
        texts = []
    named = [(re.split(r"[^\w.-]", text)[0], text) for text in texts]
    return dict(reversed(named))  # the first entry of a name counts


def _package(name: str, wanted: str) -> Package:
    try:
        return Package(name, wanted, version(name))
    except PackageNotFoundError:
        return Package(name, wanted, None)


def _feature(name: str, packages: tuple[Package, ...]) -> Feature:
    missing = [package for package in packages if not package.is_enough]
    wrong = [f"{p.name} is missing" if p.installed is None else f"{p.name} {p.installed} is too old" for p in missing]
    install = shlex.join(["pip", "install", *(package.wanted for package in missing)]) if missing else ""
    if not missing:
        wrong = [_fails(name)]
    problem = ", ".join(filter(None, wrong))
    return Feature(name, not problem, packages, problem, install)


def _fails(feature: str) -> str:
    """What is wrong although all packages are installed; "" if nothing is."""
    if feature == "GPU":
        try:
            load_cuda()
        except ValueError as error:
            return str(error).removeprefix("device 'cuda': ")
    return _core_fails() if feature == CORE else ""


def _core_fails() -> str:
    """Whether the compiler compiles, and ∇J is the slope of J on a small problem."""
    if numba.njit(lambda x: 2 * x + 1)(20) != 41:
        return "Numba compiles wrong code"
    mdp = garnet(seed=0)
    problem = Problem(mdp, random_features(mdp, dim=4, seed=0))
    theta, v, h = np.ones(4), np.array([1.0, -1.0, 0.5, 2.0]), 1e-5
    slope = (problem.exact.mspbe(theta + h * v) - problem.exact.mspbe(theta - h * v)) / (2 * h)
    error = abs(slope - v @ problem.exact.gradient(theta))
    return "" if error < 1e-8 else f"the exact gradient differs by {error:.1g} from the slope of J"


def _cache() -> tuple[Path | None, bool]:
    """The folder in which Numba keeps the code of the loop, and whether it can be written."""
    locator = getattr(getattr(getattr(cpu.advance_block, "_cache", None), "_impl", None), "locator", None)
    if locator is None:
        return None, False
    folder = Path(locator.get_cache_path())
    try:
        locator.ensure_cache_path()
    except OSError:
        return folder, False
    return folder, True


def diagnose() -> Diagnosis:
    """Examine everything; nothing is changed, except that the cache's folder is created."""
    wanted = _requirements()
    features = tuple(
        _feature(name, tuple(_package(package, wanted.get(package, package)) for package in packages))
        for name, packages in FEATURES.items()
    )
    folder, writable = _cache()
    affinity = getattr(os, "sched_getaffinity", None)
    cores = os.cpu_count() or 1
    return Diagnosis(
        gqlab=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        cores=cores,
        cores_usable=len(affinity(0)) if affinity else cores,
        cache_folder=None if folder is None else str(folder),
        cache_writable=writable,
        cache_refused=tuple(code_folder.refusals()),
        cache_bytes=sum(code_folder.size_of(path) for path in _kept()),
        core_works=features[0].works,
        features=features,
    )


def report(found: Diagnosis) -> str:
    """The answer for a terminal."""
    kept = f"compiled code is kept in {found.cache_folder} ({found.cache_bytes / 2**20:.0f} MiB in all)"
    if not found.cache_writable:
        kept = "compiled code is not kept: no folder for it can be written; NUMBA_CACHE_DIR names one"
    kept = "\n".join([kept, *(f"not used for compiled code: {why}" for why in found.cache_refused)])
    lines = [
        f"gqlab {found.gqlab}, Python {found.python}, {found.platform}, {found.cores_usable} of {found.cores} cores",
        kept,
        "",
    ]
    width = max(map(len, FEATURES))
    for feature in found.features:
        installed = ", ".join(f"{p.name} {p.installed}" for p in feature.packages if p.installed)
        wrong = feature.problem + (f": {feature.install}" if feature.install else "")
        lines.append(f"{'works' if feature.works else '-':<6} {feature.name:<{width}}  {wrong or installed}")
    lines += ["", "The core works." if found.core_works else "The core does not work."]
    return "\n".join(lines)


@dataclass(frozen=True)
class Doctor:
    """Say what is installed, what works, and how to get the rest."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the findings as JSON instead of the table."""

    clean: tyro.conf.FlagCreatePairsOff[bool] = False
    """Remove all compiled code that gqlab keeps, and nothing else; it is compiled again when it is needed."""


def _kept() -> list[Path]:
    """Every folder of compiled code that gqlab made."""
    return [path for place in code_folder.places() for path in code_folder.kept_folders(place)]


def doctor(options: Annotated[Doctor, tyro.conf.arg(name="")]) -> None:
    """Say what is installed, what works, and how to get the rest. Exit status 1 if the core does not work."""
    if options.clean:
        removed = sum(code_folder.prune(place, 0) for place in code_folder.places())
        print(f"removed {removed / 2**20:.0f} MiB of compiled code")
        return
    found = diagnose()
    if options.json:
        print_json(found)
    else:
        print(report(found))
    if not found.core_works:
        raise SystemExit(1)
