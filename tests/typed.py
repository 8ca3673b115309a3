"""Values of every type that an attribute can be read from, the odd ones among them."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers

NUMBERS = ["-1", "0", "1", "2", "2.5", "9", "10", "NaN"]
SEVENTHS = ["NaN", "0.14285714285714285", "42"]
TEXTS = ["a", "a ", "A", "é", "e\u0301", ""]
QUARTERS = ["0", "0.24", "0.25", "249.49", "249.5", "-0.01"]
ENDS = ["2020-01-01", "infinity", "-infinity", "9999-12-31", "0001-01-01"]
LATE = ["1969-12-31 23:59:59.999999", "1970-01-01", "9999-12-31"]
WIDE = (-(2**70), -(2**70) + 5)
Case = tuple[str, Attribute, Sequence[str]]


def cases() -> list[Case]:
    """DuckDB's type, an attribute with NULL as a level, and values as texts."""
    null = {"nullable": True}
    wide = Integers(*WIDE, **null)
    return [
        ("SMALLINT", Integers(-32768, 9, **null), ["-32768", "0", "9", "32767"]),
        ("BIGINT", Integers(-(2**63), 9 - 2**63, **null), [str(-(2**63)), str(2**63 - 1)]),
        ("BIGINT", Bins(range(10_000), **null), ["-5", "0", "17", "9998", "9999", "10000"]),
        ("DOUBLE", Integers(0, 9, **null), [*NUMBERS, "Infinity", "-Infinity", "1e300", "-0"]),
        ("DOUBLE", Bins([0, 2, 9], whole=True, **null), [*NUMBERS, "Infinity", "1e300"]),
        ("DOUBLE", Bins([0.1, 0.3, 9], **null), [*NUMBERS, "0.1", "0.30000000000000004", "-0"]),
        ("DOUBLE", wide, [str(-(2.0**70)), "-1e300", "NaN", str(2.0**127)]),
        ("DOUBLE", Integers(2**53, 2**53 + 9, **null), ["9007199254740992", "9007199254740994"]),
        ("DOUBLE", Bins([k / 7 for k in range(300)], **null), SEVENTHS),
        ("FLOAT", Bins([0.1, 0.3, 9], **null), ["0.1", "0.3", "0.09999999", "NaN", "Infinity"]),
        ("FLOAT", Integers(0, 9, **null), NUMBERS),
        ("DECIMAL(9,2)", Bins([0.1, 0.3, 9], **null), ["0.1", "0.09", "0.30", "9", "-0.01"]),
        ("DECIMAL(9,2)", Bins([k / 4 for k in range(999)], **null), QUARTERS),
        ("DECIMAL(30,2)", Bins([k / 4 for k in range(999)], **null), QUARTERS),
        ("DECIMAL(38,0)", wide, [str(-(2**70) + k) for k in range(-1, 7)]),
        ("DECIMAL(9,2)", Integers(0, 9, **null), ["0", "0.01", "9.00", "9.01", "-1"]),
        ("DATE", Dates("2020-01-01", "2020-12-31", step="month", **null), ["2019-12-31", "2020-02-29"]),
        ("DATE", Dates("2020-01-01", "2021-12-31", **null), ENDS),
        ("TIMESTAMP", Dates("1969-12-30", "1970-01-02", **null), LATE),
        ("TIMESTAMP", Dates("2020-01-01", "2020-12-31", **null), ["2020-01-01 23:59:59", *LATE]),
        ("BOOLEAN", Booleans(**null), ["true", "false"]),
        ("VARCHAR", Categories(["a", "a ", "A", "é", ""], other=True, **null), TEXTS),
        ("VARCHAR", Categories([f"c{k}" for k in range(5000)], **null), ["c0", "c4999", "c5000", "C1"]),
        ("VARCHAR", Categories(['"', "\\", "{}", "'"], **null), ['"', "\\", "{}", "'", ","]),
    ]  # fmt: skip


def all_types(given: Sequence[Case]) -> pa.Table:
    """
    Columns ``c0``, ``c1``, …: each value of a case in rows of its own, in which all other columns are NULL.

    Each value stands there another number of times, so that no two of them can be taken for each other.
    """
    names = [f"c{i}" for i in range(len(given))]
    with duckdb.connect() as connection:
        columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in zip(names, given, strict=True))
        connection.execute(f"CREATE TABLE t ({columns})")
        for name, (_, _, values) in zip(names, given, strict=True):
            rows = [[value] for k, value in enumerate(values) for _ in range(k + 1)]
            connection.executemany(f"INSERT INTO t ({name}) VALUES (?)", rows)
        return connection.table("t").to_arrow_table()
