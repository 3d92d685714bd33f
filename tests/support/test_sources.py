"""Which files decide a result: closures of imports, and digests of code that has no file."""

from __future__ import annotations

import collections
import importlib
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.engine import code_folder
from gqlab.support import sources
from gqlab.support.imports import imports_any, imports_of
from gqlab.support.sources import closure, code_digest


def modules(name: str) -> set[str]:
    return set(closure(name).modules)


# --- One module's imports -------------------------------------------------------------------------------------------


def pairs(text: str, name: str = "pack.inner.here", is_package: bool = False) -> set[tuple[str, str]]:
    return set(imports_of(textwrap.dedent(text).encode(), name, is_package).pairs)


def test_absolute_relative_and_lazy_imports_are_found():
    assert pairs("import a.b, c as d") == {("a.b", ""), ("c", "")}
    assert pairs("from . import x\nfrom .y import z\nfrom ..w import v") == {
        ("pack.inner", "x"), ("pack.inner.y", "z"), ("pack.w", "v"),
    }  # fmt: skip
    assert pairs("from .y import z", "pack", is_package=True) == {("pack.y", "z")}
    text = """
    def f():
        try:
            import a
        except ImportError:
            import b
        with open(x) as g:
            while True:
                from c import d
        match 1:
            case 1:
                import e
    class K:
        import h
    """
    assert pairs(text) == {("a", ""), ("b", ""), ("c", "d"), ("e", ""), ("h", "")}


def test_what_only_type_checkers_read_does_not_count():
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    assert pairs(text) == {("typing", "TYPE_CHECKING"), ("b", "")}


def test_modules_that_are_named_in_text_are_found():
    found = imports_of(b'LAZY = {"Agent": "pack.learn"}\nx = import_module("alone")\ny = "a.b, c"\n', "pack.here")
    assert found.texts == {"pack.learn", "alone"}
    relative = imports_of(b'import_module(".near", __package__)', "pack.here")
    assert relative.texts == {"pack.near"}
    assert imports_of(b'"""Names pack.learn."""\n# "pack.learn"\n', "pack.here").texts == set()


# --- Closures of gqlab ----------------------------------------------------------------------------------------------


def test_a_name_of_a_package_is_looked_up_where_it_is_defined():
    logs = modules("gqlab.studies.logs.study")  # ``from gqlab.encoders import Fourier``
    assert {"gqlab.encoders.fourier", "gqlab.data.collecting", "gqlab.learn.fit.fit"} <= logs
    assert not {"gqlab", "gqlab.encoders", "gqlab.data", "gqlab.learn.agent.agent"} & logs
    assert "gqlab.operators" in modules("gqlab.lab.execute")  # it holds more than imports: OPERATORS


def test_a_closure_follows_imports_inside_functions_and_leaves_out_what_draws():
    agents = modules("gqlab.studies.agents.runs")
    assert "gqlab.learn.agent.agent" in agents
    for name in ("gqlab.studies.agents.runs", "gqlab.studies.compare.measure", "gqlab.lab.results"):
        assert not [module for module in modules(name) if module.startswith(("gqlab.plots", "gqlab.cli"))], name
    assert "gqlab.plots.worlds" in str(sources.read_package()["problems/problem.py"])  # which is there to be followed


def test_a_closure_knows_the_libraries_that_it_reaches():
    assert closure("gqlab.studies.logs.study").libraries >= {"numpy", "numba", "gymnasium", "sklearn"}
    assert "sklearn" not in closure("gqlab.lab.execute").libraries


def test_the_versions_of_libraries_are_part_of_a_digest(monkeypatch):
    def digests() -> list[str]:
        sources._digest.cache_clear()
        return [code_digest(name) for name in ("gqlab.studies.logs.study", "gqlab.exact.objective")]

    before = digests()
    for library, changed in {"numpy": (True, True), "numba": (True, True), "scikit-learn": (True, False)}.items():
        with monkeypatch.context() as patch:
            patch.setattr(sources, "_version", lambda package, changed=library: "9" * (package == changed))
            other = digests()
            patch.setattr(sources, "_version", lambda package: "")
            plain = digests()
        assert tuple(a != b for a, b in zip(other, plain, strict=True)) == changed, library
    assert digests() == before


