"""Where the reproduction departs from the letter of the paper, or had to choose, as data: for every report of it."""

from __future__ import annotations

from typing import NamedTuple


class Departure(NamedTuple):
    """One of them."""

    point: str
    paper: str
    here: str
    reason: str


#: The text of the paper says something else.
DEPARTURES = (
    Departure(
        "features", "Φ ∈ R^{S×d}, one row for each state", "φ(s, a), one row for each pair",
        "Q_θ(s, a) = φ(s, a)ᵀθ needs rows for pairs; with rows for states alone every policy is uniform",
    ),
    Departure(
        "rows on the lake", "a Gaussian matrix", "Gaussian, scaled to unit rows",
        "Assumption 1 bounds the features; with raw rows η_θ = 0.2 is unstable",
    ),
    Departure(
        "policy on the lake", "the appendix evaluates a fixed random target policy",
        "control (softmax) for claims F, evaluation of a fixed random policy for claims E",
        "the figures show rewards of a policy that improves: both readings are judged",
    ),
    Departure(
        "variance", "E‖G_t − ∇J‖² of the pseudo-gradient",
        "of the direction that is stepped in: for VR-Greedy-GQ the reduced one, over its own batch",
        "the sentence is about the stochastic updates; E over one index of the batch is what a step draws",
    ),
    Departure(
        "policy gradient", "trajectories of a fixed length 60",
        "trajectories of at most 60 steps: on the lake they end in a hole or at the goal",
        "nothing follows a terminal state; counted as 1,800 samples all the same",
    ),
)  # fmt: skip

#: The text of the paper says nothing, or leaves a choice.
CHOICES = (
    Departure(
        "the Garnet", "one random Garnet, not given", "24 Garnets, all alike", "no problem is the paper's",
    ),
    Departure(
        "Garnet kernel", "uniform on [0, 1], normalised, branching 2",
        "2 distinct successors, weights uniform on [0, 1] and normalised, redrawn until the chain is ergodic",
        "what Garnet(5, 3, 2, 4) means; Assumption 4",
    ),
    Departure("reward of the Garnet", "not given", "uniform on [0, 1] for each (s, a, s')", "r ≥ 0"),
    Departure(
        "Frozen Lake", "an episodic game; the analysis has one ergodic chain",
        "Gymnasium's FrozenLake-v1, 4×4, slippery; holes and goal end an episode, which begins anew at the start",
        "exact, ergodic, and the semantics of the environment",
    ),
    Departure(
        "R, σ, θ₀, ω₀", "not given", "R = 100, σ = 1, θ₀ ~ N(0, I), ω₀ = 0",
        "the ball must hold a stationary point: ‖θ‖ goes to 10–20 here",
    ),
    Departure(
        "gradient computations", "not defined",
        "evaluations of (G_x, H_x) as Algorithm 1 is written: 1 for a Greedy-GQ step, 3M for an epoch of VR-Greedy-GQ, "
        "1 for a sample of actor-critic",
        "the batch mean costs M evaluations, each inner step two",
    ),
    Departure(
        "maximum reward", "the largest r̂, one walk of 100 steps at every update", "the same",
        "a maximum of noise grows by itself: the exact long-run reward stands beside; a largest r̂ of 0 counts as "
        "0.005, half of the least that a walk can earn",
    ),
    Departure(
        "computations within a batch", "not defined",
        "at a number of computations that falls within a batch mean, the iterate before it counts",
        "at 10k computations VR-Greedy-GQ has made 3,000 updates and is averaging its second batch",
    ),
    Departure(
        "equal samples", "not defined", "the last number of samples up to the budget that both have drawn in full",
        "VR-Greedy-GQ takes whole batches, policy gradient whole iterations: 198k of 200k, 9k of 10k",
    ),
    Departure(
        "means", "the mean of the last 10k iterations", "over records that are evenly spaced, at least 500 of them",
        "every 60th update (Garnet) or 30th (lake) of the last tenth; every 18th or 20th for the batch sizes; every "
        "100th or 200th update of the whole run for the variance, which divides an epoch as its reference point needs",
    ),
    Departure(
        "J*", "–", "the least J at the stationary points that Newton's method finds from four first points",
        "shown beside J: where J* > 0 the ratio of J tells little of the distance to it",
    ),
    Departure(
        "tuned baselines", "the step sizes of Greedy-GQ, η_θ for policy gradient",
        "those for the claims; beside them the best of a grid by the exact long-run reward at the end of the claims' "
        "budget, on 12 other problems (seed 1, numbers 50 to 61), 8 runs each of actor-critic and 2 of policy "
        "gradient; 5 paired runs of the tuned ones",
        "a sceptic asks whether a baseline lost by its step size",
    ),
)  # fmt: skip
