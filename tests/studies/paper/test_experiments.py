"""Each experiment in its smallest form, from the runs to figures and verdicts."""

from __future__ import annotations

import csv
import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

import gqlab as gq
from gqlab.studies.paper import words
from gqlab.studies.paper.claims import CLAIMS, THEORY_CLAIMS, judge, judge_all, summary
from gqlab.studies.paper.departures import CHOICES, DEPARTURES
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import BY_NAME, EXPERIMENTS, SETTINGS, chosen
from gqlab.studies.paper.figures import COLOURS, PANEL, colour, draw, in_style, write_figure
from gqlab.studies.paper.jobs import Job, lowest_mspbe
from gqlab.studies.paper.overview import write_overview
from gqlab.studies.paper.panels import panels
from gqlab.studies.paper.problems import ProblemSpec
from gqlab.studies.paper.sections import COMPOSITES
from gqlab.studies.paper.statistics import OUTCOMES
from gqlab.studies.paper.tuning import reading, table
from paper.conftest import each, measured

NAMES = [experiment.name for experiment in EXPERIMENTS]


def test_every_experiment_of_the_paper_is_here():
    four = ("gradient", "variance", "batch-size", "mspbe")
    six = (*four, "reward", "reward-iterations")
    expected = {f"{family}-{key}" for family in ("garnet", "frozen-lake") for key in six}
    expected |= {f"frozen-lake-evaluation-{key}" for key in four}
    assert {claim.experiment for claim in CLAIMS} == expected | {"rates"}
    assert set(NAMES) == expected | {"garnet-baselines", "frozen-lake-baselines", "baird"}
    assert {name for _, _, names in COMPOSITES for name in names} == expected
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("name", each(NAMES))
def test_from_runs_to_figures_and_verdicts(name, run_results, tmp_path):
    results = run_results
    drawn = panels(results)
    assert len(drawn) == len(BY_NAME[name].views)
    assert all(panel.title and panel.series for panel in drawn)
    write_figure(tmp_path, name, drawn)
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert picture.size == (round(300 * PANEL[0] * len(drawn)), round(300 * PANEL[1]))
        assert min(picture.info["dpi"]) >= 299
    assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own file
    with (tmp_path / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    n_points = sum(len(series.x) for panel in drawn for series in panel.series)
    assert len(rows) == n_points
    assert all(float(row["low"]) <= float(row["high"]) for row in rows)
    for claim in (c for c in CLAIMS if c.experiment == name):
        judged = judge(claim, results)
        assert judged.verdict.outcome in OUTCOMES
        assert judged.verdict.n_problems == 2
        assert all(math.isfinite(e.ratio) and e.ratio > 0 for e in judged.verdict.problems)
        assert judged.beside
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".csv", ".png", ".svg"]


def test_every_label_stands_inside_its_axes(tiny_results):
    """Names, with a legend that leaves neither side; and panels that do not overlap."""
    for _, _, names in COMPOSITES:
        with in_style("test"):
            figure = draw([panels(tiny_results[name])[0] for name in names])
            figure.canvas.draw()
        for axes in figure.axes:
            inside, legend = axes.get_window_extent(), axes.get_legend().get_window_extent()
            assert legend.x0 >= inside.x0 - 1
            assert legend.x1 <= inside.x1 + 1
            assert inside.y0 - 1 <= legend.y0 < legend.y1 <= inside.y1 + 1


def test_the_paper_s_figures_are_vectors_too_and_the_same_each_time(tiny_results, tmp_path):
    _, _, names = COMPOSITES[0]
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_figure(folder, "figure-1", [panels(tiny_results[n])[0] for n in names], ("png", "svg", "pdf"))
    for kind in ("png", "svg", "pdf", "csv"):
        first, second = ((tmp_path / folder / f"figure-1.{kind}").read_bytes() for folder in "ab")
        assert first == second
    assert (tmp_path / "a" / "figure-1.pdf").read_bytes().startswith(b"%PDF")


