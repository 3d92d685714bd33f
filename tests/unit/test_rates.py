"""The pieces of ``gqlab rates``, and the whole of it in small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli import main
from gqlab.theory.rates import Settings, candidates, first_below, slope


def test_first_below_is_the_first_running_mean_at_most_epsilon(garnet_problem: gq.Problem) -> None:
    algorithm = gq.VRGreedyGQ(0.1, 0.05, batch_size=50, radius=100.0)
    result = gq.run(garnet_problem, algorithm, n_samples=1000, n_runs=3, theta0=np.ones(4), record_every=20)
    squares = (garnet_problem.exact.gradient(result.theta) ** 2).sum(axis=-1).mean(axis=0)
    means = [squares[:k].mean() for k in range(1, len(squares))]  # iterates before record k
    epsilons = np.array([1.5 * means[0], means[3], 0.5 * min(means)])
    first = [next(k for k, mean in enumerate(means) if mean <= eps) for eps in epsilons[:2]]
    found = first_below(garnet_problem, result, epsilons)
    assert found[:2].tolist() == [result.samples[k + 1] for k in first]
    assert np.isnan(found[2])
    assert found[0] == 50  # the samples of a batch count when it is drawn


def test_slope_of_a_power_law() -> None:
    x = np.log([1.0, 2.0, 4.0, 8.0])
    rows = np.exp(np.array([1.5 * x, 2.5 * x + 1, 2.0 * x - 3]))
    rows[1, 3] = np.nan  # a point that was not reached is left out
    got = slope("s", x, rows, "2")
    # slopes 1.5, 2.5, 2: mean 2, standard deviation ½, t(0.975, 2) = 4.3027
    assert got.mean == pytest.approx(2.0)
    assert (got.low, got.high) == pytest.approx((2 - 4.30265 * 0.5 / 3**0.5, 2 + 4.30265 * 0.5 / 3**0.5), rel=1e-5)
    assert got.n == 3


def test_the_full_experiment_has_enough_garnets_and_tunes_both_steps() -> None:
    settings = Settings()
    assert settings.n_garnets >= 10
    for algorithms in candidates(settings).values():
        assert len({a.eta_theta for a in algorithms}) > 3
        assert len({a.eta_omega for a in algorithms}) > 1
        assert {a.radius for a in algorithms} == {100.0}
    assert len({a.batch_size for a in candidates(settings)["VRGreedyGQ"]}) > 3


def test_rates_command_in_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rates", "--quick", "--out", str(tmp_path / "rates")])
    out = capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "rates").iterdir()) == ["rates.json", "rates.md", "rates.png"]
    assert (tmp_path / "rates" / "rates.md").read_text().strip() in out
    numbers = json.loads((tmp_path / "rates" / "rates.json").read_text())
    assert np.shape(numbers["samples"]["GreedyGQ"]) == (2, 3)
    assert [s["theory"] for s in numbers["slopes"][:2]] == ["3 (upper bound)", "2 (upper bound)"]
    samples = np.array(numbers["samples"]["VRGreedyGQ"], dtype=float)
    assert np.nanmax(samples) <= 20_000
