"""Which columns of a back end of Ibis are read: those of which every value arrives, and is compared whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlglot import exp

_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SIMPLE = (*_WHOLE, "float32", "float64", "boolean", "string")
ARRIVES: Mapping[str, Collection[str]] = {
    "bigquery": (*_SIMPLE, "decimal", "date", "timestamp"),
    "clickhouse": (*_SIMPLE, "date"),
    "duckdb": (*_SIMPLE, "decimal", "date", "timestamp"),
    "postgres": _SIMPLE,
    "snowflake": ("float64", "boolean", "string", "date"),
    "trino": (*_SIMPLE, "decimal"),
}
"""
From a back end's name to the types of which no value makes the transfer fail.

Left out are Trino's dates and moments (its driver ends at a year above 9999); Snowflake's whole numbers (Ibis
takes their 38 digits for 63 bits), decimals (its driver makes doubles of them) and moments; ClickHouse's
moments (its server has a time zone where they have none) and decimals (its driver divides with 28 digits);
PostgreSQL's dates and decimals (infinite, NaN).  Any of them arrives as a text.
"""


def refusal(backend: str, kind: Any) -> str | None:
    """
    Why a column of an Ibis type is not read, or None.

    Parameters
    ----------
    backend : str
        One of `ARRIVES`.
    kind : ibis.expr.datatypes.DataType
    """
    name = type(kind).__name__.lower()
    if name == "timestamp" and kind.timezone is not None:
        return "its calendar date depends on a time zone"
    if name not in ARRIVES[backend]:
        return f"not every value of it comes from {backend} as it is"
    if name == "decimal" and (kind.precision is None or kind.scale is None or kind.precision > 38):
        return "it has no precision that fits in 38 digits"
    if backend == "clickhouse" and name == "string" and kind.length is not None:
        return "its bytes need not be a text"
    return None


def collated(connection: Any, place: tuple[str, ...], names: Collection[str]) -> set[str]:
    """
    The text columns in which texts of other bytes may be equal.

    Parameters
    ----------
    connection : ibis.BaseBackend
    place : tuple of str
        The table: catalog if there is one, schema and name.
    names : collection of str
        Of the text columns.

    Notes
    -----
    **Privacy.**  Only descriptions of the table are read.  Trino and ClickHouse compare texts by their bytes.
    """
    found = _COLLATED.get(connection.name)
    return set() if found is None or not names else found(connection, place, names)


def _of_bigquery(connection: Any, place: tuple[str, ...], names: Collection[str]) -> set[str]:
    fields = [field.to_api_repr() for field in connection.client.get_table(".".join(place)).schema]
    return {field["name"] for field in fields if field.get("collation")}


def _of_duckdb(connection: Any, place: tuple[str, ...], names: Collection[str]) -> set[str]:
    from laprasdp.data.types import compares_plainly

    here = (connection.current_catalog, connection.current_database)
    table = _table(place[2:] if place[:2] == here else place)  # it may be a temporary one
    return {name for name in names if not compares_plainly(connection.con, table, name)}


def _of_postgres(connection: Any, place: tuple[str, ...], names: Collection[str]) -> set[str]:
    literal = exp.Literal.string(_table(place[-2:]).sql("postgres")).sql("postgres")
    plain = (
        "SELECT a.attname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
        "JOIN pg_collation c ON c.oid = a.attcollation "
        f"WHERE a.attrelid = to_regclass({literal}) AND t.typname IN ('text', 'varchar') "
        "AND c.collisdeterministic"
    )
    cursor = connection.raw_sql(plain)
    return set(names) - {name for (name,) in cursor.fetchall()}


def _of_snowflake(connection: Any, place: tuple[str, ...], names: Collection[str]) -> set[str]:
    catalog, schema, table = place
    described = (
        exp.select("column_name")
        .from_(exp.table_("COLUMNS", "INFORMATION_SCHEMA", exp.to_identifier(catalog, quoted=True)))
        .where(exp.column("table_schema").eq(exp.Literal.string(schema)))
        .where(exp.column("table_name").eq(exp.Literal.string(table)))
        .where(exp.column("collation_name").is_(exp.null()))
    )
    cursor = connection.raw_sql(described.sql("snowflake"))
    return set(names) - {name for (name,) in cursor.fetchall()}


_COLLATED: Mapping[str, Callable[[Any, tuple[str, ...], Collection[str]], set[str]]] = {
    "bigquery": _of_bigquery,
    "duckdb": _of_duckdb,
    "postgres": _of_postgres,
    "snowflake": _of_snowflake,
}


def _table(place: tuple[str, ...]) -> exp.Table:
    name, schema, catalog = [*reversed(place), None, None][:3]
    quoted = [
        None if part is None else exp.to_identifier(part, quoted=True) for part in (name, schema, catalog)
    ]
    return exp.table_(*quoted)  # type: ignore[arg-type]
