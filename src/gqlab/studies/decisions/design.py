"""The design of the study: what is run, what is computed of it, and what would count as right, before any seed is run.

1. **Evaluation**: the value of a policy by one solve, one-hot features, 50,000 rows, small shift, at three discounts.
2. **Coverage**: intervals of value and gain in six cells (rows × shift), beside estimators that are in use.
3. **Null**: the policy *is* what runs now.
4. **Verdicts**: policies that were fitted with wrong features, on logs that show numbers, with trees.
5. **Selection**: the choice among candidates that were fitted on one half of the episodes.
6. **Pessimism**: fits to logs of what hardly explores, and of what explores much. Two fits differ in pessimism alone,
   without a ridge: a ridge towards 0 is a pessimism of its own where rewards are above 0. ``FittedQ()``, with its
   ridge, stands beside. A gain counts as −1 at least: where little can be gained a loss has no end.

A problem is set apart in a cell where its reward is so rare that logs may not hold it: where more than ``RARE_SHARE``
of the policy's discounted reward, counted from the log's most frequent one, comes from rewards so far from that one
that fewer than ``RARE_ROWS`` rows of a log, in the mean, have such. Both are computed exactly, from the problem.
Criteria are judged on the others; the report shows all.

The rule, the fits that part 6 compares and its least gain were written after a look at logs of *other* problems, 24
finite ones of the same kinds and five with numbers; so was what the method does where pairs were hardly seen. The
problems here, their numbers and the seed are new: nothing was run on them before this was written down.
"""

from __future__ import annotations

from dataclasses import dataclass

from gqlab.studies.decisions.problems import FINITE, NUMERIC

#: Rows of a log, shifts of the policy, logs for each problem and cell, and logs that one task makes.
SIZES = (500, 5_000, 50_000)
LOGS = 200
LOGS_A_TASK = 50

#: Logs in which the rivals that need propensities are computed too: they are slow.
RIVAL_LOGS = 50

#: Of evaluation.
DISCOUNTS = (0.9, 0.95, 0.99)
EVALUATION_ROWS, EVALUATION_LOGS = 50_000, 50

#: Of the null: logs of each problem, of so many rows.
NULL_LOGS, NULL_ROWS = 50, 5_000

#: Of verdicts: logs of each problem, their rows, and those of the logs that policies were fitted on; logs of a task.
VERDICT_LOGS, VERDICT_ROWS, FIT_ROWS = 20, 10_000, 3_000
VERDICTS_A_TASK = 5

#: Of selection.
SELECTION_LOGS, SELECTION_ROWS = 20, (1_000, 10_000)

#: Of pessimism: how often what runs now acts at random, and logs of each problem, with their rows.
EXPLORATION = (0.02, 0.4)
PESSIMISM_LOGS, PESSIMISM_ROWS = 20, 5_000
LEAST_GAIN = -1.0

#: What sets a problem apart: see above.
RARE_ROWS, RARE_SHARE = 10.0, 0.1

#: The seeds begin with this number, which no log had before; quick designs have another.
SEED, QUICK_SEED = 20_261_118, 7


@dataclass(frozen=True)
class DecisionDesign:
    """The numbers that ``--quick`` makes smaller."""

    quick: bool = False

    @property
    def seed(self) -> int:
        return QUICK_SEED if self.quick else SEED

    @property
    def finite(self) -> tuple[int, ...]:
        """The finite problems, by number."""
        return (0, 10, 15) if self.quick else tuple(range(len(FINITE)))

    @property
    def numeric(self) -> tuple[int, ...]:
        """The problems whose log shows numbers."""
        return (2,) if self.quick else tuple(range(len(NUMERIC)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return SIZES[:2] if self.quick else SIZES

    def logs(self, full: int) -> int:
        """How many logs, of so many in the whole design."""
        return max(2, full // 50) if self.quick else full


@dataclass(frozen=True)
class Criterion:
    """What counts as right: a number of the report that must be at least, or at most, a bound."""

    name: str
    text: str
    least: float | None = None
    most: float | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


#: The criteria, fixed before the study was run.
CRITERIA = (
    *(
        Criterion(
            f"evaluation {gamma:g}", f"mean relative error of the value over problems, γ = {gamma:g}", -0.01, 0.01
        )
        for gamma in DISCOUNTS
    ),
    *(
        Criterion(
            f"coverage {n} {shift}", f"coverage of the value, {n:,} rows, {shift} shift, mean over problems", 0.92
        )
        for n in SIZES
        for shift in ("small", "large")
    ),
    Criterion("coverage worst", "least coverage of a problem at 5,000 rows and more", 0.85),
    Criterion("efficiency rmse", "largest median over problems of RMSE ÷ bound, at 5,000 rows and more", None, 1.1),
    Criterion("efficiency width", "largest median over problems of width ÷ efficient width, likewise", None, 1.15),
    Criterion("null", "share of 'better' where the policy is what runs now", None, 0.07),
    Criterion("verdicts wrong", "share of wrong verdicts, wrong features", None, 0.02),
    Criterion("verdicts decided", "share decided of gains beyond three efficient standard errors", 0.5),
    Criterion("verdicts wrong unknown", "the same share of wrong verdicts without propensities", None, 0.02),
    Criterion("verdicts decided unknown", "the same share decided without propensities", 0.5),
    Criterion("selection worse 1000", "share of choices that are worse than now, 1,000 rows", None, 0.03),
    Criterion("selection worse 10000", "share of choices that are worse than now, 10,000 rows", None, 0.01),
    Criterion("selection gain 1000", "mean gain of the choice, 1 = optimal, 1,000 rows", 0.25),
    Criterion("selection gain 10000", "mean gain of the choice, 1 = optimal, 10,000 rows", 0.5),
    Criterion("pessimism little", "gain of pessimism 1 above plain, where 2 % is explored", 0.25),
    Criterion("pessimism much", "upper end of the same where 40 % is explored: no loss", 0.0),
)
