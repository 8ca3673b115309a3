"""Tables through Ibis: one statement of columns and a count, types that arrive whole, and what is refused."""

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import ibis
import ibis.expr.datatypes as kinds
import psycopg
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres import Server
from sources import as_dict
from sqlglot import exp
from test_engine import DOMAIN, arrow, assert_runs_count, copied, drawn, number

import laprasdp as lp
from laprasdp.data import ibis_source
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.duckdb_engine import DuckDBEngine
from laprasdp.data.engine import Engine
from laprasdp.data.ibis import IbisTable
from laprasdp.data.ibis_columns import ARRIVES, collated, refusal
from laprasdp.data.ibis_source import PASSWORD, grouped, open_backend
from laprasdp.data.open import address, called, columns_of, on_server
from laprasdp.data.schema import kind_of
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*experimental", "ignore:fetch_arrow_table:DeprecationWarning", "ignore:The 'future.infer"
)
SECRET = "hush7"


def connection(*statements: str) -> Any:
    made = ibis.duckdb.connect()
    for statement in statements:
        made.con.execute(statement)
    return made


# What the engine gets


@pytest.mark.parametrize("dialect", [name for name in ARRIVES if name != "duckdb"])
def test_the_statement_holds_names_and_a_count_and_nothing_else(dialect: str) -> None:
    names = ["city", "N_rows", "n_rows", "odd name", "day"]
    table = ibis.table(dict.fromkeys(names, "string"), name="t", catalog="c", database="s")
    asked = sqlglot.parse_one(str(ibis.to_sql(grouped(table, names), dialect=dialect)), read=dialect)
    assert plain(asked)
    assert asked.selects[-1].output_name == "n_rows_"
    group = asked.args["group"].expressions
    by = [asked.selects[int(one.name) - 1] if isinstance(one, exp.Literal) else one for one in group]
    assert [one.name for one in map(exp.Expression.unalias, by)] == names
    kept = (exp.Group, exp.From)
    assert all(value is None or value == [] or isinstance(value, kept) for key, value in asked.args.items()
               if key not in ("kind", "expressions", "operation_modifiers"))  # fmt: skip


def plain(asked: exp.Expr) -> bool:
    """Whether a statement evaluates nothing but a count."""
    told = (
        exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Group, exp.Column, exp.Identifier, exp.Alias,
        exp.Count, exp.Star,
    )  # fmt: skip
    numbers = asked.args["group"].expressions
    return all(
        isinstance(node, told) or any(node is number and node.is_int for number in numbers)
        for node in asked.walk()
    )


@pytest.mark.parametrize(
    "said",
    ["lower(a), COUNT(*) FROM t GROUP BY 1", "a, SUM(b) FROM t GROUP BY a", "a FROM t WHERE b > 1 GROUP BY a",
     "a, COUNT(*) FROM t GROUP BY a + 0", "CAST(a AS text), COUNT(*) FROM t GROUP BY 1"],
)  # fmt: skip
def test_a_statement_with_an_expression_would_be_seen(said: str) -> None:
    assert not plain(sqlglot.parse_one("SELECT " + said))


# The same answers


NO_DAYS = Domain({name: DOMAIN[name] for name in DOMAIN if name != "day"})


@pytest.fixture
def postgres_backend(postgres: Server) -> Any:
    url = postgres.url.replace("@/postgres?host=", "@localhost/postgres?host=")
    password, host = url.partition("postgres:")[2].partition("@")[0], url.partition("host=")[2]
    made = ibis.postgres.connect(host=host, user="postgres", password=password, database="postgres")
    yield made
    made.disconnect()


def test_postgresql_through_ibis_counts_what_plain_python_counts(
    postgres: Server, postgres_backend: Any, tmp_path: Path
) -> None:
    def opened(table: Any, _: Path) -> Engine:
        name = f"i{next(number)}"
        copied(postgres, table, name)
        return DuckDBEngine(open_backend(postgres_backend, name))

    assert_runs_count(opened, tmp_path, NO_DAYS, 10)


@settings(derandomize=True, deadline=None, max_examples=15, database=None)
@given(rows=st.integers(0, 99).map(drawn), more=st.integers(0, 99).map(lambda seed: drawn(seed)[0]))
def test_a_row_more_makes_one_count_more(rows: list[Any], more: Any) -> None:
    """Whatever the row holds, and however many groups of raw values its cell is made of."""
    names = tuple(range(len(DOMAIN)))

    def cells(given: list[Any]) -> Counter[Any]:
        made = connection()
        made.con.register("t", arrow(given))
        with IbisTable(made.table("t"), DOMAIN, key="k") as table:
            return Counter(as_dict(table.marginal(names), names))

    before, after = cells(rows), cells([*rows, more])
    assert not before - after
    assert (after - before).total() <= 1