def test_greedy_gq_reaches_as_far_as_vr_greedy_gq_on_the_axis_of_computations():
    """Read from the budgets: where curves are drawn against computations, both have them up to the same number."""
    request = Request()
    for experiment in EXPERIMENTS:
        for view in experiment.views:
            part = experiment.part(view.part)
            names = [entry.label for entry in part.entries]
            if view.x != "gradient_evaluations" or "Greedy-GQ" not in names:
                continue
            ends = {}
            for name in ("Greedy-GQ", "VR-Greedy-GQ"):
                a = part.entry(name).algorithm
                job = request.job(experiment, part, part.entry(name), 0)
                ends[name] = int(a.gradient_evaluations(np.array([a.n_updates(job.n_samples)]))[0])
            assert min(view.end, ends["Greedy-GQ"]) >= min(view.end, ends["VR-Greedy-GQ"]), (experiment.name, view)


def test_minima_and_maxima_are_of_every_update_and_not_of_the_records():
    spec = ProblemSpec("garnet", 0, 1)
    common = {"n_samples": 3000, "n_runs": 2, "metrics": ("gradient",), "watch": "gradient"}
    fine = measured(Job(spec, gq.GreedyGQ(0.02, 0.01, 100.0), record_every=1, **common))
    lowest = np.minimum.accumulate(fine.values["gradient"], axis=1)
    assert fine.values["lowest_gradient"] == pytest.approx(lowest, rel=1e-9)
    coarse = measured(Job(spec, gq.GreedyGQ(0.02, 0.01, 100.0), record_every=500, **common))
    assert coarse.values["lowest_gradient"] == pytest.approx(lowest[:, ::500], rel=1e-9)
    records = np.minimum.accumulate(coarse.values["gradient"], axis=1)
    assert (records[:, -1] > coarse.values["lowest_gradient"][:, -1]).all()


def test_what_a_job_keeps():
    job = Job(ProblemSpec("garnet", 0, 1), gq.GreedyGQ(), 1000, 1, 10, ("gradient",), thin=20, windows=((900, 1000),))
    updates = np.arange(0, 1001, 10)
    assert updates[job.kept(updates)].tolist() == [0, 200, 400, 600, 800, *range(910, 1001, 10)]


@pytest.mark.parametrize("name", each(["garnet-mspbe", "frozen-lake-mspbe", "frozen-lake-evaluation-mspbe"]))
def test_the_least_mspbe_is_below_whatever_a_run_reaches(name, run_results):
    for number in range(2):
        spec = ProblemSpec(name.removesuffix("-mspbe"), number, 1)
        least = lowest_mspbe(spec)
        for found in run_results["long", number].values():
            assert (found.values["mspbe"] >= least).all()
            excess = found.values["excess"]
            assert excess == pytest.approx(found.values["mspbe"] - least, abs=1e-13)
            assert (excess > 0).all()


def test_what_tuning_tried_and_what_it_shows(tiny_results):
    for family in ("garnet", "frozen-lake"):
        results, s = tiny_results[f"{family}-baselines"], SETTINGS[family]
        rows = table(results)
        assert len(rows) == len(s.tried_critic) + len(s.tried_gradient)
        assert sum(row.best for row in rows) == 2
        assert s.tuned_critic in s.tried_critic
        assert s.etas in s.tried_critic
        assert {s.tuned_gradient, s.etas[0]} <= set(s.tried_gradient)
        for word in ("the paper's", "the best here", "the tuned one"):
            assert sum(word in row.note for row in rows) == 2
        lines = reading(results)
        assert [line.split(":")[0] for line in lines] == [
            "actor-critic", "actor-critic, tuned", "policy gradient", "policy gradient, tuned"
        ]  # fmt: skip


def test_the_same_data_give_the_same_bytes(tiny_results, tmp_path):
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_figure(folder, "baird", panels(tiny_results["baird"]))
    for kind in ("png", "svg", "csv"):
        assert (tmp_path / "a" / f"baird.{kind}").read_bytes() == (tmp_path / "b" / f"baird.{kind}").read_bytes()


