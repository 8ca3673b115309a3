"""How DuckDB spells the words of a plan, and the lists that it joins."""

from __future__ import annotations

from types import MappingProxyType

import duckdb
from sqlglot import exp

from laprasdp.data.levels import LevelList
from laprasdp.data.words import Spelling


def _call(function: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=list(arguments))


def _read(value: exp.Expr, kind: exp.Expr) -> exp.Expr:
    return exp.TryCast(this=value, to=kind)


def _text(value: exp.Expr) -> exp.Expr:
    return _call("try", exp.cast(value, "VARCHAR"))


def _finite(value: exp.Expr) -> exp.Expr:
    return _call("try", _call("isfinite", value))


def _parts(*parts: exp.Expr) -> exp.Expr:
    return _call("concat_ws", exp.Literal.string("|"), *parts)


DUCKDB: Spelling = MappingProxyType(
    {
        "read": _read,
        "text": _text,
        "bytes": lambda text: _call("encode", text),
        "finite": _finite,
        "whole": lambda number: _call("trunc", number),
        "quotient": lambda number, by: exp.IntDiv(this=number, expression=by),
        "matches": lambda text, pattern: _call("regexp_full_match", text, pattern),
        "moment": lambda text, form: _call("try_strptime", text, form),
        "digest": lambda *parts: _call("md5", _parts(*parts)),
        "hash": lambda *parts: _call("md5_number", _parts(*parts)),
        "number": lambda text: exp.cast(
            exp.IntDiv(this=_call("hash", text), expression=exp.Literal.number(2)), "BIGINT"
        ),
    }
)
"""What DuckDB makes of each of `laprasdp.data.words.WORDS`."""


def joined(scan: exp.Select, lookup: LevelList, key: exp.Expr, name: str) -> exp.Select:
    """The scan beside the table `name` of a list, with NULL where `key`, the list's `of`, finds nothing."""
    value = exp.column("value", name)
    if lookup.is_ordered:
        return scan.join(exp.to_table(name), on=exp.GTE(this=key, expression=value), join_type="ASOF LEFT")
    return scan.join(exp.to_table(name), on=key.eq(value), join_type="LEFT")


def create_list(connection: duckdb.DuckDBPyConnection, lookup: LevelList, name: str) -> None:
    """A table of the values and levels of a list."""
    import pyarrow

    values, levels = zip(*lookup.entries, strict=True)
    connection.register("given", pyarrow.table({"value": values, "level": levels}))
    value = exp.cast(exp.column("value"), lookup.type, dialect="duckdb").as_("value")
    connection.execute(f"CREATE TABLE {name} AS " + exp.select(value, "level").from_("given").sql("duckdb"))
    connection.unregister("given")
