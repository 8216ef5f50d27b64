"""Sphinx settings. Warnings are errors: `make docs`."""

import gordan

project = "gordan"
author = "The gordan developers"
copyright = "2026, the gordan developers"
version = release = gordan.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
myst_heading_anchors = 2
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]  # of a table that is included in a page, whose headings go on from those of the page
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
WIDE = ("index", "architecture", "beyond", "displays", "paper_map", "upgrading")
html_title = "gordan"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_theme_options = {
    "show_prev_next": True,
    "navbar_center": [],
    # Pages with wide tables or figures use the room of the list of headings.
    "secondary_sidebar_items": {"**": ["page-toc"]} | {page: [] for page in WIDE},
}
html_sidebars = {"**": ["globaltoc.html"]}  # all pages, by the captions of the home page
nitpicky = False