def test_the_fast_look_at_imports_sees_what_the_syntax_tree_sees():
    found = 0
    for path, source in sources.read_package().items():
        imports = imports_of(source, sources.gqlab_name(path), path.endswith("__init__.py"))
        names = {name for pair in imports.pairs for name in (pair[0], ".".join(pair))}
        slow = any(f"{name}.".startswith(f"{room}.") for name in names for room in code_folder.COMPILERS)
        assert imports_any(source, code_folder.COMPILERS) == slow, path
        found += slow
    assert found > 20
    assert imports_any(b"from gqlab import (\n    rules,\n)", ["gqlab.rules"])
    assert not imports_any(b'"""\nfrom gqlab.rules import x\n"""', ["gqlab.rules"])
    assert code_folder.PACKAGE / "exact" / "exact.py" not in code_folder.compiled_sources()


# --- The user's own files -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder on the way of imports, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        sys.modules.pop(name)


def loaded(folder: Path, name: str, **files: str) -> Any:
    """A module, of files that are written, or written anew; "in_" stands for a folder."""
    for stem, text in files.items():
        path = folder / f"{stem.replace('_in_', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    for known in [key for key in sys.modules if key.partition(".")[0] in {name.partition(".")[0], *files}]:
        del sys.modules[known]
    importlib.invalidate_caches()
    return importlib.import_module(name)


OWN = "import helper_of_mine\nclass Kind:\n    def step(self):\n        return helper_of_mine.STEP\n"


def test_a_helper_beside_the_users_file_is_part_of_the_digest(folder):
    digests = [code_digest(loaded(folder, "own_kind", own_kind=OWN, helper_of_mine=f"STEP = {k}").Kind) for k in (1, 2)]
    assert digests[0] != digests[1]
    assert set(closure("own_kind").modules) == {"own_kind", "helper_of_mine"}


def test_a_helper_that_is_imported_later_counts_too(folder):
    own = "class Kind:\n    def step(self):\n        from helper_of_mine import STEP\n        return STEP\n"
    found = set()
    for k in (1, 2):
        found.add(code_digest(loaded(folder, "own_kind", own_kind=own, helper_of_mine=f"STEP = {k}").Kind))
        assert "helper_of_mine" not in sys.modules
    assert len(found) == 2


def test_a_package_of_the_users_own_counts_as_far_as_it_is_imported(folder):
    files = {
        "own_pack_in___init__": "from own_pack.kinds import Kind",
        "own_pack_in_kinds": "from gqlab.estimators.plain import Plain\nfrom . import numbers\nclass Kind:\n    x = numbers.X",
        "own_pack_in_numbers": "X = 1",
        "own_pack_in_other": "Y = 1",
    }
    kind = loaded(folder, "own_pack", **files).Kind
    found = modules("own_pack.kinds")
    assert {"own_pack.kinds", "own_pack.numbers", "gqlab.estimators.plain"} <= found
    assert not {"own_pack", "own_pack.other"} & found
    before = code_digest(kind)
    assert code_digest(loaded(folder, "own_pack", own_pack_in_other="Y = 2").Kind) == before
    assert code_digest(loaded(folder, "own_pack", own_pack_in_numbers="X = 2").Kind) != before


def test_names_of_gqlab_itself_are_looked_up(folder):
    loaded(folder, "own_kind", own_kind="import gqlab as gq\nKind = gq.Softmax\n")
    found = modules("own_kind")
    assert "gqlab.operators.softmax" in found
    assert "gqlab.learn.agent.agent" not in found
    loaded(folder, "own_kind", own_kind="import gqlab as gq\ndef f():\n    return gq.TileCoder\n")
    assert "gqlab.encoders.tiles" in modules("own_kind")  # which ``gqlab`` imports when it is asked for it
    loaded(folder, "own_kind", own_kind="import gqlab\ndef f(name):\n    return getattr(gqlab, name)\n")
    assert {"gqlab.learn.agent.agent", "gqlab.encoders.tiles"} <= modules("own_kind")


