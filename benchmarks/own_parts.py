"""What a user's own part costs: the softmax operator and the plain step, copied under other names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import softmax

import gqlab as gq
from benchmarks.cpu import per_step
from benchmarks.problems import PLAIN, VR, paper_garnet
from benchmarks.table import Table
from gqlab.rules.boltzmann import boltzmann
from gqlab.rules.gradient import evaluate
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import descend
from gqlab.samples.streams import draw

TURNS = 3


class OwnSoftmaxRule(NamedTuple):
    sigma: float

    def improve(self, row, q, w, A):  # type: ignore[no-untyped-def]
        top, over_Z, mean = boltzmann(q, self.sigma, w, A)
        for a in range(A):
            p = w[a] * over_Z
            w[a] = p + p * (self.sigma * ((q[a] - top) - mean))
        return top + mean


@dataclass(frozen=True)
class OwnSoftmax(gq.Operator):
    compiled: ClassVar[type] = OwnSoftmaxRule
    sigma: float = 1.0

    def policy(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(self.sigma * q, axis=-1))

    def weights(self, q: np.ndarray) -> np.ndarray:
        p = self.policy(q)
        return np.asarray(p * (1 + self.sigma * (q - (p * q).sum(axis=-1, keepdims=True))))


class OwnStep(NamedTuple):
    q: Any
    w: Any
    c: Any

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {"q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def step(self, world, point, cursor, u, rates, d, A):  # type: ignore[no-untyped-def]
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(world.samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        return descend(point, world.samples, x, self.c, rates, d, A), cursor


@dataclass(frozen=True)
class OwnGreedyGQ(gq.Algorithm):
    estimator: ClassVar[type] = OwnStep
    eta_theta: float = 0.02
    eta_omega: float = 0.01
    radius: float = math.inf


def compare(table: Table, scale: float) -> None:
    """The built-in parts and their copies take turns."""
    problem = paper_garnet()
    own = gq.Problem(problem.mdp, problem.features, target=OwnSoftmax(1.0))
    n = 3000 * max(1, int(33 * scale))
    copied = OwnGreedyGQ(0.02, 0.01, 100.0)
    cases = {
        "Greedy-GQ, softmax": (problem, PLAIN),
        "Greedy-GQ, softmax copied": (own, PLAIN),
        "Greedy-GQ copied, softmax": (problem, copied),
        "Greedy-GQ copied, softmax copied": (own, copied),
        "VR-Greedy-GQ, softmax": (problem, VR),
        "VR-Greedy-GQ, softmax copied": (own, VR),
    }
    table.section("A user's own parts: the built-in ones, copied under other names")
    turns = [{name: per_step(*case, n, 40) for name, case in cases.items()} for _ in range(TURNS)]
    for name in cases:
        table.row(name, min(turn[name] for turn in turns), "ns")
        built_in = f"{name.split(' ')[0]}, softmax".replace(",,", ",")
        if name != built_in:
            table.note(f"{'':<6}{table.ratio(name, built_in)}")
