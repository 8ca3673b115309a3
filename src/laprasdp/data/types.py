"""The type that a column of a source has in comparisons, from its schema."""

from __future__ import annotations

import json

import duckdb
from sqlglot import exp

from laprasdp.data.column import Column
from laprasdp.data.schema import Relation


def compared_as(opened: Relation, column: Column) -> str:
    """
    The DuckDB type of a column; ``VARCHAR COLLATE`` where texts do not compare by their characters.

    Notes
    -----
    **Privacy.**  No row is read: the engine is asked how it would compare the column, not to do it.
    """
    if opened.table is None or column.type != "VARCHAR":
        return column.type
    plain = compares_plainly(opened.connection, opened.table, column.name)
    return column.type if plain else "VARCHAR COLLATE"


def compares_plainly(connection: duckdb.DuckDBPyConnection, table: exp.Expr, name: str) -> bool:
    """Whether the texts of a column compare by their characters."""
    names = exp.select(exp.column(name, quoted=True).as_("k")).from_(table.copy())
    asked = exp.select(exp.column("k").eq(exp.Literal.string("A"))).from_(names.subquery("n"))
    connection.execute("PRAGMA disable_optimizer")  # it would leave no trace of the comparison
    try:
        (found,) = connection.execute("EXPLAIN (FORMAT JSON) " + asked.sql("duckdb")).fetchall()
        plain: bool = json.loads(found[1])[0]["extra_info"]["Projections"].startswith("(k = ")
    except duckdb.Error:  # a collation of an extension that is not loaded
        plain = False
    connection.execute("PRAGMA enable_optimizer")
    return plain