# --- Code without a file --------------------------------------------------------------------------------------------


def executed(text: str, **names: Any) -> Any:
    """What a notebook would have: code that stands in no file, and runs in a module ``__main__``."""
    scope = {"__name__": "__main__", "gq": gq, "np": np, **names}
    exec(textwrap.dedent(text), scope)  # noqa: S102 - as a notebook does
    return scope["Kind"]


KIND = """
from gqlab.estimators.averaged import Averaged
from gqlab.estimators.plain import Plain
SCALE = 2.0
def helper(x):
    return SCALE * x
class Kind(gq.Algorithm):
    estimator = Plain
    def step(self):
        return helper(1.0)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# nothing", "# a comment", True),
        ("SCALE = 2.0", "SCALE = 3.0", False),
        ("SCALE * x", "SCALE + x", False),
        ("helper(1.0)", "helper(2.0)", False),
        ("import Plain", "import Plain\nother = 7", True),
        ("estimator = Plain", "estimator = Averaged", False),
        ("def helper(x)", "def helper(x, y=3)", False),
    ],
)
def test_a_class_of_a_notebook_counts_with_all_that_it_reads(old, new, same):
    text = f"{KIND}# nothing\n"
    assert (code_digest(executed(text)) == code_digest(executed(text.replace(old, new)))) is same


def test_what_a_class_of_a_notebook_reads_of_gqlab_counts_too():
    names, _ = sources.own_code([executed(KIND)])
    assert {"gqlab.estimators.plain", "gqlab.algorithms.base"} <= names


def test_arrays_tables_and_closures_count_by_their_values():
    text = "def make(t):\n    class K:\n        def f(self):\n            return t, TABLE\n    return K\nKind = make(T)"
    table, other = {"a": np.arange(3)}, {"a": np.arange(4)}
    first = code_digest(executed(text, TABLE=table, T=1))
    assert first == code_digest(executed(text, TABLE={"a": np.arange(3)}, T=1))
    assert first != code_digest(executed(text, TABLE=other, T=1))
    assert first != code_digest(executed(text, TABLE=table, T=2))


def test_objects_count_by_what_they_are_made_of_not_by_how_they_are_shown(garnet_problem):
    text = "class Kind:\n    def f(self):\n        return thing"
    other = gq.Problem(garnet_problem.mdp, garnet_problem.features, target=gq.Softmax(2.0))
    for things in (
        [garnet_problem, other],
        [gq.GreedyGQ(0.1), gq.GreedyGQ(0.2)],
        [textwrap.TextWrapper(width=9), textwrap.TextWrapper(width=8)],  # shown with its address alone
        [collections.Counter("aab"), collections.Counter("ab")],
        [np.arange(5000), np.where(np.arange(5000) == 2000, 7, np.arange(5000))],  # shown in part
        [range(3), range(4)],
    ):
        first, second = (code_digest(executed(text, thing=thing)) for thing in things)
        assert first != second, things
        assert first == code_digest(executed(text, thing=things[0]))


@pytest.mark.parametrize("thing", [np.random.default_rng(0), threading.Lock(), np.array([object()])], ids=type)
def test_what_no_digest_can_stand_for_is_refused_in_one_line(thing):
    kind = executed("class Kind:\n    def f(self):\n        return thing", thing=thing)
    with pytest.raises(ValueError, match=r"^thing is .*, which the code of a notebook or script reads: .*$"):
        code_digest(kind)


def test_code_that_is_edited_after_it_was_imported_is_not_what_runs(monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("the files were read when gqlab was imported")

    before = code_digest("gqlab.lab.execute")
    sources._digest.cache_clear()
    monkeypatch.setattr(sources, "_read", never)
    assert code_digest("gqlab.lab.execute") == before
