"""A table opens in a notebook that has no widgets, where DuckDB would draw a progress bar with them."""

from __future__ import annotations

import subprocess
import sys

KERNEL = """
import sys
import types

shell = types.SimpleNamespace(config={"IPKernelApp": {}})
display = types.ModuleType("IPython.display")
display.display = lambda *shown: None
notebook = types.ModuleType("IPython")
notebook.get_ipython, notebook.display = lambda: shell, display
sys.modules |= {"IPython": notebook, "IPython.display": display, "ipywidgets": None}
"""
OPENING = """
import laprasdp as lp
import pyarrow

domain = lp.Domain(age=lp.Integers(0, 9))
session = lp.open_session(pyarrow.table({"age": [1, 2]}), domain, budget=lp.Budget(1, 1e-6), name="people")
print(session.ask("SELECT COUNT(*) FROM people").source)
"""
BAR = """
import duckdb

try:
    duckdb.connect().execute("SET enable_progress_bar = false")
except duckdb.Error as error:
    print(error)
"""


def _in_a_notebook(code: str) -> str:
    run = [sys.executable, "-c", KERNEL + code]  # a kernel's __main__ has no file either
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def test_a_table_opens_without_widgets() -> None:
    assert _in_a_notebook(OPENING).strip() in ("background", "measured")


def test_the_engine_takes_this_for_a_notebook() -> None:
    """Negative control: what used to be asked of DuckDB fails here."""
    assert "ipywidgets" in _in_a_notebook(BAR)
