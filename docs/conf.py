"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pygments.lexers import SqlLexer, TextLexer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import laprasdp  # noqa: E402

project, author = "LAPRAS", "The LAPRAS developers"
project_copyright = "The LAPRAS developers, Apache-2.0"
version = release = laprasdp.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "mathml"]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_ext"]
default_role = "code"
suppress_warnings = ["ref.python"]  # words of a type in prose, such as "values", are names of several things
nitpicky = False
show_warning_types = True

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive: list[str] = []

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = False
napoleon_custom_sections = [("Privacy", "notes")]

html_theme = "furo"
html_title = f"LAPRAS {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
pygments_style = "tango"


def setup(app: Any) -> None:
    """Blocks that only this site has: statements that are refused, tables of text, drawings in words."""
    for name in ("refused", "derived", "persons"):
        app.add_lexer(name, SqlLexer)
    for name in ("csv", "mermaid"):
        app.add_lexer(name, TextLexer)