ODD = """
CREATE TABLE t AS SELECT * FROM (VALUES
  (1, 170141183460469231731687303715884105727::HUGEINT, 255::UTINYINT, 'NaN'::FLOAT, 12345.67::DECIMAL(9, 2),
   'infinity'::DATE, TIMESTAMP '1969-12-31 23:59:59.999999', true),
  (2, -5, 0, '-0'::FLOAT, -0.01, DATE '1969-12-31', 'infinity'::TIMESTAMP, NULL),
  (3, 18446744073709551616, 7, 1e30::FLOAT, 0, '5877642-06-25 (BC)'::DATE, TIMESTAMP '2024-01-01', false),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, 3, 3, 3, 3, DATE '9999-12-31', '290309-12-22 (BC) 00:00:00'::TIMESTAMP, true)
) AS v(a, huge, tiny, real, money, day, moment, ok)
"""
ODD_DOMAIN = Domain(
    a=Integers(0, 9),
    huge=Bins([-9, 0, 4, 2.0**62], nullable=True),
    tiny=Integers(0, 255, nullable=True),
    real=Bins([-1, 0, 1, 1e38], nullable=True),
    money=Bins([-0.01, 0, 5, 12345.67, 20000], nullable=True),
    day=Dates("1969-01-01", "2024-12-31", nullable=True),
    moment=Dates("1969-01-01", "2024-12-31", nullable=True),
    ok=Booleans(nullable=True),
)


@pytest.mark.parametrize("name", list(ODD_DOMAIN))
def test_odd_values_of_a_type_are_read_as_from_a_file(name: str, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "odd.duckdb") as file:
        file.execute(ODD)
    domain = Domain({"a": ODD_DOMAIN["a"], name: ODD_DOMAIN[name]})
    axes = tuple(range(len(domain)))
    wanted = DuckDBTable(tmp_path / "odd.duckdb", domain)
    found = IbisTable(connection(ODD), domain, table="t")
    assert as_dict(found.marginal(axes), axes) == as_dict(wanted.marginal(axes), axes)
    assert found.types == {**wanted.types, **({"huge": "DECIMAL(38,0)"} if name == "huge" else {})}


def test_texts_are_read_as_they_are_declared() -> None:
    """So whatever is refused by its type can be read as a text, through a view."""
    made = connection(
        "CREATE VIEW t AS SELECT v::VARCHAR AS day, i::VARCHAR AS n, v AS real FROM (VALUES "
        "(DATE '2024-01-01', 1), (DATE '2024-01-02', 22), ('infinity', NULL), (NULL, 3)) AS v(v, i)"
    )
    domain = Domain(day=Dates("2024-01-01", "2024-01-31"), n=Integers(0, 30))
    table = IbisTable(made, domain, table="t")
    assert as_dict(table.marginal((0, 1)), (0, 1)) == {(0, 1): 1, (1, 22): 1}
    assert columns_of(made, "t") == [("day", ""), ("n", ""), ("real", "DATE")]


def test_one_column_may_be_attribute_and_person_and_names_never_collide() -> None:
    made = connection("CREATE TABLE t AS SELECT k % 3 AS n_rows, k % 2 AS rows FROM range(12) AS r(k)")
    domain = Domain(rows=Integers(0, 1), n_rows=Integers(0, 2))
    for most in (1, 4):
        with IbisTable(made, domain, table="t", unit=PrivacyUnit("n_rows", most)) as table:
            assert table.marginal(()).counts == [3 * most]
    assert as_dict(IbisTable(made, domain, table="t").marginal((0,)), (0,)) == {(0,): 6, (1,): 6}


# What is refused


