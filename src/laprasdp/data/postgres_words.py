"""How PostgreSQL spells the words of a plan, its types, and the lists that it looks up."""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal

from sqlglot import exp

from laprasdp.data.column import DAYS, FLOATS
from laprasdp.data.levels import LevelList
from laprasdp.data.words import Spelling

_TYPES = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "uuid": "UUID",
    "numeric": "DOUBLE",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
}
_HALF_LEAST, _LARGEST = "2.4703282292062328e-324", "1.7976931348623158e308"  # what rounds to 0 and to ∞


def duckdb_type(postgres_type: str, *, is_enum: bool = False) -> str:
    """
    The DuckDB type that stands for one of PostgreSQL, as `format_type` writes it.

    Numbers of no declared precision are read as doubles, all texts without padding.  What has no counterpart
    keeps its name, in capitals, which no attribute fits.

    Examples
    --------
    >>> (
    ...     duckdb_type("numeric(9,2)"),
    ...     duckdb_type("character(3)"),
    ...     duckdb_type("timestamp(3) without time zone"),
    ... )
    ('DECIMAL(9,2)', 'VARCHAR', 'TIMESTAMP')
    >>> duckdb_type("integer[]"), duckdb_type("jsonb")
    ('INTEGER[]', 'JSONB')
    """
    plain = re.sub(r"\(\d+\)", "", postgres_type)
    if is_enum or plain in ("text", "character", "character varying", '"char"', "name"):
        return "VARCHAR"
    sized = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", postgres_type)
    if sized:
        digits, scale = map(int, sized.groups())
        return f"DECIMAL({digits},{scale})" if 0 <= scale <= digits <= 38 else "DOUBLE"
    return _TYPES.get(plain, postgres_type.upper())


def value_of(column: exp.Expr, postgres_type: str, kind: str) -> exp.Expr:
    """
    A column as a value of the DuckDB type that stands for its own.

    Notes
    -----
    **Privacy.**  Fails on no value: of a number beyond the doubles, the nearest double is taken, or NULL; a
    decimal that is NaN, which no decimal is elsewhere, is NULL, so that it can be turned into other types.
    """
    if kind == "VARCHAR":
        return exp.cast(column, "VARCHAR")
    if kind.startswith("DECIMAL"):
        return exp.case().when(column.neq(exp.Literal.string("NaN")), column)
    if kind != "DOUBLE" or not postgres_type.startswith("numeric"):
        return column
    size = exp.Abs(this=column.copy())
    double = exp.cast(column, "DOUBLE", dialect="duckdb")
    held = size.copy() > exp.Literal.number(_HALF_LEAST)
    return (
        exp.case()
        .when(size >= exp.Literal.number(_LARGEST), exp.null())  # NaN is above every number
        .when(held, double)
        .when(column.is_(exp.null()).not_(), exp.cast(exp.Literal.number(0), "DOUBLE", dialect="duckdb"))
    )


def words_for(kind: str) -> Spelling:
    """What PostgreSQL makes of each word that a plan says of a column of this DuckDB type."""
    return {
        "read": _read_double if kind in FLOATS else _read,
        "text": lambda value: _by_bytes(exp.cast(value, "VARCHAR")),
        "bytes": lambda text: _by_bytes(text),
        "finite": (lambda value: exp.func("isfinite", value)) if kind.startswith(DAYS) else _finite,
        "whole": lambda number: exp.func("trunc", number),
        "quotient": lambda number, by: exp.Div(this=number, expression=by, typed=True),
        "digest": lambda *parts: _by_bytes(exp.func("md5", _parts(*parts))),
        "number": lambda text: exp.func("hashtextextended", text, exp.Literal.number(0)),
    }


def typed(expression: exp.Expr) -> exp.Expr:
    """The same with DuckDB's whole numbers of 128 bits as numbers of PostgreSQL."""
    for kind in expression.find_all(exp.DataType):
        if kind.this == exp.DataType.Type.INT128:
            kind.replace(exp.DataType.build("DECIMAL(39, 0)"))
    return expression


def joined(scan: exp.Select, lookup: LevelList, key: exp.Expr, name: str) -> exp.Select:
    """
    The scan beside a list of texts, with NULL where `key`, compared by its bytes, is not in it.

    Texts of which no database in UTF8 has one, with a NUL or a lone surrogate, are left out.
    """
    held = [(text, level) for value, level in lookup.entries if (text := _text(value)) is not None]
    texts = ",".join(_quoted(text) for text, _ in held)
    levels = ",".join(str(level) for _, level in held)
    listed = exp.select(
        exp.func("unnest", _array(texts, "text")).as_("value"),
        exp.func("unnest", _array(levels, "integer")).as_("level"),
    )
    return scan.join(listed.subquery(name), on=key.eq(exp.column("value", name)), join_type="LEFT")


def placed(lookup: LevelList, value: exp.Expr, postgres_type: str) -> exp.Expr:
    """The level of the last edge of an ordered list that is not above a value; NULL below all."""
    texts = [edge for edge, _ in lookup.entries]
    sized = re.fullmatch(r"DECIMAL\((\d+), (\d+)\)", postgres_type)
    if sized and int(sized[1]) <= 18:  # as whole numbers: of others an array is searched from its begin
        scale = int(sized[2])
        value = exp.cast(exp.paren(value * exp.Literal.number(10**scale)), "BIGINT")
        texts, postgres_type = [str(int(Decimal(text).scaleb(scale))) for text in texts], "BIGINT"
    place = exp.func("width_bucket", value, _array(",".join(f'"{text}"' for text in texts), postgres_type))
    levels = _array(",".join(str(level) for _, level in lookup.entries), "integer")
    found = exp.Bracket(this=exp.paren(levels), expressions=[place.copy()], offset=1)
    return exp.case().when(place > 0, found)


def _array(texts: str, postgres_type: str) -> exp.Expr:
    kind = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=f"{postgres_type}[]")
    return exp.Cast(this=exp.Literal.string("{" + texts + "}"), to=kind)


def _text(value: bytes) -> str | None:
    with suppress(UnicodeDecodeError):
        text = value.decode()
        return None if "\0" in text else text
    return None


def _quoted(text: str) -> str:
    """An element of an array, as PostgreSQL reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _parts(*parts: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string("|"), *parts])


def _by_bytes(text: exp.Expr) -> exp.Expr:
    return exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True))


def _read(value: exp.Expr, kind: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=kind)


def _read_double(value: exp.Expr, kind: exp.Expr) -> exp.Expr:
    """A whole double as a number, exactly: its upper and its lower 62 bits."""
    step = exp.cast(exp.Literal.string(str(2.0**62)), "DOUBLE", dialect="duckdb")
    wide = exp.cast(value, "DOUBLE", dialect="duckdb")
    upper = exp.func("trunc", wide / step)
    lower = exp.paren(wide.copy() - upper.copy() * step.copy())
    number = _whole(upper) * exp.Literal.number(2**62) + _whole(lower)
    far = exp.Abs(this=wide.copy()) < exp.cast(exp.Literal.string(str(2.0**124)), "DOUBLE", dialect="duckdb")
    return exp.case().when(far, exp.Cast(this=exp.paren(number), to=kind))


def _whole(double: exp.Expr) -> exp.Expr:
    return exp.cast(exp.cast(double, "BIGINT"), "DECIMAL(39, 0)")


def _finite(value: exp.Expr) -> exp.Expr:
    return exp.Abs(this=value) < exp.cast(exp.Literal.string("Infinity"), "DOUBLE", dialect="duckdb")
