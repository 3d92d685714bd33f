"""How the documentation is built: Markdown pages, docstrings, and formulas as MathML, which needs no script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import mathml

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


def setup(app: Any) -> None:
    """Formulas become MathML when the page is built: every browser shows it, with no network and no script."""
    app.add_html_math_renderer("mathml", inline_renderers=(mathml.inline, None), block_renderers=(mathml.block, None))
    app.connect("doctree-resolved", mathml.hold_punctuation)
