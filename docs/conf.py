"""Sphinx configuration."""

import fmnes

project = "fmnes"
author = "The fmnes authors"
version = release = fmnes.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "myst_parser"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False}
numpydoc_show_class_members = False
autodoc_typehints = "none"
exclude_patterns = ["_build"]
