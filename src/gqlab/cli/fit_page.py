"""The report of ``gqlab fit``: the history of a fit as a figure, and one self-contained page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.cli.pages import score, written
from gqlab.learn.linear_q import LinearQ
from gqlab.learn.playing import Evaluation
from gqlab.plots.style import BLUE, GREEN, INK, VERMILION, label_powers, short, write_figure
from gqlab.studies.page import Table, facts_table, figure, whole_page
from gqlab.support.files import write_whole
from gqlab.support.words import counted

#: The columns of a history, with their titles.
COLUMNS = {"updates": "updates", "mspbe": "J", "gradient": "‖∇J‖²", "max_q": "max |Q|"}


def page(
    model: LinearQ, algorithm: Any, data: Any, played: Evaluation | None, folder: Path, judged: Sequence[str] = ()
) -> str:
    """Write the figure and the table into the folder; the text of the whole page, which begins with what ``judged``."""
    history = model.history
    write_whole(folder / "history.csv", lambda file: file.write(_csv(history).encode()))
    svg = write_figure(lambda: draw(model), folder, "history")
    shown = np.unique(np.linspace(0, len(history["updates"]) - 1, 12).astype(int))
    rows = [[f"{history['updates'][k]:,}", *(f"{history[name][k]:.4g}" for name in list(COLUMNS)[1:])] for k in shown]
    title = f"{type(algorithm).__name__} on {data.n_rows:,} logged transitions"
    top = "" if played is None else f"<p class=score>{score(played.mean)}</p>\n"
    return whole_page(
        title,
        f"{top}{_judged(judged)}{''.join(f'<p class=lead>{escape(line)}</p>' for line in summary(model, played))}\n"
        f"{_warnings(model)}{figure(svg)}\n"
        f"<h2>On the way</h2>\n<p>J and its gradient are those of the data: means over "
        "their rows, by regressions of δ on the features.</p>\n"
        f"{Table(tuple(COLUMNS.values()), rows).html('plain')}\n"
        f"<h2>How it was learned</h2>\n{facts_table(_facts(model, algorithm, data))}\n"
        f"<h2>To use it</h2>\n<pre><code>{escape(USAGE)}</code></pre>\n",
    )


def _judged(lines: Sequence[str]) -> str:
    """The answer to whether the model is better than what runs now, and where it comes from."""
    first, more = lines[:1], lines[1:]
    return "".join(f"<p class=lead><strong>{escape(line)}</strong></p>\n" for line in first) + "".join(
        f"<p>{escape(line)}</p>\n" for line in more
    )


USAGE = """import gqlab as gq

model = gq.LinearQ.load("model.npz")
model.q(observation)        # the values of all actions
action, _ = model.predict(observation)  # the best of them
"""


def summary(model: LinearQ, played: Evaluation | None) -> list[str]:
    """The outcome, in a sentence or two."""
    history = model.history
    lines = [
        f"After {history['updates'][-1]:,} updates: J {history['mspbe'][-1]:.4g}, ‖∇J‖² {history['gradient'][-1]:.4g}, "
        f"max |Q| {history['max_q'][-1]:.4g} where nothing above {history['q_bound'][-1]:.4g} makes sense."
    ]
    if played is not None:
        lines.append(
            f"The greedy policy's mean return over {counted(len(played.returns), 'episode')} is {score(played.mean)}, "
            f"standard deviation {played.std:.1f}."
        )
    return lines


def draw(model: LinearQ) -> Any:
    """J and ‖∇J‖² on the left, max |Q| with its bound on the right, against updates."""
    from matplotlib.figure import Figure

    history = model.history
    drawn = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = drawn.subplots(1, 2)
    updates = history["updates"]
    for name, colour in (("mspbe", BLUE), ("gradient", VERMILION)):
        left.plot(updates, np.maximum(history[name], 1e-300), color=colour, label=COLUMNS[name])
    left.set(yscale="log", title="the data's own objective")
    label_powers(left)
    right.plot(updates, history["max_q"], color=GREEN, label="max |Q|")
    right.plot(updates, history["q_bound"], "--", color=INK, linewidth=1, label="r_max / (1 − γ)")
    right.set_ylim(bottom=0)
    right.set_title("the largest action value")
    for axes in (left, right):
        axes.set_xlabel("updates")
        axes.xaxis.set_major_locator(_few())
        axes.xaxis.set_major_formatter(short)
        axes.legend()
    return drawn


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _csv(history: Any) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    names = [*COLUMNS, "q_bound"]
    writer.writerow(names)
    writer.writerows(zip(*(history[name].tolist() for name in names), strict=True))
    return text.getvalue()


def _warnings(model: LinearQ) -> str:
    warnings = []
    if model.metadata["diverged"]:
        warnings.append("The updates overflowed: this is the last finite model. Use a smaller step size.")
    elif model.history["max_q"][-1] > 2 * model.history["q_bound"][-1]:
        warnings.append(
            "The largest |Q| is more than twice what any policy can earn: the values have blown up. Use a smaller "
            "step size, a ridge, fewer features, or an algorithm with a correction (VRGreedyGQ)."
        )
    return "".join(f"<p class=bad>{escape(line)}</p>\n" for line in warnings)


def _facts(model: LinearQ, algorithm: Any, data: Any) -> list[tuple[str, str]]:
    encoder = model.encoder
    return [
        ("data", f"{data.description}: {counted(data.n_rows, 'transition')}, {counted(data.n_actions, 'action')}"),
        *([] if data.action_labels is None else [("actions", ", ".join(map(str, data.action_labels)))]),
        *([("how rows were read", " ".join(data.notes))] if data.notes else []),
        ("algorithm", repr(algorithm)),
        ("encoder", written(encoder)),
        ("features", f"{encoder.n_features_out_:,} for each action, {encoder.n_active_:,} active"),
        ("discount", f"{model.discount:g}"),
        ("seed", str(model.metadata["seed"])),
    ]
