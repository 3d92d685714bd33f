"""How the source is laid out: sizes of functions and files, and which way imports go."""

from __future__ import annotations

import ast
import importlib
import inspect
import operator
import pkgutil
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import gqlab
import gqlab.cli.main  # before a doctest leaves its last result in builtins, all of which tyro looks at
from gqlab.algorithms import ALGORITHMS
from gqlab.engine import code_folder
from gqlab.lab.execute import PLACES

PACKAGE = Path(gqlab.__file__).parent
ROOT = PACKAGE.parents[1]
SOURCES = sorted(PACKAGE.rglob("*.py"))
#: The engine and its parts; the theory, the paper's experiments and the command line have rules of their own.
ENGINE = [path for path in SOURCES if not {"theory", "paper", "cli"} & set(path.relative_to(PACKAGE).parts)]


def name_of(path: Path) -> str:
    return ".".join(["gqlab", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))


def imports(path: Path) -> set[str]:
    """The modules of gqlab that a file imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & MODULES or {str(node.module)}
    return {name for name in found if name.partition(".")[0] == "gqlab"}


MODULES = {name_of(path) for path in SOURCES}


@pytest.mark.parametrize("path", ENGINE, ids=name_of)
def test_no_function_takes_more_than_ten_parameters_by_place(path):
    for function in functions(path):
        assert len(function.args.posonlyargs) + len(function.args.args) <= 10, function.name


@pytest.mark.parametrize("path", ENGINE, ids=name_of)
def test_no_file_is_longer_than_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name == "rules"], ids=name_of)
def test_the_rules_know_nothing_but_the_rules(path):
    assert {name for name in imports(path) if not name.startswith("gqlab.rules")} == set()


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name in ("mdp", "exact")], ids=name_of)
def test_the_exact_quantities_share_no_code_with_the_rules(path):
    compiled_side = ("gqlab.rules", "gqlab.estimators", "gqlab.samples", "gqlab.engine", "gqlab.measure")
    assert {module for module in imports(path) if module.startswith(compiled_side)} == set()


def test_no_module_imports_what_imports_it():
    # The packages' own files only gather names for their users.
    graph = {name_of(path): imports(path) for path in SOURCES if path.name != "__init__.py"}
    order = list(TopologicalSorter(graph).static_order())  # CycleError names the circle
    assert set(graph) <= set(order)


def every_import(path: Path) -> set[str]:
    """The modules of gqlab that a file imports at all: in functions, for its types and by name too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & MODULES or {str(node.module)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
            found |= {text.value for text in node.args if isinstance(text, ast.Constant)}
    return {name for name in found if name.partition(".")[0] == "gqlab"}


def test_models_do_not_know_where_they_are_played_nor_data_who_collects_them():
    """Imports in functions too: what makes a thing lies above it."""
    graph = {name_of(path): every_import(path) for path in SOURCES}

    def reached(start: str) -> set[str]:
        found, waiting = set(), [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - found
            found |= new
            waiting.extend(new)
        return found

    assert "gqlab.learn.linear_q" not in reached("gqlab.learn.environments") | reached("gqlab.learn.playing")
    assert "gqlab.data.collecting" not in reached("gqlab.data.transitions")


def room_of(name: str) -> str:
    return [*name.split("."), ""][1]


def test_imports_between_rooms_have_no_cycle():
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        room = room_of(name_of(path))
        rooms = {room_of(name) for name in every_import(path)} - {room, "", "version"}
        if room not in ("", "__main__", "version"):
            graph.setdefault(room, set()).update(rooms)
    order = list(TopologicalSorter(graph).static_order())  # CycleError names the circle
    assert set(order) == {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    drawn = [name for name in re.findall(r"^      (\w+)/ ", the_map(), flags=re.M) if name in graph]
    assert [(a, b) for a in graph for b in graph[a] if drawn.index(b) > drawn.index(a)] == []  # the map's order


def the_map() -> str:
    """The rooms as CONTRIBUTING.md lists them."""
    [found] = re.findall(r"^    src/gqlab/ .*\n(?:      .*\n)+", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M)
    return str(found)


def test_the_map_has_every_room_and_is_short_enough_to_read():
    rooms = {path.parent.name for path in SOURCES if path.name == "__init__.py"} - {"gqlab"}
    assert set(re.findall(r"\b(\w+)/(?=[ ,])", the_map())) - {"gqlab"} == rooms
    assert the_map().count("\n") <= 60


def test_the_tests_are_laid_out_as_the_rooms_are():
    rooms = {path.parent.name for path in SOURCES if path.name == "__init__.py" and path.parent.parent == PACKAGE}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders - rooms == {"documents", "fuzz", "property", "site", "statistical"}
    assert rooms - folders == {"estimators", "rules"}  # tested where they run
    assert not list((ROOT / "tests").glob("test_*.py"))


def test_the_top_of_the_package_holds_no_modules_but_its_own():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "version.py"}


def test_plots_are_given_arrays():
    found = {room_of(name) for path in SOURCES if path.parent.name == "plots" for name in every_import(path)}
    assert found <= {"plots", "support"}


# --- What the key of compiled code covers ---------------------------------------------------------------------------


def compiled_modules() -> set[str]:
    """The modules that define something which is compiled: a dispatcher, an overload, or a part with methods."""
    found = set()
    for module in pkgutil.walk_packages([str(PACKAGE)], "gqlab."):
        if module.name.startswith(("gqlab.studies.paper", "gqlab.engine.cuda")):
            continue  # without compiled code, and for a GPU
        for thing in vars(importlib.import_module(module.name)).values():
            if getattr(thing, "__module__", None) != module.name:
                continue
            is_part = inspect.isclass(thing) and issubclass(thing, tuple) and hasattr(thing, "_fields")
            own = [f for f in vars(thing).values() if inspect.isfunction(f)] if is_part else []
            if isinstance(thing, Dispatcher) or any(f.__module__ == module.name for f in own):
                found.add(module.name)
    for path in SOURCES:
        if any("overload" in ast.unparse(decorator) for f in functions(path) for decorator in f.decorator_list):
            found.add(name_of(path))
    return found


def test_the_key_of_compiled_code_covers_every_file_that_holds_some():
    covered = {name_of(path) for path in code_folder.compiled_sources()}
    found = compiled_modules()
    assert {
        "gqlab.rules.gradient",
        "gqlab.rules.numbers",
        "gqlab.samples.random",
        "gqlab.algorithms.schedules",
    } <= found
    assert {"gqlab.operators.softmax", "gqlab.estimators.svrg", "gqlab.engine.loop", "gqlab.measure.watch"} <= found
    assert found - covered == set()


def test_every_file_that_the_key_covers_changes_it(tmp_path, monkeypatch):
    """Each of them changed in turn, in a copy of the package."""
    copies = tmp_path / "gqlab"
    for path in code_folder.compiled_sources():
        copy = copies / path.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(code_folder, "PACKAGE", copies)
    keys = [code_folder.source_digest()]
    assert len(code_folder.compiled_sources()) > 20
    for path in code_folder.compiled_sources():
        path.write_bytes(path.read_bytes() + b"# changed\n")
        keys.append(code_folder.source_digest())
    assert len(set(keys)) == len(keys)
    assert keys[0] == code_folder.SOURCES


# --- Names ------------------------------------------------------------------------------------------------------------


#: Words that say nothing of what a name stands for.
QUAINT = {"mine", "paid", "said", "some", "there", "told", "unsaid"}


def test_names_are_plain():
    found = {}
    for path in SOURCES:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {node.arg for node in nodes if isinstance(node, ast.arg)}
        names |= {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        found[name_of(path)] = {name.strip("_") for name in names} & QUAINT
    assert {name: words for name, words in found.items() if words} == {}


def test_a_class_has_a_name_of_its_own():
    """One name, one meaning: no two modules define classes, or names of types, that are called the same."""
    where: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            names += [node.name] if isinstance(node, ast.ClassDef) else []
            for name in names:
                if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name):
                    where.setdefault(name, []).append(name_of(path))
    assert {name: modules for name, modules in where.items() if len(modules) > 1} == {}


def test_a_name_that_was_given_up_is_answered_by_the_new_one():
    assert {"sweep": "vary", "open_sweep": "open_grid", "sweeps": "tasks"}.items() <= gqlab.RENAMED.items()
    changes = (ROOT / "CHANGELOG.md").read_text().partition("\n## 0.1.0")[0]
    for old, new in gqlab.RENAMED.items():
        with pytest.raises(AttributeError, match=rf"^gqlab\.{old} is called gqlab\.{re.escape(new)} now$"):
            getattr(gqlab, old)
        assert callable(operator.attrgetter(new)(gqlab)) or inspect.ismodule(getattr(gqlab, new))
        assert old not in gqlab.__all__
        assert re.search(rf"`gq\.{old}\b[^|]*\|[^|]*`gq\.{re.escape(new)}\b", changes), (old, new)


def test_the_version_is_behind_the_last_release():
    """Where there are changes that are not released, the version is none of a release: files and bug reports name it."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    last = re.findall(r"^## (\d[\d.]*)", changes, re.MULTILINE)[0]
    assert "\n## Unreleased\n\n###" in changes
    number, dev, _ = gqlab.__version__.partition(".dev")
    assert dev
    assert [int(n) for n in number.split(".")] > [int(n) for n in last.split(".")]


def test_the_docstring_of_run_names_every_algorithm():
    public = [name for name, kind in ALGORITHMS.items() if name in gqlab.__all__ and PLACES["cpu"].takes(kind)]
    assert len(public) > 10
    assert [name for name in public if f"``{name}``" not in str(gqlab.run.__doc__)] == []
