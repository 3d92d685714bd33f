"""How the documentation is built: Markdown pages, docstrings, and formulas as MathML, which needs no script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import executed
import mathml
import narrow
import unicode_math

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
    "api_index",
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
html_show_search_summary = False  # the summaries are fetched, which a browser refuses for files
html_context = {"default_mode": "auto"}
html_static_path = ["static"]
html_css_files = ["gqlab.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "api", "changelog", "gallery/index")}
exclude_patterns = ["_build", "static"]


#: The tutorials as notebooks, written when the site is built.
NOTEBOOKS = HERE / "_build" / "notebooks"


def offer_notebook(app: Any, name: str, source: list[str]) -> None:
    """A link to the notebook under the title of a tutorial."""
    if (NOTEBOOKS / f"{Path(name).name}.ipynb").is_file() and name.startswith("tutorials/"):
        title, _, rest = source[0].partition("\n")
        source[0] = (
            f"{title}\n\n{{download}}`This page as a notebook </_build/notebooks/{Path(name).name}.ipynb>`\n{rest}"
        )


def setup(app: Any) -> None:
    """Formulas become MathML when the page is built: every browser shows it, with no network and no script."""
    app.add_html_math_renderer("mathml", inline_renderers=(mathml.inline, None), block_renderers=(mathml.block, None))
    app.connect("doctree-resolved", unicode_math.replace, priority=400)
    app.connect("doctree-resolved", mathml.hold_punctuation)
    app.connect("builder-inited", lambda app: executed.write_notebooks(NOTEBOOKS))
    app.connect("source-read", offer_notebook)
    app.connect("doctree-read", narrow.mark_tables)
    app.connect("doctree-read", narrow.mark_pictures)
