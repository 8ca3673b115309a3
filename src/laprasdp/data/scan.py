"""The plan of one scan: what a table is read for, said without any engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from laprasdp.data.column import DAYS, FLOATS, INTEGERS, TEXTS, Column
from laprasdp.data.dialect import Dialect
from laprasdp.data.levels import Level, level_of
from laprasdp.data.text import parsed, text_type
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Attribute
from laprasdp.queries.domain import Domain

_NUMBERS = (*INTEGERS, *FLOATS, "DECIMAL")
_FITS: dict[str, tuple[str, ...]] = {
    "integers": _NUMBERS,
    "bins": _NUMBERS,
    "reals": _NUMBERS,
    "categories": TEXTS,
    "dates": DAYS,
    "booleans": ("BOOLEAN",),
}
_PERSONS = (*INTEGERS, "DECIMAL", *TEXTS, *DAYS, "BOOLEAN")


@dataclass(frozen=True)
class Declared:
    """
    An attribute, and how a row tells its level.

    Attributes
    ----------
    name : str
    attribute : Attribute
    column : Column
        Where it is read, with the type of `value`.
    value : expression
        Over the neutral name ``value``, what the source holds: that itself, or what its text spells.
    level : Level
    """

    name: str
    attribute: Attribute
    column: Column
    value: exp.Expr
    level: Level


@dataclass(frozen=True)
class Scan:
    """
    What an engine reads a table for: how many rows there are of each combination of levels.

    Attributes
    ----------
    attributes : tuple of Declared
        The level of the one at place i is called ``a{i}``.  A row counts if none of its levels is NULL.
    person : Column, optional
        Only rows with a person count then, at most `most` of each.
    most : int
    key : str
        With it the rows of a person are put in order: see `laprasdp.data.persons.first_rows`.
    apart : pair of place and ascending levels, optional
        Where each period of an attribute begins; `most` rows count of a person in each.
    order : str
        One of `laprasdp.privacy.unit.ORDERS`.

    Notes
    -----
    **Privacy.**  Nothing of it comes from a row: it follows from the declaration and the schema.
    """

    attributes: tuple[Declared, ...]
    person: Column | None
    most: int
    key: str
    apart: tuple[int, tuple[int, ...]] | None
    order: str

    @property
    def counted(self) -> list[str]:
        """What is told of the rows that count: levels, and ``who`` where several may be of one person."""
        return [*self.levels, *(["who"] if self.person is not None and self.most > 1 else [])]

    @property
    def levels(self) -> list[str]:
        """The names a0, a1, … of the levels."""
        return [f"a{i}" for i in range(len(self.attributes))]

    @property
    def sizes(self) -> dict[str, int]:
        """How many levels each of them may be."""
        return {f"a{i}": read.attribute.size for i, read in enumerate(self.attributes)}


def plan(
    domain: Domain,
    columns: Sequence[Column],
    person: Column | None,
    *,
    unit: PrivacyUnit,
    key: str,
    apart: tuple[int, Sequence[int]] | None = None,
    dialect: Dialect,
) -> Scan:
    """
    The scan that counts a domain.

    Parameters
    ----------
    domain : Domain
    columns : sequence of Column
        One for each attribute.
    person : Column, optional
        That of the unit's column.
    unit, key, apart
        Which rows of a person count, as `Scan` says.
    dialect : Dialect
        How texts are written.

    Raises
    ------
    DataError
        The type of a column does not fit.
    """
    declared = []
    for name, given in zip(domain, columns, strict=True):
        attribute = domain[name]
        column = _fitting(given, attribute)
        value: exp.Expr = exp.column("value")
        if column.is_text:
            value = parsed(value, attribute, dialect)
        declared.append(Declared(name, attribute, column, value, level_of(attribute, column)))
    if person is not None and person.base not in ("", *_PERSONS):
        raise DataError(
            f"column {person.name} holds {person.base}, which cannot name a person: use text or whole numbers"
        )
    starts = None if apart is None else (apart[0], tuple(apart[1]))
    return Scan(tuple(declared), person, unit.max_rows, key, starts, unit.order)


def _fitting(column: Column, attribute: Attribute) -> Column:
    """The column of an attribute, if its type fits; a column of texts has the type of the attribute."""
    if column.is_text:
        return replace(column, type=text_type(attribute))
    if column.base in ("", *_FITS[attribute.kind]):
        return column
    held = column.type if len(column.type) < 40 else column.base
    hint = "; its calendar date depends on a time zone" if held == "TIMESTAMP WITH TIME ZONE" else ""
    raise DataError(f"column {column.name} holds {held}, which cannot be read as {attribute.kind}{hint}")
