"""What a module imports, as its text says, without importing it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeGuard


@dataclass(frozen=True)
class Imports:
    """What a module imports. A pair is (module, name): ``from module import name``; name "": the module itself."""

    pairs: frozenset[tuple[str, str]]
    bound: Mapping[str, tuple[str, str]]  # what a name of the module stands for, where it was imported
    texts: frozenset[str]  # what may be the name of a module that is imported by its name
    lazy: Mapping[str, str]  # name ↦ module, of its literal dictionaries
    hands_on: bool  # whether it holds nothing but imports, literals, ``__getattr__`` and ``__dir__``


#: A quoted dotted name, or an import by name: only then are the strings of a module looked at.
_QUOTED = re.compile(rb"""["']\.?\w+(\.\w+)+["']|import_module|__import__""")


@cache
def imports_of(source: bytes, module: str, is_package: bool = False) -> Imports:
    """The imports that a module's text makes.

    Examples
    --------
    >>> found = imports_of(b"from .tiles import TileCoder", "gqlab.encoders.fourier")
    >>> sorted(found.pairs)
    [('gqlab.encoders.tiles', 'TileCoder')]
    """
    tree = ast.parse(source)
    package = module if is_package else module.rpartition(".")[0]
    pairs: set[tuple[str, str]] = set()
    bound: dict[str, tuple[str, str]] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:  # ``import a.b`` imports a.b and binds a
                pairs.add((alias.name, ""))
                bound.setdefault(*((alias.asname, (alias.name, "")) if alias.asname else
                                   (alias.name.partition(".")[0], (alias.name.partition(".")[0], ""))))  # fmt: skip
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(node.module or "", node.level, package)
            pairs |= {(origin, alias.name) for alias in node.names}
            for alias in node.names:
                bound.setdefault(alias.asname or alias.name, (origin, alias.name))
    texts = frozenset(_texts(tree, package)) if _QUOTED.search(source) else frozenset[str]()
    hands_on = is_package and all(_hands_on(node) for node in tree.body)
    return Imports(frozenset(pairs), bound, texts, _lazy(tree) if is_package else {}, hands_on)


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """All statements, those inside functions and classes too, but for those that only type checkers read."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        inner = node.orelse if _for_types(node) else ast.iter_child_nodes(node)
        yield from _statements(n for n in inner if isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case))


def _for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _absolute(name: str, level: int, package: str) -> str:
    """The module that a relative import names."""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])]) if level else name


def _texts(tree: ast.Module, package: str) -> Iterator[str]:
    """Modules that are named in text: whatever looks like one, and what ``import_module`` is given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"\w+(\.\w+)+", node.value):
                yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    name = argument.value.lstrip(".")
                    yield _absolute(name, len(argument.value) - len(name), package)


def _lazy(tree: ast.Module) -> dict[str, str]:
    """Of the dictionaries that are written out at the top: what is text ↦ text."""
    out = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    out[str(key.value)] = str(value.value)
    return out


def _hands_on(node: ast.stmt) -> bool:
    """Whether a statement of a package's own file decides nothing but where names are found."""
    if isinstance(node, ast.Import | ast.ImportFrom) or _for_types(node):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
        try:
            ast.literal_eval(node.value or ast.Constant(None))
        except ValueError:
            return False
        return True
    return False


@cache
def attributes_of(source: bytes, names: frozenset[str]) -> frozenset[tuple[str, tuple[str, ...]]]:
    """(name, attributes): how names are used, ``gq.encoders.TileCoder`` ↦ (gq, (encoders, TileCoder))."""
    tree, chains, inside = ast.parse(source), set(), set()
    for node in ast.walk(tree):
        if node in inside:
            continue
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.insert(0, node.attr)
            node = node.value
            inside.add(node)
        if isinstance(node, ast.Name) and node.id in names:
            chains.add((node.id, tuple(chain)))
    return frozenset(chains)


#: Text in triple quotes, in which a line may look like an import.
_BLOCK = re.compile(rb'"""(?:[^\\]|\\.)*?"""' + rb"|'''(?:[^\\]|\\.)*?'''", re.DOTALL)


def imports_any(source: bytes, rooms: Iterable[str]) -> bool:
    """Whether a module imports one of these modules, or something from one; read without a syntax tree, which takes
    too long where nothing but this is asked of every file.

    Examples
    --------
    >>> imports_any(b"from gqlab.rules.dispatch import rule", ["gqlab.rules"])
    True
    >>> imports_any(b'"Shares no code with gqlab.rules."', ["gqlab.rules"])
    False
    """
    named = [room for room in rooms if room.rpartition(".")[2].encode() in source]
    if not named:
        return False
    text = _BLOCK.sub(b"", source)
    return any(_import_pattern(room).search(text) for room in named)


@cache
def _import_pattern(room: str) -> re.Pattern[bytes]:
    package, _, last = room.rpartition(".")
    whole = rf"(?:from|import)[ \t]+{re.escape(room)}\b"
    inner = rf"from[ \t]+{re.escape(package)}[ \t]+import[ \t]+(?:\([^)]*\b|[^\n]*\b){last}\b"
    return re.compile(rf"^[ \t]*(?:{whole}|{inner})".encode(), re.MULTILINE)
