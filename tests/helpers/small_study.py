"""A study of a few sums: what the tests of the framework run, here and in other processes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.keys import Call
from gqlab.studies.study import How, Study, run_study, write_texts


def partial_sums(n: int, factor: float) -> dict[str, Any]:
    """factor · (1 + 2 + … + k), for k up to n; and something of every kind that can be kept."""
    sums = factor * np.cumsum(np.arange(1, n + 1))
    pause = float(os.environ.get("GQLAB_TEST_PAUSE", "0"))
    time.sleep(pause)
    return {
        "sums": sums, "nested": {"last": [sums[-1:], {"x": np.inf}], "none": None}, "n": np.int64(n), "text": "ü",
        "times": {"pause": pause},
    }  # fmt: skip


def failing(n: int) -> dict[str, Any]:
    raise ValueError(f"{n} is too much")


class Sums(Study):
    """The sums for n = 1 … ``most``."""

    name = "sums"

    def __init__(self, most: int = 5, factor: float = 2.0, bad: Sequence[int] = ()) -> None:
        self.most, self.factor, self.bad = most, factor, bad

    def calls(self) -> list[Call]:
        calls = [Call(partial_sums, (n, self.factor), f"n = {n}", cost=n) for n in range(1, self.most + 1)]
        return calls + calls[:1] + [Call(failing, (n,), f"bad {n}") for n in self.bad]

    def gather(self, results: Sequence[dict[str, Any]]) -> list[float]:
        return [float(result["sums"][-1]) for result in results]

    def write(self, gathered: list[float], folder: Path) -> str:
        write_texts(folder, {"sums.json": json.dumps(gathered)})
        return f"{sum(gathered):g}"


if __name__ == "__main__":
    done = run_study(Sums(most=12), Path(sys.argv[1]), How(engine=sys.argv[2], workers=2))
    print(done.text, done.n_computed)
