"""The tests of all algorithms once more, for the family at the statistical floor: a file of its own, a worker of its own."""

from __future__ import annotations

import pytest
from test_conformance import (  # noqa: F401 - they are collected here
    ALWAYS,
    SMALL,
    algorithm_of,
    pure_python,
    seldom,
    test_a_fixed_target_policy_is_accepted_elsewhere,
    test_a_run_does_not_depend_on_the_others_on_threads_or_on_records,
    test_a_saved_algorithm_is_the_same_one,
    test_a_second_call_with_other_parameters_compiles_nothing,
    test_resuming_from_files_at_several_stops_is_the_run_that_never_stopped,
    test_single_precision_stays_close,
    test_the_same_seed_is_the_same_run_and_another_one_is_not,
    test_the_source_without_the_compiler_gives_the_same_run,
)

from gqlab.algorithms import ALGORITHMS, family

KINDS = [kind for kind in ALGORITHMS.values() if kind.__module__ == family.__name__]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def algorithm(request):
    return algorithm_of(request.param, SMALL)


@pytest.fixture(params=seldom(KINDS, ALWAYS), ids=lambda kind: kind.__name__)
def compiled_again(request):
    return algorithm_of(request.param, SMALL)
