"""Each experiment in its smallest form, from the runs to figures and verdicts."""

from __future__ import annotations

import csv
import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from gqlab.paper import words
from gqlab.paper.claims import CLAIMS, judge, judge_all, summary
from gqlab.paper.design import Scale, label
from gqlab.paper.experiments import BY_NAME, EXPERIMENTS, chosen
from gqlab.paper.figures import COLOURS, colour, write_figure
from gqlab.paper.overview import write_overview
from gqlab.paper.panels import panels
from gqlab.paper.statistics import FAILS, HOLDS, IN_PART

NAMES = [experiment.name for experiment in EXPERIMENTS]


def test_every_experiment_of_the_paper_is_here():
    six = ("gradient", "variance", "batch-size", "mspbe", "reward", "reward-iterations")
    expected = {f"{family}-{key}" for family in ("garnet", "frozen-lake") for key in six}
    assert set(NAMES) == expected | {"frozen-lake-evaluation", "baird"}
    assert {claim.experiment for claim in CLAIMS} == set(NAMES)
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("name", NAMES)
def test_from_runs_to_figures_and_verdicts(name, tiny_results, tmp_path):
    results = tiny_results[name]
    drawn = panels(results)
    assert len(drawn) == len(BY_NAME[name].views)
    write_figure(tmp_path, name, drawn)
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert min(picture.size) > 300
    assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own file
    with (tmp_path / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    n_points = sum(len(series.x) for panel in drawn for series in panel.series)
    assert len(rows) == n_points
    assert all(float(row["low"]) <= float(row["high"]) for row in rows)
    for claim in (c for c in CLAIMS if c.experiment == name):
        judged = judge(claim, results)
        assert judged.verdict.outcome in (HOLDS, IN_PART, FAILS)
        assert judged.verdict.n_further == 2
        assert all(math.isfinite(e.ratio) and e.ratio > 0 for e in judged.verdict.problems)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".csv", ".png", ".svg"]


def test_the_same_data_give_the_same_bytes(tiny_results, tmp_path):
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_figure(folder, "baird", panels(tiny_results["baird"]))
    for kind in ("png", "svg", "csv"):
        assert (tmp_path / "a" / f"baird.{kind}").read_bytes() == (tmp_path / "b" / f"baird.{kind}").read_bytes()


def test_verdicts_as_json_and_markdown(tiny_results, tmp_path):
    judged = judge_all(tiny_results)
    assert len(judged) == len(CLAIMS)
    read = json.loads(words.claims_json(judged, {"seed": 0}))
    assert read["summary"] == summary(judged)
    assert [row["name"] for row in read["claims"]] == [claim.name for claim in CLAIMS]
    assert {"claim", "figure", "statistic", "verdict", "paper_setting", "further_problems"} <= set(read["claims"][0])
    table = words.claims_markdown(judged)
    assert all(claim.statement in table for claim in CLAIMS)
    write_overview(tmp_path, judged)
    assert (tmp_path / "claims.csv").read_text().count("\n") == 1 + 3 * len(CLAIMS)


def test_paper_settings():
    """The numbers of the paper, as its text gives them."""
    full = Scale()
    gradient, lake = BY_NAME["garnet-gradient"], BY_NAME["frozen-lake-gradient"]
    jobs = {
        label(job.algorithm): job for job in full.jobs(gradient) if job.problem.number == 0 and job.n_samples < 20_000
    }
    for job in jobs.values():
        assert (job.n_runs, job.n_samples, job.algorithm.eta_theta, job.algorithm.eta_omega) == (40, 10_000, 0.02, 0.01)
    assert jobs["VR-Greedy-GQ"].algorithm.batch_size == 3000
    for job in full.jobs(lake):
        assert (job.n_runs, job.n_samples, job.algorithm.eta_theta, job.algorithm.eta_omega) == (10, 200_000, 0.2, 0.1)
    sizes = [max(a.batch_size, 1) for a in BY_NAME["garnet-batch-size"].parts[0].algorithms]
    assert sizes == [1, 1000, 2000, 3000]
    sizes = [max(a.batch_size, 1) for a in BY_NAME["frozen-lake-batch-size"].parts[0].algorithms]
    assert sizes == [1, 200, 500, 1000]
    pg = next(a for a in BY_NAME["garnet-reward-iterations"].parts[0].algorithms if label(a) == "policy gradient")
    assert (pg.n_trajectories, pg.horizon) == (30, 60)
    assert full.n_problems == 21


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_budgets_fit(name, quick):
    """At least 200 records of a run, and whole epochs between records where the reference point is needed."""
    scale = Scale(quick=quick)
    for job in scale.jobs(BY_NAME[name]):
        n_updates = job.algorithm.n_updates(job.n_samples)
        assert n_updates / job.record_every >= (180 if job.algorithm.batch_size else 200), job
        if "update" in job.metrics and job.algorithm.batch_size:
            assert job.algorithm.batch_size % job.record_every == 0


def test_problems_are_drawn_as_documented():
    first = Scale().jobs(BY_NAME["garnet-gradient"])[0].problem
    problem = first.build()
    assert ((problem.mdp.transition > 0).sum(axis=-1) == 2).all()
    assert problem.features.shape == (5, 3, 4)
    assert np.allclose(np.linalg.norm(problem.features, axis=-1), 1)
    assert np.array_equal(first.theta0(3, 4), first.theta0(40, 4)[:3])
    lake = Scale().jobs(BY_NAME["frozen-lake-evaluation"])
    a, b = (job.problem.build() for job in (lake[0], lake[-1]))
    assert a.features.shape[-1] == 8
    assert np.array_equal(a.mdp.transition, b.mdp.transition)
    assert not np.array_equal(a.features, b.features)
    assert not np.array_equal(a.target.table, b.target.table)
    dry = Scale(slippery=False).jobs(BY_NAME["frozen-lake-gradient"])[0].problem.build()
    assert (dry.mdp.transition.max(axis=-1)[~dry.mdp.terminal] == 1).all()


def test_one_colour_for_an_algorithm_everywhere():
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert colour("VR-Greedy-GQ, M = 1000") == COLOURS["VR-Greedy-GQ"] != colour("Greedy-GQ bias²")


def test_unknown_experiments_are_named():
    with pytest.raises(ValueError, match="unknown experiment 'garnet', expected one of garnet-gradient, "):
        chosen(("garnet",))
    assert [e.name for e in chosen(("baird", "garnet-mspbe"))] == ["garnet-mspbe", "baird"]