def test_verdicts_as_json_and_markdown(tiny_results, tmp_path):
    judged = judge_all(tiny_results)
    keys = [claim.key for claim in CLAIMS if claim not in THEORY_CLAIMS]
    assert [j.claim.key for j in judged] == keys
    read = json.loads(words.claims_json(judged, {"seed": 1}))
    assert read["summary"] == summary(judged)
    assert sum(read["counts"].values()) == len(keys)
    assert "false alarms" in read["false_alarms"]
    assert [row["claim"] for row in read["claims"]] == keys
    assert {"statement", "figure", "quantity", "axis", "tau", "outcome", "pooled", "beside"} <= set(read["claims"][0])
    assert [d["point"] for d in read["departures"] + read["choices"]] == [d.point for d in (*DEPARTURES, *CHOICES)]
    text = words.claims_markdown(judged)
    assert all(f"| {j.claim.key} | {j.claim.place}: {j.claim.statement} |" in text for j in judged)
    assert all(d.reason in text for d in (*DEPARTURES, *CHOICES))
    assert all(what in text for j in judged for what, _ in j.beside)
    write_overview(tmp_path, judged)
    assert (tmp_path / "claims.csv").read_text().count("\n") == 1 + 3 * len(keys)


def test_a_quick_run_judges_nothing(tiny_results):
    judged = judge_all(tiny_results)
    read = json.loads(words.claims_json(judged, {"quick": True}))
    assert read["summary"] == "preview: too few problems to judge"
    assert read["counts"] is None
    assert {row["outcome"] for row in read["claims"]} == {"preview: too few problems to judge"}
    text = words.claims_markdown(judged, quick=True)
    assert text.startswith("preview: too few problems to judge.")
    assert not any(f"| {outcome} |" in text for outcome in OUTCOMES)


def test_problems_are_drawn_as_documented():
    first = Request().jobs(BY_NAME["garnet-gradient"])[0].problem
    problem = first.build()
    assert ((problem.mdp.transition > 0).sum(axis=-1) == 2).all()
    assert problem.features.shape == (5, 3, 4)
    assert np.allclose(np.linalg.norm(problem.features, axis=-1), 1)
    assert np.array_equal(first.theta0(3, 4), first.theta0(40, 4)[:3])
    lake = Request().jobs(BY_NAME["frozen-lake-evaluation-gradient"])
    a, b = (job.problem.build() for job in (lake[0], lake[-1]))
    assert a.features.shape[-1] == 8
    assert np.allclose(np.linalg.norm(a.features, axis=-1), 1)
    assert np.array_equal(a.mdp.transition, b.mdp.transition)
    assert not np.array_equal(a.features, b.features)
    assert not np.array_equal(a.target.table, b.target.table)
    dry = Request(slippery=False).jobs(BY_NAME["frozen-lake-gradient"])[0].problem.build()
    assert (dry.mdp.transition.max(axis=-1)[~dry.mdp.terminal] == 1).all()


def test_no_two_families_or_seeds_share_a_draw():
    specs = [
        (f, k, seed)
        for f in ("garnet", "frozen-lake", "frozen-lake-evaluation")
        for k in range(62)
        for seed in (1, 2026)
    ]
    draws = [ProblemSpec(f, k, seed).draw for f, k, seed in specs]
    assert len(set(draws)) == len(draws)


def test_one_colour_for_an_algorithm_everywhere():
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert colour("VR-Greedy-GQ, M = 1000") == COLOURS["VR-Greedy-GQ"] != colour("Greedy-GQ")


def test_unknown_experiments_are_named():
    with pytest.raises(ValueError, match="unknown experiment 'garnet', expected one of garnet-gradient, "):
        chosen(("garnet",))
    assert [e.name for e in chosen(("baird", "garnet-mspbe"))] == ["garnet-mspbe", "baird"]
