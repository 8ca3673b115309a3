"""The sections [lookup.name] and [derived.name]: what statements may name beside the attributes."""

from __future__ import annotations

from pathlib import Path

from laprasdp.config.section import Section, placed
from laprasdp.sql.lookup import Lookup


def read_lookups(section: Section, folder: Path) -> dict[str, Lookup]:
    """
    Every lookup by its name.

    Raises
    ------
    ConfigError
        A file cannot be read, has not got the key, or has a key twice; the message names the section.
    """
    found = {}
    for name in section.names:
        one = section.section(name, f"lookup.{name}")
        one.only("file", "key")
        found[name] = placed(one.where, Lookup.read, folder / one.take("file", str), one.take("key", str))
    return found


def read_derived(section: Section) -> dict[str, str]:
    """The SQL of every derived attribute by its name; what it means is known once a table is opened."""
    found = {}
    for name in section.names:
        one = section.section(name, f"derived.{name}")
        one.only("sql")
        found[name] = one.take("sql", str)
    return found
