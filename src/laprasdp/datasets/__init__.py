"""The public tables that ship with the package."""

from __future__ import annotations

from pathlib import Path

from laprasdp.errors import ConfigError

FILES = {"adult": "adult.parquet", "flights": "flights_2015jan_idebench.parquet"}
"""Name to file; README.md beside them gives sources and licences."""


def path(name: str) -> Path:
    """
    Where the packaged table called `name` is.

    Raises
    ------
    ConfigError
        No table of this name ships with the package.

    Examples
    --------
    >>> path("adult").name
    'adult.parquet'
    """
    if name not in FILES:
        raise ConfigError(f"no packaged table {name!r}; there are {', '.join(FILES)}")
    return Path(__file__).parent / FILES[name]
