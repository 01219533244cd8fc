"""How Sphinx builds the site. Pages of data, names and notebooks are written by `_pages` before the build.

With ``EMSOPT_DOCS_OUTPUTS=off`` notebooks have no outputs, with ``kept`` those of an earlier build, maybe out of date.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "notebooks")]

import _pages

from emsopt import __version__

project = "emsopt"
author = "the emsopt contributors"
release = version = __version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "_pages",
]
exclude_patterns = ["_build"]
nitpicky = True
default_role = "name"  # of `_pages`: a link if the name is public, code otherwise

_pages.write(os.environ.get("EMSOPT_DOCS_OUTPUTS", "new"))

# The reference: one page per name, types as the docstrings say them.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# Notebooks are executed by `_notebook_pages`. A page without a kernel needs no scripts for widgets.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

html_theme = "pydata_sphinx_theme"
html_title = f"emsopt {version}"
# MathJax as a package, copied beside the pages; as an extension it would forbid reading in parallel.
mathjax = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static"
mathjax_path = "mathjax/tex-chtml.js"
html_static_path = ["_static", str(mathjax)]
html_extra_path = ["generated/sheet"]
html_css_files = ["site.css"]
html_js_files = ["claims.js", "widgets.js"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    name: []
    for name in ("index", "first_steps", "own_city", "choosing", "problems", "scale", "claims", "benchmarks", "course")
}
html_sidebars["generated/figures/index"] = []
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
}
