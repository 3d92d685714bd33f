"""The theory, executable: every assumption, constant, condition and bound of the paper, for a problem of your own.

>>> import gqlab as gq
>>> mdp = gq.garnet(seed=0)
>>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
>>> report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=100.0), n_epochs=33)
>>> report.corrected.conditions_hold, report.corrected.guarantee
(False, 'no')
>>> f"{gq.theory.step_sizes(problem, batch_size=3000, radius=100.0, version='printed').eta_theta:.0e}"
'2e-28'

The derivations, the list of the paper's inconsistencies and the proof of the corrected bound are in
docs/theory_proofs.md.
"""

from gqlab.theory.analyse import analyse
from gqlab.theory.choose import Schedule, StepSizes, schedule, step_sizes
from gqlab.theory.companion import GreedyReport, analyse_greedy
from gqlab.theory.greedy import GreedyBound, best_greedy
from gqlab.theory.plugin_bound import PlugIn, plug_in
from gqlab.theory.practical import Attempt, Practical, Tried, mean_dynamics_step_sizes, try_steps
from gqlab.theory.repairs import REPAIRS, Repair
from gqlab.theory.report import Report
from gqlab.theory.search import Choice, best_steps, largest_eta_theta, least_samples
from gqlab.theory.sharp import Sharp, sharp_constants
from gqlab.theory.statements import Statement, mapping

__all__ = [
    "REPAIRS",
    "Attempt",
    "Choice",
    "GreedyBound",
    "GreedyReport",
    "PlugIn",
    "Practical",
    "Repair",
    "Report",
    "Schedule",
    "Sharp",
    "Statement",
    "StepSizes",
    "Tried",
    "analyse",
    "analyse_greedy",
    "best_greedy",
    "best_steps",
    "largest_eta_theta",
    "least_samples",
    "mapping",
    "mean_dynamics_step_sizes",
    "plug_in",
    "schedule",
    "sharp_constants",
    "step_sizes",
    "try_steps",
]
