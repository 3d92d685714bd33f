"""Where an algorithm runs: a way of running it has needs, a place makes offers, and :func:`way_in` matches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gqlab.estimators.needs import Need, Needs
from gqlab.support import checks


class Way(NamedTuple):
    """One way of running an algorithm: update by update with a compiled estimator, or by solving for θ at once."""

    estimator: Any  # a class; None: it solves
    needs: Needs


@dataclass(frozen=True)
class RunPlace:
    """Where algorithms run, and what it offers them."""

    name: str  # as messages say it
    offers: Needs

    def unmet(self, way: Way) -> list[Need]:
        """What a way needs and the place does not offer, in the order of :class:`Need`."""
        return [need for need in Need if need in way.needs - self.offers]

    def takes(self, kind: type) -> bool:
        """Whether a kind of algorithm runs here with the parameters that it has by default."""
        return any(not self.unmet(way) for way in kind().ways)


def unmet_need(place: RunPlace, algorithm: Any) -> Need | None:
    """What keeps an algorithm out of a place, by the way that comes nearest to it; None where one is open."""
    # Of two that come equally near the one that moves update by update is what the algorithm is known for.
    nearest = min(algorithm.ways, key=lambda way: (len(place.unmet(way)), way.estimator is None))
    return next(iter(place.unmet(nearest)), None)


def way_in(place: RunPlace, algorithm: Any) -> Way:
    """The first way of running an algorithm that a place can offer; ``ValueError`` in one line where there is none."""
    need = unmet_need(place, algorithm)
    if need is None:
        open_ways: list[Way] = [way for way in algorithm.ways if not place.unmet(way)]
        return open_ways[0]
    instead = ""
    if need is Need.BATCH and Need.WHOLE_MEAN in place.offers:
        instead = "; WholeDataVRGreedyGQ takes all rows as its batch"
    raise ValueError(
        f"algorithm is {checks.shown(algorithm)}, which needs {need.value}: {place.name} does not offer that{instead}"
    )
