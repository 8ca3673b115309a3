"""Of all functions that DuckDB has, none gets in whose value hangs on more than its arguments."""

from __future__ import annotations

import duckdb
import pytest

from laprasdp.errors import LaprasError
from laprasdp.queries.attribute import Categories, Integers
from laprasdp.queries.domain import Domain
from laprasdp.sql.moments import AGGREGATES
from laprasdp.sql.reader import Reader
from laprasdp.sql.reading import PUBLIC
from laprasdp.sql.scalar import FUNCTIONS

READER = Reader(Domain(a=Integers(0, 3), s=Categories(["x", "y"])), "t")
LISTED = FUNCTIONS | AGGREGATES | PUBLIC
MACROS = {"nullif", "date_add"}
"""Of SQL's own CASE and +, so that they have no stability of their own."""
IMPURE = (
    *("random", "setseed", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "now", "today", "current_date"),
    *("current_time", "current_timestamp", "get_current_timestamp", "get_current_time"),
    *("transaction_timestamp",),
    *("txid_current", "current_user", "session_user", "current_database", "current_schema"),
    *("current_setting", "current_query", "getenv", "nextval", "currval", "write_log"),
    *("sleep_ms", "read_text", "read_blob"),
    *("read_csv", "read_csv_auto", "read_parquet", "read_json", "glob", "pg_sleep", "version"),
    *("age", "ago", "hash"),
)  # fmt: skip


@pytest.fixture(scope="module")
def functions() -> list[tuple[str, str, str]]:
    """Name, kind and stability of each."""
    asked = "SELECT DISTINCT lower(function_name), function_type, stability FROM duckdb_functions()"
    return duckdb.sql(asked).fetchall()


def asked_as(name: str) -> list[str]:
    """Statements that call a function with no, one and two arguments, wherever a function may stand."""
    calls = [f'"{name}"({given})' for given in ("", "a", "s, a")]
    return [
        *(f"SELECT COUNT(*) FROM t WHERE CAST({call} AS VARCHAR) = '1'" for call in calls),
        f"SELECT {calls[1]}, COUNT(*) FROM t GROUP BY 1",
        f"SELECT COUNT(*) + {calls[0]} FROM t",
        f"SELECT COUNT(*) FROM {calls[1]}",
    ]


def test_listed_functions_are_consistent(functions: list[tuple[str, str, str]]) -> None:
    found = {
        (name, stability) for name, kind, stability in functions if name in FUNCTIONS and kind == "scalar"
    }
    assert len(found) > 100
    assert {name for name, stability in found if stability != "CONSISTENT"} == set()
    macros = {name for name, kind, _ in functions if name in FUNCTIONS and "macro" in kind}
    assert macros <= MACROS
    for name in {name for name, kind, _ in functions if name in LISTED and "table" in kind}:
        with pytest.raises(LaprasError):
            READER.parse(f"SELECT COUNT(*) FROM {name}(t, a)")


def test_no_function_that_is_not_listed_gets_in(functions: list[tuple[str, str, str]]) -> None:
    others = {name for name, _, _ in functions if name not in LISTED}
    assert len(others) > 300
    for name in sorted(others):
        if '"' in name:
            continue
        for text in asked_as(name):
            with pytest.raises(LaprasError):
                READER.parse(text)


@pytest.mark.parametrize("name", IMPURE)
def test_what_hangs_on_chance_clock_server_or_files_is_refused(name: str) -> None:
    """Also without quotes and parentheses, as SQL has some of them."""
    assert name not in LISTED
    bare = [f"SELECT COUNT(*) FROM t WHERE {name} > '1'", f"SELECT {name}, COUNT(*) FROM t"]
    for text in [*asked_as(name), *bare]:
        with pytest.raises(LaprasError):
            READER.parse(text)
