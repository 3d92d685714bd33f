"""What is computed anew when a line of gqlab changes, in a copy of its sources: what depends on it, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gqlab

PACKAGE = Path(gqlab.__file__).parent

#: The keys of all calls of the studies, and that of a sweep.
KEYS = """
import json, sys
import gqlab as gq
from gqlab.studies.agents.benchmark import AgentBenchmark
from gqlab.studies.agents.design import QUICK
from gqlab.studies.compare import design
from gqlab.studies.compare.leaderboard import Leaderboard
from gqlab.studies.decisions.design import DecisionDesign
from gqlab.studies.decisions.study import Decisions
from gqlab.studies.fits.runs import QUICK_LOGS
from gqlab.studies.fits.study import FitStudy
from gqlab.studies.logs.runs import QUICK_SEEDS
from gqlab.studies.logs.study import LogStudy
from gqlab.grids.description import RUNS_CELLS, code_digest
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import EXPERIMENTS
from gqlab.studies.paper.reproduction import Reproduction
from gqlab.studies.rates.design import QUICK as QUICK_RATES
from gqlab.studies.rates.rates import RatesStudy
from gqlab.studies.replay.design import QUICK as QUICK_REPLAY
from gqlab.studies.replay.study import ReplayStudy

problems = design.Problems("garnet", design.QUICK.seeds)
studies = [Leaderboard("", problems, design.LINEUP, design.QUICK), AgentBenchmark(QUICK), LogStudy(QUICK_SEEDS)]
studies += [RatesStudy(QUICK_RATES, 0, True), Reproduction(EXPERIMENTS[:2], Request(quick=True))]
studies += [Decisions(DecisionDesign(True)), FitStudy(QUICK_LOGS), ReplayStudy(QUICK_REPLAY)]
keys = {study.name: [call.key for call in study.calls()] for study in studies}
print(json.dumps(keys | {"sweep": [code_digest(RUNS_CELLS, gq.GreedyGQ)]}))
"""

#: A tiny leaderboard in a folder: how many of its calls were computed, and its floors.
COMPARE = """
import json, sys
from pathlib import Path
from gqlab.studies.compare import design
from gqlab.studies.compare.leaderboard import Leaderboard
from gqlab.studies.study import run_study

budget = design.Budget(n_problems=1, n_runs=2, robust_runs=1, n_samples=3000, first_seed=1000)
study = Leaderboard("", design.Problems("garnet", budget.seeds), {"SAGA": design.LINEUP["SAGA"]}, budget)
done = run_study(study, Path(sys.argv[1]))
print(json.dumps([done.n_computed, done.n_calls, done.gathered.floor.tolist()]))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """A folder with a copy of gqlab."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(PACKAGE, folder / "gqlab", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def executed(sources: Path, code: str, *arguments: object) -> object:
    """What a program prints that runs with these sources."""
    path = os.pathsep.join([str(sources), *(entry for entry in sys.path if Path(entry) != PACKAGE.parent)])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def keys(sources) -> dict[str, list[str]]:
    found = executed(sources, KEYS)
    assert isinstance(found, dict)
    counts = {name: len(set(each)) for name, each in found.items()}
    assert min(counts[name] for name in ("rates", "reproduce", "decisions", "fits", "replay")) > 3
    assert [counts[name] for name in ("compare", "agents", "logs", "sweep")] == [85, 40, 7, 1]
    return found


REMARK = "from __future__", "# a remark\nfrom __future__"
ALL = {"compare", "agents", "logs", "fits", "decisions", "replay", "rates", "reproduce", "sweep"}

#: A file, what is changed in it, and what depends on that.
CHANGES = [
    ("exact/objective.py", "return self.correction(q", "return 3 * self.correction(q", ALL),
    ("learn/agent/agent.py", '"""An agent', '"""The agent', {"agents", "replay"}),
    ("cli/doctor.py", *REMARK, set()),
    ("plots/style.py", '"#', '"#1', set()),  # a colour
]
MORE = [
    ("learn/fit/fit.py", *REMARK, {"logs", "fits", "decisions"}),
    ("judge/deciding.py", *REMARK, {"decisions"}),
    ("studies/decisions/report.py", *REMARK, set()),
    ("engine/loop.py", *REMARK, ALL),
    ("cli/theory.py", *REMARK, set()),
    ("studies/compare/figure.py", "COLOURS = ", "COLOURS = 2 * ", set()),
    ("studies/page.py", *REMARK, set()),
    ("studies/study.py", *REMARK, set()),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "anew"),
    [
        *(pytest.param(*change, id=change[0]) for change in CHANGES),
        *(pytest.param(*change, id=change[0], marks=pytest.mark.long) for change in MORE),
    ],
)
def test_what_depends_on_a_changed_line_is_computed_anew(sources, keys, file, old, new, anew):
    path = sources / "gqlab" / file
    before = path.read_text()
    assert old in before
    path.write_text(before.replace(old, new, 1))
    try:
        found = executed(sources, KEYS)
    finally:
        path.write_text(before)
    assert isinstance(found, dict)
    for name, each in keys.items():
        same = set(each) & set(found[name])
        assert same == (set() if name in anew else set(each)), name


def test_a_floor_with_another_gradient_is_another_floor(sources, tmp_path):
    objective = sources / "gqlab" / "exact" / "objective.py"
    before = objective.read_text()
    computed, calls, floor = executed(sources, COMPARE, tmp_path)
    assert (computed, calls) == (10, 10)
    assert executed(sources, COMPARE, tmp_path) == [0, calls, floor]
    new = "return 3 * (self.correction(q, self.solve(m)) - m)"
    objective.write_text(before.replace("return self.correction(q, self.solve(m)) - m", new))
    try:
        anew, _, other = executed(sources, COMPARE, tmp_path)
    finally:
        objective.write_text(before)
    assert anew == calls
    assert other[0][0] == pytest.approx(9 * floor[0][0], rel=1e-6)
