"""How the documentation is built: Markdown pages, docstrings, and formulas as MathML, which needs no script."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from gqlab.version import __version__

project = "gqlab"
author = "The gqlab developers"
copyright = "2026, the gqlab developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
nitpicky = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = f"gqlab {version}"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["gqlab.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars: dict[str, list[str]] = {"**": []}
exclude_patterns = ["_build"]


#: A prime as the converter writes it: a superscript, which is too small to see where it stands in a subscript.
RAISED_PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>")


def _mathml(formula: str, display: str) -> str:
    prime = r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'  # the character is raised by itself
    return RAISED_PRIME.sub(prime, convert(formula, display=display))


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Formulas become MathML when the page is built: every browser shows it, with no network and no script."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
