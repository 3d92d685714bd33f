"""The table of algorithms and places in docs/algorithms.md, made from what algorithms need and places offer.

python docs/_ext/places.py            write it into the page
python docs/_ext/places.py --check    say whether the page has it
"""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import gqlab as gq
from gqlab.algorithms import ALGORITHMS, Algorithm
from gqlab.algorithms.places import RunPlace, unmet_need, way_in
from gqlab.estimators.needs import Need
from gqlab.lab.execute import PLACES as DEVICES
from gqlab.learn.agent.core import AGENT
from gqlab.learn.agent.replay import REPLAYING, way_over_kept
from gqlab.learn.fit.fit import FILES, MEMORY, SHARED

PAGE = Path(__file__).parents[1] / "algorithms.md"
BEGIN, END = "<!-- table of places -->\n", "<!-- end of the table -->\n"

#: The columns: their heads, and the places that are tried one after another.
COLUMNS: dict[str, tuple[RunPlace, ...]] = {
    "`run`, `grid`": (DEVICES["cpu"],),
    "on a GPU": (DEVICES["cuda"],),
    "`Agent`": (AGENT,),
    "with `replay`": (REPLAYING,),
    "`fit` in memory": (MEMORY,),
    "over files": (FILES, MEMORY),
    "on an engine": (SHARED,),
}

#: The places where an update on sparse features can cost as much as these have entries.
SPARSE = (AGENT, MEMORY, FILES, SHARED)

#: Besides every algorithm with its defaults, those whose parameters change what they need.
VARIANTS: dict[str, Algorithm] = {
    "`GreedyGQ`, `QRC`, `QLearning` with `trace`": gq.GreedyGQ(trace=0.9),
    "`Sarsa` with `trace`": gq.Sarsa(trace=0.9),
    '`VRGreedyGQ` with `keep="all"`': gq.VRGreedyGQ(keep="all"),
    '`SARAHGreedyGQ` with `growth=1`, `keep="new"`': gq.SARAHGreedyGQ(growth=1.0, keep="new"),
    '`LeastSquaresGreedyGQ` with `behavior="known"`': gq.LeastSquaresGreedyGQ(behavior="known"),
}


def rows() -> dict[str, Algorithm]:
    """The algorithms of the table by what their rows are called."""
    own = {name: kind for name, kind in ALGORITHMS.items() if kind.__module__.startswith("gqlab.algorithms.")}
    return {**{f"`{name}`": kind() for name, kind in own.items()}, **VARIANTS}


def cell(places: tuple[RunPlace, ...], algorithm: Algorithm) -> str:
    """✓, with a star where rows are read into memory and a dagger where sparse features do not help, or the lack."""
    if places == (REPLAYING,):
        return over_kept(algorithm)
    lacking = [unmet_need(place, algorithm) for place in places]
    if None in lacking:
        place = places[lacking.index(None)]
        return "✓" + "*" * (lacking[0] is not None) + "†" * (place in SPARSE and in_full(place, algorithm))
    need = lacking[-1]
    assert need is not None
    return need.name.lower().replace("_", " ")


def in_full(place: RunPlace, algorithm: Algorithm) -> bool:
    """Whether an update moves all of θ, however few entries the features of its samples have."""
    kind = way_in(place, algorithm).estimator
    form = kind.sparse_form() if hasattr(kind, "sparse_form") else kind
    return form is not None and not hasattr(form, "drifts")


def over_kept(algorithm: Algorithm) -> str:
    """How an algorithm runs over what an agent keeps."""
    for replay, shown in ((gq.Replay(), "✓"), (gq.Refit(), "`Refit`")):
        with contextlib.suppress(ValueError):
            way_over_kept(replay, algorithm)
            return shown
    return "–"


def table() -> str:
    """The table, and what the words in it mean."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    found = set()
    for name, algorithm in rows().items():
        cells = [cell(places, algorithm) for places in COLUMNS.values()]
        found |= set(cells)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    words = [need for need in Need if need.name.lower().replace("_", " ") in found]
    meaning = "; ".join(f"*{need.name.lower().replace('_', ' ')}*: {need.value}" for need in words)
    return "\n".join(
        [
            *lines,
            "",
            "✓*: the files are read into memory. ✓†: an update costs $O(d)$ on sparse features too; elsewhere in "
            "`Agent` and `fit` it costs as much as the features have entries, or an algorithm solves with matrices. "
            f"What is needed and not offered: {meaning}. With `replay`: ✓ with `gq.Replay`, `Refit` with `gq.Refit`, "
            "– where there is no form over what is kept.",
            "",
        ]
    )


def with_table(text: str) -> str:
    """The page with the table as it is now."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table()}\n{END}", text, flags=re.S)


if __name__ == "__main__":
    page = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if with_table(page) == page else f"{PAGE.name}: the table of places is another one: make tables")
    PAGE.write_text(with_table(page))
