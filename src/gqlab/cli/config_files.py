"""``--config FILE.toml``: a command's options in a file. What the command line says too counts, not the file's."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gqlab.cli.completion import Argument, arguments_of
from gqlab.support import checks
from gqlab.support.files import one_line, open_regular

#: What no file may say: these name other files that are run, or read.
NOT_IN_FILES = ("code", "config")


def expanded(given: list[str], command: Callable[..., Any]) -> list[str]:
    """The arguments with those of the file that ``--config`` names; the first is the command's name."""
    path, rest = _without_config(given[1:])
    known = [] if path is None else list(arguments_of(command, {}))
    if path is None or not any(argument.flag == "--config" for argument in known):
        return given
    try:
        found = list(_arguments(_read(path), known, rest))
    except ValueError as error:
        raise ValueError(f"{path}: {one_line(error)}") from None
    positional = [word for argument, words in found if not argument.flag for word in words]
    options = [word for argument, words in found if argument.flag for word in words]
    return [given[0], *positional, *rest, *options]


def _without_config(words: list[str]) -> tuple[Path | None, list[str]]:
    """The file, and the other words."""
    for k, word in enumerate(words):
        if word == "--config" and k + 1 < len(words):
            return Path(words[k + 1]), words[:k] + words[k + 2 :]
        if word.startswith("--config="):
            return Path(word.removeprefix("--config=")), words[:k] + words[k + 1 :]
    return None, words


def _read(path: Path) -> dict[str, Any]:
    try:
        with open_regular(path) as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"this is not TOML: {one_line(error)}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _arguments(values: dict[str, Any], known: list[Argument], rest: list[str]) -> Iterator[tuple[Argument, list[str]]]:
    """Every option of a file that the command line does not have, as words."""
    by_name = {_name(argument): argument for argument in known if argument.flag}
    own = {"env" if each.takes == "one" else "files": each for each in known if not each.flag}
    code = _named_code(rest)
    for name, value in values.items():
        key = name.replace("-", "_")
        argument = {**by_name, **own}.get(key)
        if argument is None or key in NOT_IN_FILES:
            listed = ", ".join(each for each in (*own, *by_name) if each not in NOT_IN_FILES)
            raise ValueError(f"{name} is unknown, expected any of {listed}")
        words = _words(key, value, argument)
        _check_imports(key, words, code)
        given = any(word == argument.flag or word.startswith(f"{argument.flag}=") for word in rest)
        if (argument.flag and not given) or (not argument.flag and (not rest or rest[0].startswith("-"))):
            yield argument, words


def _name(argument: Argument) -> str:
    """As a file has it: decide, not no_decide."""
    return argument.flag[2:].removeprefix("no-").replace("-", "_")


def _words(name: str, value: Any, argument: Argument) -> list[str]:
    """An option as the command line has it."""
    if argument.takes == "nothing":
        checks.instance(name, value, bool, "true or false")
        return [argument.flag] if value != argument.flag.startswith("--no-") else []
    if isinstance(value, dict):
        value = [f"{key}={_word(name, inner)}" for key, inner in value.items()]
    if isinstance(value, list) and argument.takes != "several":
        raise ValueError(f"{name} is {checks.shown(value)}, expected one value")
    words = [_word(name, each) for each in (value if isinstance(value, list) else [value])]
    if argument.flag and len(words) == 1:
        return [f"{argument.flag}={words[0]}"] if words[0].startswith("-") else [argument.flag, *words]
    return [argument.flag, *words] if argument.flag else words


def _word(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except TypeError:
        raise ValueError(f"{name} is {checks.shown(value)}, expected text, a number or a list of these") from None


def _named_code(rest: list[str]) -> set[Path]:
    """The files that ``--code`` names on the command line."""
    out, inside = set(), False
    for word in rest:
        if word.startswith("--code="):
            out.add(Path(word.removeprefix("--code=")).resolve())
        elif inside and not word.startswith("-"):
            out.add(Path(word).resolve())
        inside = word == "--code" if word.startswith("-") else inside
    return out


def _check_imports(name: str, words: Iterable[str], code: set[Path]) -> None:
    """``ValueError`` where a file asks for code to be run that the command line does not name."""
    for word in words:
        path, colon, _ = word.rpartition(":")
        if not colon or (name not in ("env", "algorithm") and not path.endswith(".py")):
            continue
        if not path.endswith(".py"):
            raise ValueError(f"{name} is {word!r}: a file cannot have a module imported; give it on the command line")
        if Path(path).resolve() not in code:
            raise ValueError(f"{name} is {word!r}: no file has another one run; add --code {path} to the command")
