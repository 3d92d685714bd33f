"""Which source files decide what a piece of code computes, and one digest of them all.

A finished result may be read again as long as nothing that decides it has changed: that is what the keys of stores
stand for. The *closure* of a module is the module and all that it imports, directly or not, as its syntax tree says:

* at its top, in functions, relative to its package, and by text (``import_module("gqlab.encoders")``, or a table of
  names of modules); what stands under ``if TYPE_CHECKING:`` never runs and does not count;
* a package that only hands on names of its modules does not count: what is imported from it is looked up where it is
  defined, so that ``from gqlab.encoders import TileCoder`` means ``gqlab.encoders.tiles``;
* modules of gqlab, and those of the user's own that they reach; of other packages the versions count (``VERSIONED``);
* the rooms of ``DRAWING`` are never entered: what draws decides no number.

A class or function in no module that could be imported again (a notebook, a script, ``exec``) counts by its
code and by all that its code reads: constants by their value, other functions and classes of that kind by theirs.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gqlab.support.imports import Imports, attributes_of, imports_of
from gqlab.support.own_code import own_code

#: The folder of gqlab.
PACKAGE = Path(__file__).resolve().parent.parent

#: The rooms that make pictures of numbers: no key covers them.
DRAWING = ("gqlab.plots",)

#: The packages whose versions count: the first two always, the others where something imports them.
VERSIONED = {"numpy": "numpy", "numba": "numba", "scipy": "scipy", "gymnasium": "gymnasium", "sklearn": "scikit-learn"}
ALWAYS = ("numpy", "numba")

#: Imported from a package: everything that it hands on.
ALL = "*"


# --- Where modules are ----------------------------------------------------------------------------------------------


def read_package(folder: Path = PACKAGE) -> dict[str, bytes]:
    """The text of every file of gqlab, by its path from the package's folder.

    Of the package that runs here, as it was when it was imported: who edits a file later has a process that still runs
    the old one.
    """
    return _read_own() if folder == PACKAGE else _read(folder)


def _read(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


@cache
def _read_own() -> dict[str, bytes]:
    return _read(PACKAGE)


def gqlab_name(path: str) -> str:
    """The module in a file of gqlab: ``encoders/tiles.py`` ↦ ``gqlab.encoders.tiles``."""
    return ".".join(["gqlab", *path.removesuffix(".py").split("/")]).removesuffix(".__init__")


@dataclass(frozen=True)
class Module:
    """A module whose text counts."""

    name: str
    source: bytes
    is_package: bool = False
    root: Path | None = None  # the folder of its top-level package; None: gqlab's
    is_text: bool = True  # not compiled from another language

    @property
    def imports(self) -> Imports:
        return imports_of(self.source if self.is_text else b"", self.name, self.is_package)


@cache
def _own_modules() -> dict[str, Module]:
    return {
        gqlab_name(path): Module(gqlab_name(path), source, path.endswith("__init__.py"))
        for path, source in read_package().items()
    }


class Finder:
    """Finds modules by name: those of gqlab, and those of the user's own."""

    def __init__(self, names: Iterable[str]) -> None:
        #: The packages that were begun with: they are the user's wherever they stand.
        self._packages = {name.partition(".")[0] for name in names}
        #: The folders of the user's modules that were found: what stands beside them is the user's too.
        self._roots: list[Path] = []
        self._known: dict[str, Module | None] = {}
        self.libraries: set[str] = set()

    def find(self, name: str) -> Module | None:
        """A module of gqlab's or of the user's; None for those of libraries, and where there is no such module."""
        top = name.partition(".")[0]
        if top == "gqlab":
            return _own_modules().get(name)
        self.libraries.add(top)
        if not top or top in sys.stdlib_module_names or top in VERSIONED:
            return None
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Module | None:
        path = self._path(name)
        if path is None or (name.partition(".")[0] not in self._packages and _is_installed(path)):
            return None
        is_package = path.name == "__init__.py"
        root = path.parents[name.count(".") + is_package]
        if root not in self._roots:
            self._roots.append(root)
        return Module(name, path.read_bytes(), is_package, root, path.suffix == ".py")

    def _path(self, name: str) -> Path | None:
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded is not None:
            return Path(loaded).resolve()
        for root in self._roots:
            stem = root.joinpath(*name.split("."))
            for path in (stem.with_suffix(".py"), stem / "__init__.py"):
                if path.is_file():
                    return path
        try:
            spec = None if "." in name else find_spec(name)
        except (ImportError, ValueError):
            return None
        return Path(spec.origin).resolve() if spec is not None and spec.has_location and spec.origin else None


