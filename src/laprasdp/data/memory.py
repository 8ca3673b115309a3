"""Databases in memory: DuckDB that writes nothing to a disk and fetches nothing."""

from __future__ import annotations

import os
from typing import Any

import duckdb

from laprasdp.queries.attribute import Attribute

_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # nothing is fetched from a network
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,  # a name in SQL never means a Python variable
    "preserve_insertion_order": False,
    "temp_directory": "",  # private rows are never spilled to a disk
}


def connect() -> duckdb.DuckDBPyConnection:
    """A new database in memory."""
    config = _CONFIG | {"threads": min(4, os.cpu_count() or 1)}
    return duckdb.connect(":memory:", config=config).execute("PRAGMA disable_progress_bar")


def level_type(attribute: Attribute) -> str:
    """The smallest type of DuckDB that holds the levels of an attribute."""
    return "UTINYINT" if attribute.size <= 2**8 else "USMALLINT" if attribute.size <= 2**16 else "UINTEGER"
