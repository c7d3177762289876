"""Sphinx configuration."""

import fmnes

project = "fmnes"
author = "The fmnes authors"
version = release = fmnes.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser"]
html_theme = "pydata_sphinx_theme"
html_title = "fmnes"
html_theme_options = {"show_prev_next": False, "header_links_before_dropdown": 7}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # light or dark, as the system
html_static_path = ["_static"]
html_css_files = ["katex/katex.min.css", "style.css"]
html_js_files = [("typeset.js", {"defer": "defer"})]
html_show_sourcelink = html_use_index = html_domain_indices = False
numpydoc_show_class_members = False
autodoc_typehints = "none"
default_role = "py:obj"  # `Evaluator` in a docstring is a link
autodoc_mock_imports = ["gymnasium", "jax", "torch"]  # the integrations are read, not run
myst_enable_extensions = ["dollarmath"]
# KaTeX 0.19.1 (MIT licence) is part of the site, so that formulas appear without a network. Sphinx
# loads it instead of MathJax, on pages with formulas, and typeset.js calls it.
mathjax_path, myst_update_mathjax = "katex/katex.min.js", False
myst_heading_anchors = 2  # links to the headings of the same page
exclude_patterns = ["_build", "paper/*.md"]  # the latter are parts of paper.md


def _keep_bars(app, what, name, obj, options, lines):
    """Docstrings write |v| for a norm; reStructuredText would take it for a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _keep_bars, priority=900)
