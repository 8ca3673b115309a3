"""What reads from databases reads private answers: PEP 249, pandas and SQLAlchemy over a session."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest
import sqlalchemy
from command import write_small
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import registry

import laprasdp as lp
from laprasdp import dbapi
from laprasdp.dbapi.literals import bound

registry.register("lapras", "laprasdp.dbapi.alchemy", "LaprasDialect")  # as the installed package does
DOMAIN = lp.Domain(
    n=lp.Integers(0, 9), s=lp.Categories(["it's", "b", "c"]), d=lp.Dates("2024-01-01", "2024-01-10")
)
GROUPS = "SELECT s, COUNT(*) AS many FROM t GROUP BY s"


@pytest.fixture
def session() -> Iterator[lp.Session]:
    rows = {"n": [1, 2, 3], "s": ["it's", "b", "b"], "d": [datetime.date(2024, 1, day) for day in (1, 2, 3)]}
    with lp.open_session(pd.DataFrame(rows), DOMAIN, budget=lp.Budget(10.0, 0.01), name="t") as opened:
        yield opened


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(dbapi.NotSupportedError, dbapi.DatabaseError)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    assert dbapi.Connection.ProgrammingError is dbapi.ProgrammingError
    assert float == dbapi.NUMBER  # noqa: E721 - a type code
    assert float != dbapi.STRING  # noqa: E721


def test_a_cursor_goes_through_the_rows(session: lp.Session) -> None:
    connection = dbapi.connect(session)
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="execute first"):
        cursor.fetchone()
    cursor.execute(GROUPS)
    assert [(column[0], column[1]) for column in cursor.description or ()] == [("s", str), ("many", float)]
    assert cursor.rowcount == 3
    first = cursor.fetchone()
    assert first is not None
    assert first[0] == "it's"
    assert [row[0] for row in cursor.fetchmany(1)] == ["b"]
    assert [row[0] for row in cursor] == ["c"]
    assert cursor.fetchall() == []
    assert cursor.fetchone() is None
    assert cursor.answer is not None
    assert len(cursor.answer) == 3
    again = connection.execute(GROUPS)
    assert again.fetchall()[0] == first  # the same answer, for free
    connection.commit()
    connection.rollback()
    connection.close()
    for use in (connection.cursor, lambda: cursor.fetchone(), connection.commit):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            use()
    session.ask(GROUPS)  # what was given stays open


def test_uncertainty_is_columns_beside_the_values(session: lp.Session) -> None:
    cursor = dbapi.connect(session, uncertainty=True).execute("SELECT COUNT(*) AS many FROM t")
    assert [column[0] for column in cursor.description or ()] == ["many", "many std", "many low", "many high"]
    ((value, std, low, high),) = cursor.fetchall()
    assert low <= value <= high  # the same where an error of 0 has 95%
    assert std > 0


REFUSED = {
    "SELECT COUNT(* FROM t": dbapi.ProgrammingError,
    "SELECT COUNT(*) FROM other": dbapi.ProgrammingError,
    "SELECT MIN(n) FROM t": dbapi.NotSupportedError,
    "DELETE FROM t": dbapi.NotSupportedError,
}


@pytest.mark.parametrize(("statement", "kind"), REFUSED.items(), ids=REFUSED)
def test_a_refusal_has_its_class_and_costs_nothing(
    statement: str, kind: type[Exception], session: lp.Session
) -> None:
    before = session.remaining
    with pytest.raises(kind) as told:
        dbapi.connect(session).execute(statement)
    assert type(told.value) is kind
    assert isinstance(told.value.__cause__, lp.LaprasError)
    assert session.remaining == before


def test_an_analyst_without_a_cap_is_an_operational_error() -> None:
    domain = lp.Domain(n=lp.Integers(0, 1))
    with lp.open_session(
        pd.DataFrame({"n": [1]}), domain, budget=lp.Budget(1.0, 0.1), name="t", caps={"ada": 0.5}
    ) as session:
        assert dbapi.connect(session, analyst="ada").execute("SELECT COUNT(*) FROM t").fetchone()
        with pytest.raises(dbapi.OperationalError):
            dbapi.connect(session, analyst="bob").execute("SELECT COUNT(*) FROM t")


@given(st.lists(st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text() | st.dates()))
def test_parameters_are_literals_of_the_same_value(values: list[object]) -> None:
    statement = bound("SELECT " + ", ".join(["'?'", *"?" * len(values)]) + " -- ?", values)
    found = duckdb.sql(statement.replace("\x00", "")).fetchone()
    assert found == ("?", *(one.replace("\x00", "") if isinstance(one, str) else one for one in values))


def test_parameters_that_do_not_fit(session: lp.Session) -> None:
    connection = dbapi.connect(session)
    counted = connection.execute("SELECT COUNT(*) FROM t WHERE s = ? AND n < ?", ["it's", 5]).fetchall()
    assert counted == connection.execute("SELECT COUNT(*) FROM t WHERE s = 'it''s' AND n < 5").fetchall()
    dated = connection.execute("SELECT COUNT(*) FROM t WHERE d >= ?", [datetime.date(2024, 1, 3)])
    assert dated.rowcount == 1
    with pytest.raises(dbapi.ProgrammingError, match="1 question marks, and 2 parameters"):
        connection.execute("SELECT COUNT(*) FROM t WHERE n = ?", [1, 2])
    with pytest.raises(dbapi.InterfaceError, match="not bytes"):
        connection.execute("SELECT COUNT(*) FROM t WHERE s = ?", [b"b"])
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany("SELECT COUNT(*) FROM t WHERE n = ?", [[1], [2]])


def test_pandas_and_sqlalchemy_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small(tmp_path)
    monkeypatch.chdir(tmp_path)
    engine = sqlalchemy.create_engine("lapras://ada@/lapras.toml")
    with engine.connect() as connection:
        frame = pd.read_sql(sqlalchemy.text("SELECT n, COUNT(*) AS many FROM t GROUP BY n"), connection)
        assert list(frame.columns) == ["n", "many"]
        assert frame["many"].dtype == float
        found = connection.execute(sqlalchemy.text("SELECT COUNT(*) FROM t WHERE n < :top"), {"top": 5})
        assert len(found.fetchall()) == 1
        with pytest.raises(sqlalchemy.exc.NotSupportedError, match="MIN"):
            connection.execute(sqlalchemy.text("SELECT MIN(n) FROM t"))
    engine.dispose()
    with pytest.raises(dbapi.OperationalError, match=r"nowhere\.toml"):
        dbapi.connect("nowhere.toml")
