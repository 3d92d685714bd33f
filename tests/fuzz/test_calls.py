"""Hostile calls of everything public: a valid result, or one line that names the argument."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections import Counter

import matplotlib.pyplot as plt
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import gqlab as gq
from fuzz import calls
from fuzz.calls import CAMPAIGN, CASES
from gqlab import theory

seen: Counter[str] = Counter()
found: dict[str, str] = {}


def names(function, arguments):
    """The words of which a message must hold one: the parameters, and of a problem or an algorithm what it is made of."""
    known = {*calls.parameters(function), *arguments}
    parts = {
        "problem": {"features", "target", "behavior"},
        "algorithm": {"eta_theta", "eta_omega", "radius", "batch_size"},
    }
    return known.union(*(parts.get(name, set()) for name in known))


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """Some calls write files, under any name, and some draw: many figures are open at a time."""
    with contextlib.chdir(tmp_path_factory.mktemp("fuzz")), plt.rc_context({"figure.max_open_warning": 0}):
        plt.switch_backend("Agg")
        yield
        plt.close("all")


@settings(
    max_examples=CASES, deadline=None, derandomize="GQLAB_FUZZ_CASES" not in os.environ, database=None,
    phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(call=calls.calls())
def test_every_call_gives_a_valid_result_or_one_line_that_names_an_argument(call):
    try:
        check(*call)
    except Exception as error:
        if not CAMPAIGN:
            raise
        kind = f"{call[0]}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if found.setdefault(kind[:100], line := f"{kind}\n    {call[2]!r}") is line:
            print(line, flush=True)


def check(title, function, arguments):
    before = {name: calls.snapshot(value) for name, value in arguments.items()}
    try:
        result = function(**arguments)
    except (ValueError, TypeError) as error:
        message = str(error)
        assert "\n" not in message, message
        assert len(message) < 600, message
        words = set(re.findall(r"\w+", message))
        if "path" in arguments:  # a message about a file gives its name
            words |= {"path"} & {"path" if str(arguments["path"]) in message else ""}
        assert words & names(function, arguments), f"{title} names none of its arguments: {message}"
        seen["refused"] += 1
    except ImportError as error:  # a package that not everybody has
        message = str(error)
        assert re.fullmatch(r"[^\n]* needs [\w-]+: pip install [^\n]+", message), message
        seen["refused"] += 1
    except OSError:  # a file that is not there, or cannot be written
        if "path" not in arguments:
            raise
        seen["refused"] += 1
    else:
        assert calls.finite(result), result
        seen["valid"] += 1
    assert {name: calls.snapshot(value) for name, value in arguments.items()} == before
    seen[title.partition("[")[0]] += 1


def test_a_campaign_found_nothing():
    assert not found, "\n".join([f"{len(found)} kinds:", *found.values()])


def test_both_outcomes_were_seen_of_every_function():
    """Runs after the other: it would not notice that one kind of outcome never comes."""
    if not seen:
        pytest.skip("runs after the calls")
    print(f"\n{seen['valid'] + seen['refused']} calls: {seen['valid']} valid results, {seen['refused']} refused")
    assert min(seen["valid"], seen["refused"]) > CASES // 10
    if 20 * len(calls.TARGETS) <= CASES:
        assert {title.partition("[")[0] for title, _, _ in calls.TARGETS} <= set(seen)


@pytest.mark.parametrize("title", [title for title, _, _ in calls.TARGETS])
def test_every_parameter_has_a_strategy(title):
    [(function, owners)] = [(function, owners) for name, function, owners in calls.TARGETS if name == title]
    for name in calls.parameters(function):
        calls.valid(name, owners)


def test_every_public_name_is_called():
    called = {owners[0] for _, _, owners in calls.TARGETS} | {thing.__name__ for thing in calls.NOT_CALLED}
    public = {name for module in (gq, theory) for name in module.__all__ if callable(getattr(module, name))}
    assert {name for name in public if not inspect.isabstract(getattr(gq, name, None))} <= called
