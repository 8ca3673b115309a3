"""How Spark spells the words of a plan, its types, and the lists that it looks up."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from laprasdp.data.column import FLOATS
from laprasdp.data.levels import LevelList
from laprasdp.data.words import Spelling

_TYPES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "binary": "BLOB",
}


def duckdb_type(spark_type: str) -> str:
    """
    The DuckDB type that stands for one of Spark, as `simpleString` writes it.

    What has no counterpart keeps its name, in capitals, which no attribute fits.

    Examples
    --------
    >>> duckdb_type("decimal(9,2)"), duckdb_type("string collate UTF8_LCASE"), duckdb_type("timestamp_ntz")
    ('DECIMAL(9,2)', 'VARCHAR', 'TIMESTAMP')
    >>> duckdb_type("array<int>"), duckdb_type("timestamp"), duckdb_type("map<string,int>")
    ('INTEGER[]', 'TIMESTAMP WITH TIME ZONE', 'MAP<STRING,INT>')
    """
    if spark_type.startswith("array<"):
        return duckdb_type(spark_type[6:-1]) + "[]"
    if spark_type.split(" ")[0].split("(")[0] in ("string", "char", "varchar"):
        return "VARCHAR"
    return _TYPES.get(spark_type, spark_type.upper())


def value_of(column: exp.Expr, kind: str, *, is_padded: bool) -> exp.Expr:
    """
    A column as a value of the DuckDB type that stands for its own; of a padded text without the padding.

    Notes
    -----
    **Privacy.**  Fails on no value: bytes that are no UTF-8 are NULL, and texts compare by their bytes.
    """
    if kind != "VARCHAR":
        return column
    text = exp.func("try_validate_utf8", column)
    if is_padded:
        text = exp.func("rtrim", text)
    return exp.Collate(this=text, expression=exp.to_identifier("UTF8_BINARY"))


def words_for(kind: str) -> Spelling:
    """What Spark makes of each word that a plan says of a column of this DuckDB type."""
    return {
        "read": _read_double if kind in FLOATS else _read,
        "text": lambda value: exp.cast(value, "VARCHAR"),
        "bytes": lambda text: exp.cast(text, "BINARY"),
        "finite": _finite if kind in FLOATS else lambda value: value.is_(exp.null()).not_(),
        "whole": lambda number: exp.func("rint" if kind in FLOATS else "floor", number),
        "quotient": lambda number, by: exp.IntDiv(this=number, expression=by),
        "digest": lambda *parts: exp.func("md5", exp.cast(_parts(*parts), "BINARY")),
        "number": lambda text: exp.func("xxhash64", exp.cast(text, "BINARY")),
    }


def typed(expression: exp.Expr) -> exp.Expr:
    """The same with DuckDB's whole numbers of 128 bits as the largest decimals of Spark."""
    for kind in expression.find_all(exp.DataType):
        if kind.this == exp.DataType.Type.INT128:
            kind.replace(exp.DataType.build("DECIMAL(38, 0)"))
    return expression


def joined(rows: exp.Select, lookup: LevelList, key: exp.Expr, name: str) -> exp.Select:
    """The rows beside a list of bytes, with NULL where `key` is not in it."""
    texts = exp.Literal.string(",".join(value.hex() for value, _ in lookup.entries))
    levels = exp.Literal.string(",".join(str(level) for _, level in lookup.entries))
    pairs = exp.func("explode", exp.func("arrays_zip", _split(texts), _array(levels, "INTEGER")))
    pair = exp.select(pairs.as_("pair"))
    listed = exp.select(
        exp.func("unhex", exp.column("0", "pair", quoted=True)).as_("value"),
        exp.column("1", "pair", quoted=True).as_("level"),
    ).from_(pair.subquery("p"))
    on = key.eq(exp.column("value", name))
    return rows.join(listed.subquery(name), on=on, join_type="LEFT")


def placed(lookup: LevelList, value: exp.Expr) -> exp.Expr:
    """The level of the last edge of an ordered list that is not above a value; NULL below all."""
    edges = _array(exp.Literal.string(",".join(edge for edge, _ in lookup.entries)), lookup.type)
    levels = _array(exp.Literal.string(",".join(str(level) for _, level in lookup.entries)), "INTEGER")
    steps = [2**k for k in reversed(range(len(lookup.entries).bit_length()))]  # of a binary search
    halves = _array(exp.Literal.string(",".join(map(str, steps))), "INTEGER")
    edge = exp.func("try_element_at", edges, exp.column("at") + exp.column("step"))
    further = exp.case().when(edge <= value, exp.column("at") + exp.column("step")).else_(exp.column("at"))
    search = exp.Lambda(this=further, expressions=[exp.to_identifier("at"), exp.to_identifier("step")])
    place = exp.Anonymous(this="aggregate", expressions=[halves, exp.Literal.number(0), search])
    found = exp.func("try_element_at", levels, exp.func("nullif", place, exp.Literal.number(0)))
    return exp.case().when(value.is_(exp.null()).not_(), found)


def is_padded(field: Any) -> bool:
    """Whether a field of a schema is of ``char(n)``, which Spark pads."""
    written = str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", field.dataType.simpleString()))
    return written.startswith("char")


def _parts(*parts: exp.Expr) -> exp.Expr:
    texts = [exp.cast(part, "VARCHAR") for part in parts]
    return exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string("|"), *texts])


def _split(texts: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="split", expressions=[texts, exp.Literal.string(",")])


def _array(texts: exp.Expr, kind: str) -> exp.Expr:
    return exp.cast(_split(texts), exp.DataType.build(f"{kind}[]", dialect="duckdb"))


def _read(value: exp.Expr, kind: exp.Expr) -> exp.Expr:
    return exp.TryCast(this=value, to=kind, safe=True)


def _read_double(value: exp.Expr, kind: exp.Expr) -> exp.Expr:
    """A whole double as a number, exactly: its upper and its lower 62 bits."""
    wide = exp.cast(value, "DOUBLE", dialect="duckdb")
    step = exp.cast(exp.Literal.string(str(2.0**62)), "DOUBLE", dialect="duckdb")
    upper = _whole(exp.paren(wide / step))
    part = exp.cast(upper.copy(), "DOUBLE", dialect="duckdb") * step.copy()
    lower = _whole(exp.paren(wide.copy() - part))
    number = _big(upper) * exp.cast(exp.Literal.string(str(2**62)), "DECIMAL(19, 0)") + _big(lower)
    return exp.TryCast(this=exp.paren(number), to=kind, safe=True)


def _whole(double: exp.Expr) -> exp.Expr:
    return exp.TryCast(this=double, to=exp.DataType.build("BIGINT"), safe=True)


def _big(number: exp.Expr) -> exp.Expr:
    return exp.cast(number, "DECIMAL(19, 0)")


def _finite(value: exp.Expr) -> exp.Expr:
    return exp.Abs(this=value) < exp.cast(exp.Literal.string("Infinity"), "DOUBLE", dialect="duckdb")
