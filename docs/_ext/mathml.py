"""Formulas as MathML, which needs no script: TeX is converted when the page is built, mended, and cut into pieces.

Browsers do not break lines inside a formula. So one formula becomes several ``<math>`` elements in a row, cut where TeX
itself would break the line: after relations, after + and −, after commas. Parentheses are opened for that only where a
piece would still be too wide for a telephone.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any
from xml.etree import ElementTree as ET

from docutils import nodes
from latex2mathml.converter import convert

#: A piece with more characters than this is cut again, inside its parentheses.
WIDE = 24
RELATIONS = set("=<>≤≥≠≈∼∝→←↦∈⊂≪≫⟵⟶")
BINARY = set("+−±∪∩×")
PAUSES = set(",;:")
OPENING = {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "⌊": "⌋"}
CLOSING = set(OPENING.values())
#: They open and close with the same character.
BARS = set("|‖")
FUNCTIONS = {"min", "max", "sup", "inf", "log", "exp", "lim", "arg", "cos", "sin"}
#: Accents as the characters that fonts draw as such.
ACCENTS = {"^": "ˆ", "~": "˜", "¯": "¯"}
#: What is held beside a formula: a few characters up to the next space, or punctuation.
AFTER, BEFORE = re.compile(r"\S{0,4}(?=\s|$)|[.,;:)\]?!]*"), re.compile(r"(?<!\S)\S{0,2}$|[(\[]*$")


def _is(node: ET.Element, characters: set[str] | str) -> bool:
    return node.tag == "mo" and (node.text or "") in characters


def _zero_space(node: ET.Element) -> None:
    node.set("lspace", "0")
    node.set("rspace", "0")


def _mend_row(row: ET.Element) -> None:
    """The spaces of TeX: none around | and /, none after a sign, and functions are no operators."""
    before: ET.Element | None = None
    for node in row:
        if node.tag == "mo":
            text = (node.text or "").strip()
            if text in BARS or text in ("/", "′"):
                _zero_space(node)
            elif text in ("−", "-", "+", "±") and (
                before is None or _is(before, RELATIONS | BINARY | PAUSES | set(OPENING)) or before.tag == "mspace"
            ):
                node.set("form", "prefix")
                _zero_space(node)
        before = node


def _mend(tree: ET.Element) -> None:
    for node in tree.iter():
        if node.tag == "mo" and (node.text or "") in FUNCTIONS:
            node.tag = "mi"
        if _is(node, BARS) and "stretchy" not in node.attrib:
            node.set("stretchy", "false")  # as tall as the letters: only \left and \right ask for more
        if node.tag == "msup" and len(node) == 2 and node[1].text == "′" and node[0].tag == "mi":
            # Raised by itself: as a superscript it is too small to see where it stands in a subscript.
            letter = node[0]
            prime = ET.Element("mo", lspace="0", rspace="0")
            prime.text = "′"
            node.tag = "mrow"
            node[:] = [letter, prime]
        if node.tag == "mover" and node[1].tag == "mo" and node[1].text in ACCENTS:
            node[1].text = ACCENTS[node[1].text]
            node[1].set("stretchy", "false")
            node.set("accent", "true")
    for node in tree.iter():
        if node.tag in ("mrow", "math", "mtd"):
            _spread_functions(node)
            _mend_row(node)


def _spread_functions(row: ET.Element) -> None:
    """A thin space between a function's name and what it stands beside, where that is no operator or parenthesis."""
    spread: list[ET.Element] = []
    for k, node in enumerate(row):
        beside = [row[i] if 0 <= i < len(row) else None for i in (k - 1, k + 1)]
        before, after = ((side is not None and side.tag not in ("mo", "mspace")) or _is_bar(side) for side in beside)
        name = node[0] if node.tag in ("msub", "munder", "msup") and len(node) else node
        is_function = name.tag == "mi" and (name.text or "") in FUNCTIONS
        closed = beside[0] is not None and (beside[0].text or "") in CLOSING
        spread += [ET.Element("mspace", width="0.17em")] * (is_function and (before or closed))
        spread.append(node)
        spread += [ET.Element("mspace", width="0.17em")] * (is_function and after)
    row[:] = spread


def _is_bar(node: ET.Element | None) -> bool:
    return node is not None and _is(node, BARS)


def _width(node: ET.Element) -> float:
    """About how many characters wide it is."""
    if node.tag == "mspace":
        return float((node.get("width") or "0").removesuffix("em") or 0) * 2
    if node.tag in ("mfrac", "munder", "mover", "munderover"):
        return max(_width(child) for child in node)
    if node.tag in ("msub", "msup", "msubsup"):
        return _width(node[0]) + 0.7 * max(_width(child) for child in node[1:])
    space = 2 if _is(node, RELATIONS | BINARY) and node.get("form") != "prefix" else 0
    return space + len((node.text or "").strip()) + sum(_width(child) for child in node)


