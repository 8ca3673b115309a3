"""How a text file is written, as `lapras.toml` declares it in [source]."""

from __future__ import annotations

import dataclasses

from laprasdp.config.section import Section, placed
from laprasdp.data.dialect import Dialect
from laprasdp.errors import ConfigError

KEYS_OF_TEXT = tuple(field.name for field in dataclasses.fields(Dialect))


def read_dialect(section: Section) -> Dialect | None:
    """
    The dialect from the keys of its section; None where there is none of them.

    Raises
    ------
    ConfigError
        A key makes no sense, or the table is none of texts.
    """
    given = {key: section.take(key) for key in KEYS_OF_TEXT if key in section}
    if not given:
        return None
    if "file" not in section:
        raise ConfigError(f"{section.where}: {next(iter(given))} is for a text file")
    dialect: Dialect = placed(section.where, lambda: Dialect(**given))
    return dialect