def test_a_collation_would_let_a_row_change_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of what follows: without the refusal one row more moves a hundred."""
    monkeypatch.setattr(ibis_source, "collated", lambda *_: set())

    def cells(*values: str) -> dict[Any, int]:
        rows = ", ".join(f"('{value}')" for value in values)
        made = connection("CREATE TABLE t (s VARCHAR COLLATE NOCASE)", f"INSERT INTO t VALUES {rows}")
        table = IbisTable(made, Domain(s=Categories(["a", "A"])), table="t")
        return as_dict(table.marginal((0,)), (0,))

    assert cells(*["a"] * 100) == {(0,): 100}
    assert cells("A", *["a"] * 100) == {(1,): 101}


def test_texts_that_are_equal_with_other_bytes_are_refused() -> None:
    """One row more could turn the texts of its whole group into its own."""
    made = connection("CREATE TABLE t (plain VARCHAR, folded VARCHAR COLLATE NOCASE)",
                      "INSERT INTO t VALUES ('a', 'a'), ('A', 'A')")  # fmt: skip
    names = Categories(["a", "A"])
    assert as_dict(IbisTable(made, Domain(plain=names), table="t").marginal((0,)), (0,)) == {(0,): 1, (1,): 1}
    for domain, unit in [(Domain(folded=names), PrivacyUnit()), (Domain(plain=names), PrivacyUnit("folded"))]:
        with pytest.raises(DataError, match="folded holds string, and texts of other bytes may be equal"):
            IbisTable(made, domain, table="t", unit=unit)
    with pytest.raises(DataError, match="t of duckdb"):
        IbisTable(connection("SET default_collation = NOCASE", "CREATE TABLE t AS SELECT 'a' AS plain"),
                  Domain(nothing=names), table="t")  # fmt: skip


def test_of_postgresql_only_texts_that_are_equal_by_their_bytes(
    postgres: Server, postgres_backend: Any
) -> None:
    with psycopg.connect(postgres.url) as database:
        database.execute("DROP TABLE IF EXISTS padded")
        database.execute("CREATE TABLE padded (a text, b varchar(9), c char(9), d date, e numeric(9, 2))")
    found = dict(columns_of(postgres_backend, "padded"))
    assert found["a"] == found["b"] == ""
    assert [kind_of(found[name]) for name in "cde"] == [None] * 3
    for name, kind in [
        ("c", Categories(["a"])),
        ("d", Dates("2024-01-01", "2024-01-02")),
        ("e", Bins([0, 1])),
    ]:
        with pytest.raises(DataError, match=f"column {name} holds .*: read it as a text, through a view"):
            IbisTable(postgres_backend, Domain({name: kind}), table="padded")


def test_the_description_of_a_warehouse_tells_which_texts_are_collated() -> None:
    """No warehouse is here: stand-ins give what their documentation says."""
    asked: list[str] = []

    def raw(statement: str) -> Any:
        asked.append(statement)
        return SimpleNamespace(fetchall=lambda: [("PLAIN",)])

    snow = SimpleNamespace(name="snowflake", raw_sql=raw)
    assert collated(snow, ("DB", "S", "it's"), ["PLAIN", "FOLDED"]) == {"FOLDED"}
    (where,) = sqlglot.parse_one(asked[0], read="snowflake").find_all(exp.Where)
    assert {one.name for one in where.find_all(exp.Literal)} == {"S", "it's"}
    fields = [{"name": "plain"}, {"name": "empty", "collation": ""}, {"name": "ci", "collation": "und:ci"}]
    schema = [SimpleNamespace(to_api_repr=lambda one=one: one) for one in fields]
    client = SimpleNamespace(get_table=lambda name: SimpleNamespace(schema=schema if name == "p.d.t" else []))
    big = SimpleNamespace(name="bigquery", client=client)
    assert collated(big, ("p", "d", "t"), ["plain", "empty", "ci"]) == {"ci"}
    for name in ("trino", "clickhouse"):
        assert collated(SimpleNamespace(name=name), ("c", "s", "t"), ["a"]) == set()


@pytest.mark.parametrize(
    ("backend", "kind", "why"),
    [
        ("duckdb", kinds.Timestamp(timezone="UTC"), "depends on a time zone"),
        ("bigquery", kinds.Timestamp(timezone="UTC"), "depends on a time zone"),
        ("bigquery", kinds.Decimal(76, 38), "fits in 38 digits"),
        ("trino", kinds.Decimal(None, None), "fits in 38 digits"),
        ("trino", kinds.date, "not every value of it comes from trino as it is"),
        ("snowflake", kinds.int64, "not every value of it comes from snowflake"),
        ("clickhouse", kinds.Timestamp(), "not every value of it comes from clickhouse"),
        ("clickhouse", kinds.String(length=3), "its bytes need not be a text"),
        ("duckdb", kinds.Array(kinds.int64), "not every value"),
        ("postgres", kinds.json, "not every value"),
        ("trino", kinds.Decimal(38, 2), None),
        ("bigquery", kinds.date, None),
        ("snowflake", kinds.float64, None),
        ("clickhouse", kinds.uint64, None),
    ],
)
def test_a_type_that_does_not_arrive_whole_is_refused(backend: str, kind: Any, why: str | None) -> None:
    found = refusal(backend, kind)
    assert found is None if why is None else found is not None and why in found


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    made = connection("CREATE TABLE t AS SELECT 1 AS n")
    domain = Domain(n=Integers(0, 1))
    table = made.table("t")
    for source, name, message in [
        (table.filter(table.n > 0), None, "is an expression: make a view of it, and give that"),
        (made.sql("SELECT 1 AS n"), None, "is an expression"),
        (ibis.memtable({"n": [1]}), None, "is an expression"),
        (ibis.table({"n": "int64"}, name="t"), None, "Ibis table"),
        (table, "t", "is one table by itself: leave out table t"),
        (made, None, "name a table; it has t"),
        (made, "nothing", "there is no such table"),
        (made, "nothing.t", "Ibis table: "),
        (ibis.sqlite.connect(tmp_path / "x.db"), "t", "is of sqlite; what is read through Ibis: bigquery"),
    ]:
        with pytest.raises(DataError, match=message) as caught:
            IbisTable(source, domain, table=name)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="leave out how texts are written"):
        lp.open_session(made, domain, budget=lp.Budget(1, 1e-6), table="t", dialect=lp.Dialect())


def test_a_column_that_vanished_opens_nothing() -> None:
    made = connection("CREATE TABLE t AS SELECT 1 AS n, 'SECRET' AS s")
    table = made.table("t")
    made.con.execute("ALTER TABLE t DROP COLUMN n")
    with pytest.raises(DataError, match="a column of it is not there any more") as caught:
        IbisTable(table, Domain(n=Integers(0, 1)))
    assert "SECRET" not in str(caught.value)
    assert made.con.execute("SELECT 1").fetchall() == [(1,)]  # it is left as it was


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("TrinoUserError: error 401: password hush7 of me", "user or password is wrong"),
        ("Access Denied: hush7", "this user may not read it"),
        ("connection refused by hush7", "nobody answers there"),
        ("hush7", "it cannot be read to its end"),
    ],
)
def test_what_a_driver_says_is_not_repeated(monkeypatch: pytest.MonkeyPatch, said: str, message: str) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(ibis, "connect", refuse)
    with pytest.raises(DataError, match=message) as caught:
        IbisTable("trino://me:hush7@host:8080/c/s?token=hush7", Domain(n=Integers(0, 1)), table="t")
    assert "hush7" not in str(caught.value)
    assert "trino://host:8080/c/s" in str(caught.value)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(n=Integers(0, 1))
    for name in ("trino", "clickhouse", "snowflake", "bigquery"):
        driver = {"clickhouse": "clickhouse_connect", "bigquery": "google.cloud.bigquery"}.get(name, name)
        monkeypatch.setitem(sys.modules, driver, None)
        with pytest.raises(
            DataError, match=rf"install its driver, as pip install 'ibis-framework\[{name}\]'"
        ):
            IbisTable(f"{name}://host/c", domain, table="t")
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(DataError, match=r"install ibis, as pip install 'lapras-dp\[engines\]' does"):
        IbisTable("trino://host/c", domain, table="t")


# Addresses, ledgers and sessions


def test_addresses() -> None:
    for source in ("trino://host/c", "snowflake://me@acc/d", "bigquery://project", "clickhouse://h"):
        assert on_server(source)
    assert not on_server("duckdb://x")
    written = address("trino://me:hush7@host:8080/c/s?token=hush7&warehouse=w&role=r")
    assert written == "trino://me@host:8080/c/s?warehouse=w&role=r"
    assert called("c.s.visits") == "visits"


def test_the_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def connect(url: str, **options: Any) -> Any:
        given.append((url, options))
        return connection("CREATE TABLE t AS SELECT 1 AS n")

    monkeypatch.setattr(ibis, "connect", connect)
    monkeypatch.setenv(PASSWORD, "a/b@c")
    domain = Domain(n=Integers(0, 1))
    for url in ("trino://me@host/c", "snowflake://me@acc/d", "clickhouse://host", "trino://me:own@host/c"):
        IbisTable(url, domain, table="t").close()
    assert given == [
        ("trino://me:a%2Fb%40c@host/c", {}),
        ("snowflake://me:a%2Fb%40c@acc/d", {"create_object_udfs": False}),
        ("clickhouse://host", {}),
        ("trino://me:own@host/c", {}),
    ]


def test_a_ledger_is_not_charged_if_the_scan_fails(tmp_path: Path) -> None:
    made = connection("CREATE TABLE t AS SELECT 1 AS n", "CREATE TABLE u AS FROM t")
    table, domain, budget = made.table("t"), Domain(n=Integers(0, 1)), lp.Budget(1, 1e-6)
    made.con.execute("DROP TABLE t")
    with pytest.raises(DataError, match="there is no such table"):
        lp.open_session(table, domain, budget=budget, ledger=tmp_path / "l")
    with lp.open_session(made, domain, budget=budget, ledger=tmp_path / "l", table="u") as session:
        assert session.spent == 0  # nothing was begun: it may be of another table
