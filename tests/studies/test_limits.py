"""The study of what samples allow: its counts, its rule, its shares, its files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import assert_close
from gqlab.cli.main import main
from gqlab.lab.floor import count_samples
from gqlab.samples.tables import problem_tables
from gqlab.studies.limits.design import BATCHES, CELLS, FULL, MOMENTS, PATH, QUICK, certificate
from gqlab.studies.limits.measure import (
    count_by_paths,
    least_stationary,
    measure_floors,
    measure_plug_in,
    path_chain,
    spread,
    weighted_shares,
)
from gqlab.studies.limits.study import LimitsStudy, pooled
from gqlab.studies.study import run_study

TINY = replace(QUICK, n_problems=1, n_floors=12, n_early=6, n_runs=3, n_batches=4, batches=(30, 300))


def test_paths_are_those_of_the_chain():
    problem = CELLS[0].build(1000)
    chain, made_of = path_chain(problem, PATH)
    assert (made_of.sum(axis=1) == PATH).all()
    assert len(chain.next_state) == 5 * 6**PATH
    mean, other = (
        np.mean(counts, axis=0) / 10_000
        for counts in (
            count_by_paths(problem, (3000, 10_000), 1, 100, 200)[1], count_samples(problem, [10_000], 2, range(200))[0],
        )
    )  # fmt: skip
    x = problem.exact.transitions
    expected = np.zeros(len(mean))
    place = {tuple(t): k for k, t in enumerate(problem_tables(problem).transitions.tolist())}
    for s, a, t, p in zip(x.s, x.a, x.s_next, x.probability, strict=True):
        expected[place[int(s), int(a), int(t)]] = p
    for found in (mean, other):
        assert np.abs(found - expected).max() < 0.0025
    both = [
        np.var(counts, axis=0)
        for counts in (
            count_by_paths(problem, (3000, 10_000), 3, 100, 400)[1], count_samples(problem, [10_000], 4, range(400))[0],
        )
    ]  # fmt: skip
    assert np.median(np.abs(np.log(both[0] / both[1]))) < 0.1  # and their spread is that of one trajectory
    assert [len(part) for part in count_by_paths(problem, (40, 80), 1, 5, 7)] == [5, 7]
    assert all((n % PATH) == 0 for n in MOMENTS)


def test_weights_give_every_action_its_share():
    problem = CELLS[0].build(1000)
    counts = count_samples(problem, [50, 4000], 0, range(3))
    s, a, _ = problem_tables(problem).transitions.T
    for own in counts:
        shares = weighted_shares(problem, own)
        for k in range(3):
            pair = np.zeros(problem.behavior.shape)
            np.add.at(pair, (s, a), shares[k])
            state, tried = pair.sum(axis=1), np.zeros(problem.behavior.shape)
            np.add.at(tried, (s, a), own[k])
            assert_close(state, tried.sum(axis=1), 1e-9)
            whole = (tried > 0).all(axis=1)
            assert_close(pair[whole], state[whole, None] * problem.behavior[whole], 1e-9)
            assert np.array_equal(pair[~whole], tried[~whole])


def test_the_spread_is_that_of_the_samples_own_hessian():
    """Of independent samples: from the multinomial law of their counts."""
    problem = CELLS[0].build(1000)
    theta, n = least_stationary(problem, 1000), 20_000
    probability = problem.exact.transitions.probability
    counts = np.random.default_rng(0).multinomial(n, probability / probability.sum(), size=400)
    from gqlab.exact.moments import FeatureMoments
    from gqlab.exact.objective import ProjectedBellmanError

    x, share = problem.exact.transitions, counts / n
    C = np.einsum("kn,ni,nj->kij", share, x.phi, x.phi)
    K = np.einsum("kn,ni,nt->kit", share * x.gamma, x.phi, np.eye(5)[x.s_next])
    own = ProjectedBellmanError(problem.rows, problem.target, FeatureMoments(C, (share * x.reward) @ x.phi, K))
    hessian = own.hessian(np.tile(theta, (400, 1, 1)))[:, 0]
    exact = problem.exact.hessian(theta)
    relative = np.linalg.solve(exact, hessian - exact)
    found = np.sqrt((relative**2).sum(axis=(1, 2)).mean())
    assert spread(problem, theta) / np.sqrt(n) == pytest.approx(found, rel=0.15)


def test_what_is_measured_is_near_what_is_predicted():
    found = measure_floors(CELLS[0], 1002, (3000, 10_000), 50, 200)
    assert found["unknown"][1] / found["trace_unknown"] == pytest.approx(1.0, abs=0.35)
    assert found["known"][1] / found["trace_known"] == pytest.approx(1.0, abs=0.35)
    assert found["trace_known"] < found["weighted"][1] * 1.2
    assert found["unknown_lost"].sum() == 0
    plugged = measure_plug_in("certificate", 1, (30, 300), 20)
    assert (plugged["bound"] > 10 * plugged["mean"]).all()
    assert plugged["lost"].sum() == 0
    assert certificate(5).fingerprint == certificate(6).fingerprint
    assert (min(BATCHES), max(BATCHES)) == (30, 10**6)


def test_the_study_writes_its_tables_and_resumes(tmp_path):
    study = LimitsStudy(TINY)
    done = run_study(study, tmp_path)
    assert done.n_computed == done.n_calls == 4 * 2 + 2
    assert run_study(study, tmp_path).n_computed == 0
    text = (tmp_path / "limits.md").read_text()
    assert "Garnets, seeds 1000 to 1000" in text
    assert "Theorem 5's right side over the mean" in text
    numbers = json.loads((tmp_path / "limits.json").read_text())
    assert len(numbers["cells"]) == 4
    assert np.min(numbers["looseness"]) > 1
    assert pooled(np.zeros(0), np.zeros(0)) == "–"
    assert pooled(np.array([0.9, 1.1]), np.array([0.03, 0.04])) == "1.000 ± 0.025 [0.90, 1.10]"
    cell = done.gathered.cells[0]
    assert_close(cell.ratios["known"][0] * 1, np.array(numbers["cells"][0]["ratios"]["known"][0]), 1e-12)
    assert cell.kept.tolist() == (cell.spread <= 0.25).tolist()


def test_no_two_problems_share_a_seed():
    seeds = [seed for cell in CELLS for seed in FULL.seeds(cell)] + [seed for _, seed in FULL.plug_in_problems[:-1]]
    assert len(set(seeds)) == len(seeds) == 60
    assert not set(seeds) & {seed for cell in CELLS for seed in QUICK.seeds(cell)}


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gqlab.cli.limits.QUICK", TINY)
    assert not main(["limits", "--quick", "--json", "--out", str(tmp_path)])
    assert json.loads(capsys.readouterr().out)["radii"] == [1.0, 10.0, 100.0]
