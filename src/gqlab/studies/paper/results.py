"""The results of an experiment: what every algorithm gave on every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gqlab.studies.paper.design import Experiment, Request
from gqlab.studies.paper.jobs import Measurement
from gqlab.studies.study import Result


@dataclass(frozen=True)
class Results:
    """Of an experiment: ``results[part, number][label]`` is what an algorithm gave on problem ``number``."""

    experiment: Experiment
    request: Request
    measured: dict[tuple[str, int], dict[str, Measurement]]

    @classmethod
    def of(cls, experiment: Experiment, request: Request, found: Sequence[Result]) -> Results:
        """From one result for each of ``request.jobs(experiment)``, in their order."""
        measured: dict[tuple[str, int], dict[str, Measurement]] = {}
        left = iter(found)
        for part, number, entry in request.places(experiment):
            measured.setdefault((part.name, number), {})[entry.label] = Measurement.of(next(left))
        return cls(experiment, request, measured)

    def __getitem__(self, key: tuple[str, int]) -> dict[str, Measurement]:
        return self.measured[key]

    def numbers(self, part: str) -> range:
        """The numbers of a part's problems."""
        return self.request.numbers(self.experiment.part(part))

    def each(self, part: str, name: str) -> list[Measurement]:
        """What an algorithm gave on every problem of a part."""
        return [self.measured[part, number][name] for number in self.numbers(part)]
