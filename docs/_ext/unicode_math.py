"""Formulas that are written in Unicode, as ‖∇J(θ_t)‖² ≤ C₁/M: found in the text of a page and made real ones.

Tables that commands print, lists that are data, and docstrings have their formulas like that, since they are read on a
terminal too.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from docutils import nodes

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "ς": "varsigma", "ϰ": "varkappa", "ϑ": "vartheta",
    "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Π": "Pi", "Σ": "sum", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "Omega",
}  # fmt: skip
SIGNS = {
    "‖": r"\|", "∇": r"\nabla ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∈": r"\in ",
    "∋": r"\ni ", "∝": r"\propto ", "≪": r"\ll ", "−": "-", "–": "-", "·": r"\cdot ", "×": r"\times ", "±": r"\pm ",
    "…": r"\dots ", "⟨": r"\langle ", "⟩": r"\rangle ", "½": r"\tfrac{1}{2}", "⅔": "2/3", "⅓": "1/3",
    "∞": r"\infty ", "→": r"\to ", "←": r"\leftarrow ", "ℝ": r"\mathbb{R}", "∂": r"\partial ", "′": "'",
    "⊤": r"\top ", "𝒢": r"\mathcal{G}",
}  # fmt: skip
ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀᴹᵈᵏᵗⁿ", "0123456789+-⊤Mdktn", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
FUNCTIONS = {"sup", "max", "min", "log", "exp", "cos", "sin"}
WORDS = {"Lip", "const", "mean", "Var", "variance", "softmax", "drift"}

#: What no prose has: one of these makes a word a formula.
STRONG = re.compile(
    f"[{''.join((*GREEK, *ACCENTS, *RAISED, *LOWERED))}‖∇√≤≥∂⟨⟩ℝ½]"
    r"|[A-Za-z]_[A-Za-z0-9{]|[A-Za-z0-9)]\^|[A-Za-z|]−[A-Za-z0-9|]"
)
OPERATOR = re.compile(r"[-+−=<>≤≥≠≈∈∋∝·…←→×±/]+")
#: Words of the language, and names of things: no formulas, whatever stands beside them.
PROSE = re.compile(r"[A-Za-z]{3,}|^(?:a|A|I|is|it|in|of|to|as|at|by|or|on|an|if|we|no|so|up|lr|eq)\b|://|^[A-Z]\d$|%")
#: What a formula does not end with: an expectation, a sum or a function is of what follows.
EXPECTS = re.compile(r"(?:^|[^A-Za-z])E$|^(?:Σ|sup|max|min|log)$|^(?:Σ|sup|max)_")
OPEN, CLOSE = "([{⟨", ")]}⟩"
#: What stands at the end of a run of words without being of the formula.
ENDS = ",;:.”’\"'?!+=−-·/<>≤" + OPEN
#: Where text is no running text.
APART = {nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title, nodes.raw, nodes.reference}


def _is_prose(word: str) -> bool:
    known = FUNCTIONS | WORDS
    bare = re.sub(
        r"[A-Za-z]{3,}", lambda match: "" if match[0] in known else match[0], re.sub(r"_(?:max|min)\b", "", word)
    )
    return bool(PROSE.search(bare)) and not bare.startswith("E‖")


def _depth(text: str) -> int:
    """How many brackets are open at the end of a text, norms among them."""
    balance = sum(text.count(c) for c in OPEN) - sum(text.count(c) for c in CLOSE)
    return balance + text.count("‖") % 2


def _joins(before: str, word: str) -> bool:
    """Whether a word goes on with the formula before it."""
    last = before.split()[-1]
    if before.endswith((",", ";", ":")) and _depth(before) == 0:
        return False
    beside = OPERATOR.fullmatch(last.lstrip("(")) or OPERATOR.fullmatch(word) or OPERATOR.match(word[0])
    return bool(beside or EXPECTS.search(last)) or _depth(before) > 0


def _runs(text: str) -> list[tuple[bool, str]]:
    """The text as pieces, each either a formula (True) or not."""
    pieces: list[tuple[bool, str]] = []
    for token in re.split(r"(\s+)", text):
        space = not token.strip()
        formula = not space and not _is_prose(token)
        if pieces and pieces[-1][0] and (space or (formula and _joins(pieces[-1][1].rstrip(), token))):
            pieces[-1] = (True, pieces[-1][1] + token)
        else:
            pieces.append((formula, token))
    return pieces


def _trimmed(run: str) -> tuple[str, str, str]:
    """What stands before the formula, the formula, and what stands after it: punctuation and brackets not its own."""
    before, after = "", ""
    while run and (run[0] in "“‘\"'" or run[0].isspace() or (run[0] in "([" and _depth(run) > 0)):
        before, run = before + run[0], run[1:]
    while run and (run[-1].isspace() or run[-1] in ENDS or (run[-1] in ")]" and _depth(run) < 0)):
        run, after = run[:-1], run[-1] + after
    return before, run, after


def _atom(text: str, k: int) -> int:
    """Where the letter at k ends, with its accents."""
    k += 1
    while k < len(text) and text[k] in ACCENTS:
        k += 1
    return k


def _group(text: str, k: int) -> tuple[str, int]:
    """What a _ or ^ at k − 1 raises or lowers, as TeX, and where it ends."""
    if text[k] in "{(":
        closing = {"{": "}", "(": ")"}[text[k]]
        end = text.index(closing, k) + 1
        inner = text[k + 1 : end - 1] if text[k] == "{" else text[k:end]
        return tex(inner), end
    if match := re.compile(r"max|min|TV|∇J").match(text, k):
        return (rf"\{match[0]}" if match[0] in FUNCTIONS else tex(match[0])), match.end()
    if match := re.compile(r"[−-]?(?:\d+(?:\.\d+)?(?:/\d+)?|[½⅔⅓])").match(text, k):
        return tex(match[0]), match.end()
    end = _atom(text, k)
    return tex(text[k:end]), end


def tex(text: str) -> str:
    """A formula in Unicode as TeX."""
    text, out, k = unicodedata.normalize("NFD", text).replace("=\u0338", "≠"), [], 0
    while k < len(text):
        character = text[k]
        word = re.compile(r"[A-Za-z]{3,}").match(text, k)
        if word and word[0] in FUNCTIONS | WORDS:
            out.append(rf"\{word[0]} " if word[0] in FUNCTIONS else rf"\mathrm{{{word[0]}}}\,")
            k = word.end()
        elif character in "_^":
            inner, k = _group(text, k + 1)
            out.append(f"{character}{{{inner}}}")
        elif character in RAISED or character in LOWERED:
            table, sign = (RAISED, "^") if character in RAISED else (LOWERED, "_")
            end = k
            while end < len(text) and text[end] in table:
                end += 1
            out.append(f"{sign}{{{tex(''.join(table[c] for c in text[k:end]))}}}")
            k = end
        elif character == "√":
            inner, k = _root(text, k + 1)
            out.append(rf"\sqrt{{{inner}}}")
        elif character == "*" and k and not text[k - 1].isspace():
            out.append("^{*}")
            k += 1
        else:
            end = _atom(text, k)
            out.append(_letter(text, k, end))
            k = end
    return "".join(out)


def _root(text: str, k: int) -> tuple[str, int]:
    """What stands under a root: one letter with its index, or a bracket."""
    if text[k] == "(":
        end = text.index(")", k) + 1
        return tex(text[k + 1 : end - 1]), end
    end = _atom(text, k)
    if end < len(text) and text[end] == "_":
        _, end = _group(text, end + 1)
    return tex(text[k:end]), end


def _letter(text: str, k: int, end: int) -> str:
    character, following = text[k], text[end : end + 1]
    if character == "E" and (following in ("‖", "[", "⟨", " ", "|")):
        return r"\mathbb{E}" + (r"\," if following == " " else "")
    letter = rf"\{GREEK[character]} " if character in GREEK else SIGNS.get(character, character)
    letter = {"{": r"\{", "}": r"\}", "%": r"\%", "#": r"\#", "&": r"\&"}.get(letter, letter)
    for accent in text[k + 1 : end]:
        letter = rf"\{ACCENTS[accent]}{{{letter.strip()}}}"
    return letter


def formulas(text: str) -> list[nodes.Node]:
    """A text as nodes: formulas, and what is between them."""
    found: list[nodes.Node] = []
    plain = ""
    for is_formula, piece in _runs(unicodedata.normalize("NFC", text)):
        before, run, after = _trimmed(piece) if is_formula else ("", "", piece)
        if run and STRONG.search(unicodedata.normalize("NFD", run)) and _depth(run) == 0:
            found += [nodes.Text(plain + before)] if plain + before else []
            found.append(nodes.math("", tex(run)))
            plain = after
        else:
            plain += before + run + after
    return found + ([nodes.Text(plain)] if plain else [])


def _is_running(text: nodes.Text) -> bool:
    """Whether a text is of a paragraph or a table, and not code, a link, a title or a signature."""
    above = text.parent
    if type(above).__name__.startswith("desc_"):
        return False
    while above is not None:
        if type(above) in APART:
            return False
        above = above.parent
    return True


def replace(app: Any, doctree: nodes.document, name: str) -> None:
    """Make formulas of those in Unicode, wherever a page has running text or a table."""
    for text in list(doctree.findall(nodes.Text)):
        if not STRONG.search(unicodedata.normalize("NFD", text.astext())) or not _is_running(text):
            continue
        try:
            found = formulas(text.astext())
        except (ValueError, IndexError):
            continue  # not as we write formulas: left as it stands
        if any(isinstance(node, nodes.math) for node in found):
            k = text.parent.index(text)
            text.parent[k : k + 1] = found
