"""A private table that an engine reads once: what it counted becomes the cells that answer everything."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Self

from laprasdp.data.cells import CellTable
from laprasdp.data.dialect import Dialect
from laprasdp.data.engine import Engine
from laprasdp.data.scan import plan
from laprasdp.errors import interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Reals
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.record.origin import Origin


class ScannedTable:
    """
    The cells that one scan of an engine found; implements `laprasdp.data.table.Table`.

    Parameters
    ----------
    engine : Engine
        Closed when it was read, whatever happens.
    domain : Domain
        Its names are columns of the table; case counts only where it must tell columns apart.
    name : str
        How statements call the table.
    unit : PrivacyUnit, optional
        Its column need not be an attribute of the domain.
    key : str, optional
        Chooses which rows of a person are kept where there are more than `max_rows`; random otherwise, so a
        ledger that outlives this object needs one.
    apart : pair of attribute and ascending levels, optional
        Where each period of a date attribute begins.  `max_rows` rows of a person are kept in each period,
        the same as from a table of that period alone.
    dialect : Dialect, optional
        How texts are written.

    Attributes
    ----------
    origin : Origin
        Which table it is.

    Raises
    ------
    DataError
        The table does not have the declared columns with fitting types, or cannot be read to its end.

    Notes
    -----
    **Privacy.**  Assumes that `domain`, `unit` and `dialect` are chosen without looking at the rows.
    Guarantees what `Table` asks: a row counts if all its declared attributes lie in the domain and, with a
    unit's column, its person is not NULL and it is among the first `max_rows` of that person's rows in the
    order of a hash keyed with `key`, or else with 128 random bits of this object; so what is kept of a person
    depends on that person's rows (with `apart`, those of one period) and the key alone.  How a record is read
    depends on that record, the declaration and the schema: see docs/proofs/table.md.  Errors depend on the
    schema only.
    """

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        *,
        name: str,
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 (frozen)
        key: str | None = None,
        apart: tuple[str, Sequence[int]] | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        self._domain, self._unit, self._name = domain, unit, name
        try:
            periods = None if apart is None else (domain.axis(apart[0]), apart[1])
            key = secrets.token_hex(16) if key is None else key
            columns, person = engine.columns(list(domain), unit.column)
            told = dialect or Dialect()
            scan = plan(domain, columns, person, unit=unit, key=key, apart=periods, dialect=told)
            read = [*columns, *([] if person is None else [person])]
            typed = () if engine.place[0] == "memory" else tuple((one.name, one.type) for one in read)
            self.origin = Origin(*engine.place, typed)  # of a frame the types may follow from its rows
            grids = {name: one.type for name in domain if isinstance(one := domain[name], Reals)}
            self._types: Mapping[str, str] = {**engine.types(scan), **grids}
            self._cells = CellTable(name, domain, engine.run(scan), persons="who" in scan.counted)
        finally:
            engine.close()

    @property
    def domain(self) -> Domain:
        """The declared domain."""
        return self._domain

    @property
    def name(self) -> str:
        """The name by which statements call the table."""
        return self._name

    @property
    def types(self) -> Mapping[str, str]:
        """The DuckDB type of each attribute's column, from the schema."""
        return self._types

    @property
    def unit(self) -> PrivacyUnit:
        """What a neighbour may add or remove."""
        return self._unit

    @interruptible()
    def marginal(self, axes: tuple[int, ...]) -> Marginal:
        """Exact counts over some attributes, from the snapshot; see `Table.marginal`."""
        return self._cells.marginal(axes)

    def close(self) -> None:
        """Forget the snapshot; closing twice does nothing."""
        self._cells.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name}: {', '.join(self._domain)})"
