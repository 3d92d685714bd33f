"""Completion for bash: a script that is made of the commands' own options. tyro makes those of other shells."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

#: What ends the description of something that is a file or a folder.
PATHS = ("FILE...", "FILE", "DIR", "MODEL...", "FILE.toml", "FILE.py ...", "FILE.parquet", "MODEL.npz|FILE.py:NAME")


@dataclass(frozen=True)
class Argument:
    """An option, or what stands for itself (its flag is empty)."""

    flag: str
    takes: Literal["nothing", "one", "several"]
    words: tuple[str, ...]  # what it may be, where that is known
    is_path: bool


def arguments_of(command: Callable[..., Any], known: dict[str, tuple[str, ...]]) -> Iterator[Argument]:
    """Those of a command, by its options' types; ``known`` has the words of options that are any text."""
    kind = get_args(get_type_hints(command, include_extras=True)["options"])[0]
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        inner, marks = _taken_apart(hints[field.name])
        if any(mark == tyro.conf.Suppress for mark in marks):
            continue
        flag = "" if any(mark == tyro.conf.Positional for mark in marks) else f"--{field.name.replace('_', '-')}"
        if inner is bool:
            yield Argument(f"--no-{flag[2:]}" if field.default is True else flag, "nothing", (), False)
            continue
        words = known.get(field.name) or tuple(_choices(inner)) or tuple(_shown_choices(marks))
        is_path = any(getattr(mark, "metavar", None) in PATHS for mark in marks)
        yield Argument(flag, "several" if get_origin(inner) is tuple else "one", words, is_path)


def _taken_apart(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type itself, without None, and what is noted beside it."""
    marks: tuple[Any, ...] = ()
    while get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        marks += tuple(more)
    if get_origin(hint) in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not type(None)]
        hint = rest[0] if len(rest) == 1 else hint
    return hint, marks


def _choices(hint: Any) -> Iterator[str]:
    """The words of Literals in a type."""
    if get_origin(hint) is Literal:
        yield from map(str, get_args(hint))
    else:
        for inner in get_args(hint):
            yield from _choices(inner)


def _shown_choices(marks: tuple[Any, ...]) -> Iterator[str]:
    """The words of a description like {a,b} or a|b|NAME: those in small letters."""
    for mark in marks:
        shown = (getattr(mark, "metavar", None) or "").strip("{}[]. ").replace(",", "|").split("|")
        yield from (word for word in shown if word == word.lower() and word and len(shown) > 1)


SCRIPT = """# Completion of gqlab for bash, made by: gqlab --tyro-print-completion bash
_gqlab() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" last="" away=0 i
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "{commands} help --help --version" -- "$cur"))
    return
  fi
  for ((i = COMP_CWORD - 1; i > 1; i--)); do  # the last option before the word
    if [[ "${{COMP_WORDS[i]}}" == --* ]]; then last="${{COMP_WORDS[i]}}"; away=$((COMP_CWORD - i)); break; fi
  done
  local options="" words="" files=""
  case "$command" in
    help) options="{commands}"; words="{commands}" ;;
{cases}
  esac
  if [[ "$cur" == -* ]]; then
    words="$options"; files=""
  else
    case "$command $last" in
{values}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ -n "$files" ]]; then
    COMPREPLY+=($(compgen -f -- "$cur"))
    compopt -o filenames 2>/dev/null
  fi
}}
complete -F _gqlab gqlab
"""


def bash_script(commands: dict[str, Callable[..., Any]], known: dict[str, dict[str, tuple[str, ...]]]) -> str:
    """The script; ``known`` has words by command and option."""
    cases, values = [], []
    for name, command in commands.items():
        found = list(arguments_of(command, known.get(name, {})))
        own = next((a for a in found if not a.flag), Argument("", "nothing", (), False))
        flags = " ".join([*(a.flag for a in found if a.flag), "--help"])
        cases.append(f'    {name}) options="{flags}"; {_given(own)} ;;')
        for a in found:
            if a.flag and a.takes != "nothing":
                near = "" if a.takes == "several" else "if [[ $away -eq 1 ]]; then "
                values.append(f'      "{name} {a.flag}") {near}{_given(a)}{"; fi" if near else ""} ;;')
    return SCRIPT.format(commands=" ".join(commands), cases="\n".join(cases), values="\n".join(values))


def _given(argument: Argument) -> str:
    return f'words="{" ".join(argument.words)}"; files="{"yes" if argument.is_path else ""}"'


def known_words() -> dict[str, dict[str, tuple[str, ...]]]:
    """Words of options that may be any text: algorithms, encoders, environments."""
    import gymnasium

    from gqlab.algorithms import ALGORITHMS
    from gqlab.cli.theory import SETTINGS
    from gqlab.encoders.specs import KINDS
    from gqlab.learn.agent.core import AGENT
    from gqlab.learn.agent.replay import is_over_kept
    from gqlab.learn.fit.fit import MEMORY
    from gqlab.studies.compare.design import FAMILIES

    environments = tuple(sorted(name for name in gymnasium.registry if "/" not in name))
    encoders = tuple(KINDS)
    beside = tuple(name for name, kind in ALGORITHMS.items() if AGENT.takes(kind) or is_over_kept(kind))
    on_logs = tuple(name for name, kind in ALGORITHMS.items() if MEMORY.takes(kind))
    return {
        "train": {"env": environments, "algorithm": beside, "encoder": encoders},
        "fit": {"env": environments, "algorithm": on_logs, "encoder": encoders},
        "watch": {"env": environments},
        "compare": {"algorithm": tuple(ALGORITHMS), "problem": tuple(FAMILIES)},
        "theory": {"problem": tuple(SETTINGS)},
        "decide": {"features": ("trees", "tabular", *encoders)},
        "select": {"features": ("trees", "tabular", *encoders)},
    }