def _cut(atoms: list[ET.Element], depth: int = 0) -> list[list[ET.Element]]:
    """The pieces of a row: cut in no more than ``depth`` parentheses, and deeper where a piece is wide."""
    pieces: list[list[ET.Element]] = [[]]
    stack: list[str] = []
    for node in atoms:
        text = (node.text or "").strip() if node.tag == "mo" else ""
        if text in CLOSING and OPENING_OF[text] in stack:
            while stack.pop() != OPENING_OF[text]:
                pass
        elif text in BARS and text in stack and stack[-1] == text:
            stack.pop()
        elif text in OPENING or text in BARS:
            stack.append(text)
        pieces[-1].append(node)
        signed = node.get("form") == "prefix"
        breaks = text in RELATIONS | PAUSES or (text in BINARY and not signed) or _is_gap(node)
        if breaks and len(stack) <= depth:
            pieces.append([])
    pieces = [piece for piece in pieces if piece]
    if depth == 3:
        return pieces
    wide = [sum(map(_width, piece)) > WIDE for piece in pieces]
    return [
        part for piece, cut in zip(pieces, wide, strict=True) for part in (_cut(piece, depth + 1) if cut else [piece])
    ]


OPENING_OF = {closing: opening for opening, closing in OPENING.items()}


def _is_gap(node: ET.Element) -> bool:
    return node.tag == "mspace" and _width(node) >= 2


def _glued(pieces: list[list[ET.Element]]) -> list[list[ET.Element]]:
    """No piece of one or two characters begins a line of its own: it stays with the piece after it."""
    glued: list[list[ET.Element]] = []
    hold: list[ET.Element] = []
    for piece in pieces:
        piece = hold + piece
        if glued and all(_is_gap(node) for node in piece):
            glued[-1].extend(piece)
            continue
        if sum(map(_width, piece)) < 4 and not _is_gap(piece[-1]):
            hold = piece
            continue
        glued.append(piece)
        hold = []
    if hold:
        glued.append(hold) if not glued or len(glued[-1]) > 12 else glued[-1].extend(hold)
    return glued


def _html(atoms: list[ET.Element], display: bool) -> str:
    math = ET.Element("math", xmlns="http://www.w3.org/1998/Math/MathML")
    if display:
        math.set("displaystyle", "true")
    ET.SubElement(math, "mrow").extend(atoms)
    last = atoms[-1]
    if last.tag == "mo" and (last.text or "") in RELATIONS | BINARY:
        last.set("form", "infix")  # at the end of a row it would be taken for a postfix
    return ET.tostring(math, encoding="unicode")


def mathml(formula: str, display: bool = False) -> list[list[str]]:
    """The formulas that stand side by side in it, each as elements between which a line may end."""
    text = convert(formula, display="block" if display else "inline")
    tree = ET.fromstring(text.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))  # noqa: S314 - made of our own pages
    _mend(tree)
    row = list(tree[0] if len(tree) == 1 and tree[0].tag == "mrow" else tree)
    ends = [k + 1 for k, node in enumerate(row) if _is_gap(node)]
    sides = [row[first:last] for first, last in zip([0, *ends], [*ends, len(row)], strict=True) if row[first:last]]
    return [[_html(piece, display) for piece in _glued(_cut(side))] for side in sides]


def hold_punctuation(app: Any, doctree: nodes.document, name: str) -> None:
    """What stands against a formula without a space stays on its line: a comma after it, a parenthesis before it."""
    for node in doctree.findall(nodes.math):
        row, k = node.parent, node.parent.index(node)
        if k + 1 < len(row) and isinstance(row[k + 1], nodes.Text):
            text = row[k + 1].astext()
            node["after"] = AFTER.match(text)[0]
            row[k + 1] = nodes.Text(text.removeprefix(node["after"]))
        if k and isinstance(row[k - 1], nodes.Text):
            text = row[k - 1].astext()
            node["before"] = BEFORE.search(text)[0]
            row[k - 1] = nodes.Text(text.removesuffix(node["before"]))


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in the text."""
    pieces = [piece for side in mathml(node.astext()) for piece in side]
    if before := node.get("before"):
        pieces[0] = f'<span class="held">{escape(before)}{pieces[0]}</span>'
    if after := node.get("after"):
        pieces[-1] = f'<span class="held">{pieces[-1]}{escape(after)}</span>'
    translator.body.append("<wbr>".join(pieces))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write formulas on lines of their own: one under the other where the screen is narrow, and broken if need be."""
    sides = [f'<span class="side">{"<wbr>".join(side)}</span>' for side in mathml(node.astext(), display=True)]
    translator.body.append(f'<div class="formula">{"<wbr>".join(sides)}</div>')
    raise nodes.SkipNode
