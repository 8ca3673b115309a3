"""How a text file is written: declared, never guessed from its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from laprasdp.errors import ConfigError

ENCODINGS = ("utf-8", "latin-1")
_DIRECTIVES = {
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%m": "[0-9]{1,2}",
    "%d": "[0-9]{1,2}",
    "%b": "[A-Za-z]{3}",
    "%B": "[A-Za-z]+",
    "%H": "[0-9]{1,2}",
    "%I": "[0-9]{1,2}",
    "%M": "[0-9]{1,2}",
    "%S": "[0-9]{1,2}",
    "%f": "[0-9]{1,9}",
    "%p": "[AaPp][Mm]",
    "%%": "%",
}


@dataclass(frozen=True)
class Dialect:
    """
    How the texts of a file are written.

    Parameters
    ----------
    delimiter : str, optional
        One character; a tab for ``.tsv``, a comma for every other file.
    quote : str
        The character around a field that holds delimiters; inside, it is doubled.  "" where there is none.
    null : str
        The field that means NULL, quoted or not; the empty one otherwise.
    columns : sequence of str, optional
        Names of the columns of a file that has no header; otherwise its first line is the header.
    multiline : bool
        Quoted fields may hold line breaks.  Then every quote of the file has to be closed: a record with one
        that is not changes where the records after it begin.
    date_format : str, optional
        As ``%d/%m/%Y``, of %Y %y %m %b %B %d %H %I %M %S %f %p; ISO 8601 otherwise.
    decimal : str
        "." or ",".
    encoding : {"utf-8", "latin-1"}

    Raises
    ------
    ConfigError
        One of them makes no sense.

    Notes
    -----
    **Privacy.**  Assumes that it is chosen without looking at the rows, like the domain.  JSON is read by
    `date_format` and `decimal` alone.
    """

    delimiter: str | None = None
    quote: str = '"'
    null: str = ""
    columns: Sequence[str] | None = None
    multiline: bool = False
    date_format: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote", "null", "date_format", "decimal", "encoding"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name in ("delimiter", "date_format")):
                raise ConfigError(f"{name} must be text, not {value!r}")
        if not isinstance(self.multiline, bool):
            raise ConfigError(f"multiline must be true or false, not {self.multiline!r}")
        if self.delimiter is not None and not _is_mark(self.delimiter):
            raise ConfigError(f"delimiter {self.delimiter!r} must be one sign of ASCII, or a tab")
        if self.quote and (not _is_mark(self.quote) or self.quote == self.delimiter):
            raise ConfigError(f'quote {self.quote!r} must be one sign of ASCII that is no delimiter, or ""')
        if self.multiline and not self.quote:
            raise ConfigError("multiline needs a quote: without one every line break ends a record")
        if self.decimal not in (".", ","):
            raise ConfigError(f'decimal {self.decimal!r} must be "." or ","')
        if self.encoding not in ENCODINGS:
            raise ConfigError(f"encoding {self.encoding!r} is not read; there are {', '.join(ENCODINGS)}")
        if self.columns is not None:
            object.__setattr__(self, "columns", _names(self.columns))
        if self.date_format is not None:
            _check_format(self.date_format)

    @property
    def date_pattern(self) -> str:
        """A regular expression for the texts that `date_format` can mean."""
        parts = re.split("(%.)", self.date_format or "")
        return "".join(_DIRECTIVES.get(part, re.escape(part)) for part in parts)


def _is_mark(text: str) -> bool:
    return len(text) == 1 and (text == "\t" or (" " <= text <= "~" and not text.isalnum()))


def _names(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not given or not all(isinstance(name, str) and name for name in given):
        raise ConfigError("columns must be a list of names, one for each column of the file")
    for name in given:
        if list(given).count(name) > 1:
            raise ConfigError(f"columns names {name} twice")
    return tuple(given)


def _check_format(text: str) -> None:
    found = re.findall("%.?", text, re.DOTALL)
    for directive in found:
        if directive not in _DIRECTIVES:
            raise ConfigError(f"date_format {text!r}: no {directive}; there are {' '.join(_DIRECTIVES)}")
    for what, ways in (("a year", ("%Y", "%y")), ("a month", ("%m", "%b", "%B")), ("a day", ("%d",))):
        if sum(found.count(way) for way in ways) != 1:
            raise ConfigError(f"date_format {text!r} must have {what} once: {' or '.join(ways)}")