@cache
def _installed_folders() -> tuple[Path, ...]:
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({Path(sysconfig.get_paths()[name]).resolve() for name in names})


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to Python or to a package that was installed: of those the versions count."""
    return bool({"site-packages", "dist-packages"} & set(path.parts)) or any(
        path.is_relative_to(folder) for folder in _installed_folders()
    )


# --- The closure ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Closure:
    """The modules that count, by name, and the packages whose versions may."""

    modules: Mapping[str, Module]
    libraries: frozenset[str]


def closure(*names: str) -> Closure:
    """The modules that these modules import, directly or not, and they themselves.

    Examples
    --------
    >>> found = closure("gqlab.exact.objective")
    >>> "gqlab.exact.moments" in found.modules, "gqlab.cli.doctor" in found.modules
    (True, False)
    """
    finder = Finder(names)
    found: dict[str, Module] = {}
    waiting: list[tuple[str, str]] = [(name, ALL) for name in names]
    seen: set[tuple[str, str]] = set()
    while waiting:
        pair = waiting.pop()
        if pair not in seen and not _draws(pair[0]):
            seen.add(pair)
            waiting.extend(_follow(*pair, finder, found))
    return Closure(found, frozenset(finder.libraries & set(VERSIONED)))


def _draws(name: str) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in DRAWING)


def _follow(name: str, inner: str, finder: Finder, found: dict[str, Module]) -> Iterator[tuple[str, str]]:
    """What ``from name import inner`` leads to. A module that counts is put into ``found``."""
    module = finder.find(name)
    package, _, last = name.rpartition(".")
    if package:  # the package's own file runs, too; and a name that is no module is one of its package
        yield package, "" if module else last
    if module is None:
        return
    imports = module.imports
    if not imports.hands_on or inner == ALL:
        yield from _count(module, finder, found)
    if not module.is_package or not inner:
        return
    if finder.find(f"{name}.{inner}") is not None:
        yield f"{name}.{inner}", ""
    elif inner in imports.bound:
        origin, original = imports.bound[inner]
        yield origin, original or ALL
    elif inner in imports.lazy:
        yield imports.lazy[inner], inner
    elif imports.hands_on and not inner.startswith("__"):
        yield from _count(module, finder, found)  # one of its own literals


def _count(module: Module, finder: Finder, found: dict[str, Module]) -> Iterator[tuple[str, str]]:
    """Put a module among those that count; what it imports."""
    if module.name in found:
        return
    found[module.name] = module
    imports = module.imports
    yield from imports.pairs
    top = module.name.partition(".")[0]
    for text in imports.texts:
        known = text.startswith((f"{top}.", "gqlab.")) or module.root is not None
        if known and finder.find(text) is not None:
            yield text, ALL
    packages = {}
    for alias, (origin, inner) in imports.bound.items():
        target = finder.find(f"{origin}.{inner}" if inner else origin)
        if target is not None and target.is_package:
            packages[alias] = target.name
    if module.is_package and imports.hands_on:  # it hands on the packages, too
        yield from ((name, ALL) for name in packages.values())
    elif packages:
        for alias, chain in attributes_of(module.source, frozenset(packages)):
            yield from _chain(packages[alias], chain)


def _chain(name: str, attributes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """``package.a.b`` as imports: a of the package, b of package.a."""
    if not attributes:
        yield name, ALL  # passed on as it is
    for attribute in attributes:
        yield name, attribute
        name = f"{name}.{attribute}"


# --- One digest -----------------------------------------------------------------------------------------------------


def code_digest(*things: Any) -> str:
    """One digest of all code that decides what these things do: modules by name, functions, classes.

    ``ValueError`` where the code of one of them reads something that no digest can stand for.

    Examples
    --------
    >>> import gqlab as gq
    >>> code_digest("gqlab.lab.run", gq.GreedyGQ) == code_digest("gqlab.lab.run", gq.GreedyGQ)
    True
    >>> code_digest("gqlab.exact.objective") == code_digest("gqlab.lab.run")
    False
    """
    names, codes = own_code([thing for thing in things if not isinstance(thing, str)])
    names |= {thing for thing in things if isinstance(thing, str)}
    own = {name for name in names if name.partition(".")[0] != "gqlab"}
    # gqlab's own text does not change while it runs, and is understood once; the user's may.
    digest = hashlib.sha256((_digest.__wrapped__ if own else _digest)(tuple(sorted(names))).encode())
    for code in sorted(codes):
        digest.update(f"{code}\n".encode())
    return digest.hexdigest()


@cache
def _digest(names: tuple[str, ...]) -> str:
    """Of the modules in a closure, and of versions."""
    found = closure(*names)
    digest = hashlib.sha256()
    for name in sorted(found.modules):
        digest.update(f"{name} {hashlib.sha256(found.modules[name].source).hexdigest()}\n".encode())
    for library in sorted({*ALWAYS, *found.libraries}):
        digest.update(f"{library} {_version(VERSIONED[library])}\n".encode())
    return digest.hexdigest()


@cache
def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
