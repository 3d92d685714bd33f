"""Options that say how an environment is made: keywords, wrappers, files of the user's own."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gqlab.support.files import one_line
from gqlab.support.own_files import import_file

if TYPE_CHECKING:
    from gqlab.learn.environments import EnvPlan

#: Words that Python writes in another way than TOML.
PYTHON_WORDS = {"True": True, "False": False, "None": None}


@dataclass(frozen=True)
class EnvOptions:
    """How the environment is made."""

    env_kwargs: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[KEY=VALUE ...]", help_behavior_hint="")] = ()
    """Keywords of the environment, such as is_slippery=False map_name=8x8."""

    wrappers: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME:KEY=VALUE,... ...]", help_behavior_hint="")] = ()
    """Wrappers of gymnasium.wrappers, the innermost first, such as TimeLimit:max_episode_steps=200
    FlattenObservation."""

    code: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE.py ...", help_behavior_hint="")] = ()
    """Files of your own that are run first: they may register environments, and hold what --config names as
    FILE.py:NAME."""


def env_plan(env: str, options: EnvOptions) -> EnvPlan:
    """The environment that the options ask for, its keywords typed as it wants them."""
    from gqlab.learn.environments import EnvPlan, single_spaces

    for path in options.code:
        _imported("code", path)
    module, colon, name = env.rpartition(":")
    if colon and module.endswith(".py"):
        _imported("env", Path(module))
        env = name
    elif colon:
        if os.getcwd() not in sys.path:  # as python -m has it
            sys.path.append(os.getcwd())
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise ValueError(f"env is {env!r}: {error}") from None
    wrappers = tuple(_wrapper(text) for text in options.wrappers)
    plan = EnvPlan(env, typed_keywords(env, options.env_kwargs), wrappers)
    with contextlib.closing(plan.make()) as made:  # what is wrong with it is said before anything is written
        single_spaces(made)
    return plan


def _imported(argument: str, path: Path) -> None:
    try:
        import_file(path)
    except ValueError as error:
        raise ValueError(f"{argument} is {str(path)!r}: {error}") from None


def typed_keywords(env: str, texts: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE by the signature of the environment: text where it wants text, truth values where it wants these."""
    if not texts:
        return {}
    known = _parameters(env)
    out: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"env_kwargs is {text!r}, expected KEY=VALUE, as in is_slippery=False")
        if known is not None and key not in known:
            raise ValueError(f"env_kwargs: {env} has no {key}, expected any of {', '.join(known)}")
        out[key] = _typed(key, value, None if known is None else known[key])
    return out


def _parameters(env: str) -> dict[str, inspect.Parameter] | None:
    """What an environment takes; None where nobody can tell, or it takes anything."""
    import gymnasium
    from gymnasium.envs.registration import load_env_creator

    spec = gymnasium.registry.get(env.rpartition(":")[2])
    if spec is None or spec.entry_point is None:
        return None
    try:
        made = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
        parameters = inspect.signature(made).parameters
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return dict(parameters) | {"max_episode_steps": inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, default=1)}


def _typed(key: str, text: str, parameter: inspect.Parameter | None) -> Any:
    """A value as the parameter wants it: by its default, or by its annotation."""
    value = plain_value(text)
    default = None if parameter is None or parameter.default is parameter.empty else parameter.default
    wanted = str(getattr(parameter, "annotation", ""))
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ValueError(f"env_kwargs: {key} is {text!r}, expected true or false")
        return value
    if isinstance(default, str) or (default is None and wanted.startswith(("str", "<class 'str'"))):
        return value if value is None else text.strip("\"'")
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if isinstance(default, int | float) and not isinstance(value, int | float):
        raise ValueError(f"env_kwargs: {key} is {text!r}, expected a number")
    return value


def plain_value(text: str) -> Any:
    """A value as TOML or Python writes it; text that is neither is itself.

    Examples
    --------
    >>> [plain_value(text) for text in ("8", "8x8", "False", "[1, 2]")]
    [8, '8x8', False, [1, 2]]
    """
    if text in PYTHON_WORDS:
        return PYTHON_WORDS[text]
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _wrapper(text: str) -> tuple[str, dict[str, Any]]:
    """NAME, or NAME:KEY=VALUE,KEY=VALUE."""
    name, colon, rest = text.partition(":")
    try:
        pairs = [part.split("=", 1) for part in rest.split(",")] if colon else []
        return name, {key: plain_value(value) for key, value in pairs}
    except ValueError as error:
        raise ValueError(f"wrappers is {text!r}, expected NAME:KEY=VALUE,KEY=VALUE ({one_line(error)})") from None
