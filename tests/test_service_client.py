"""The client: what a service answers is what a local session answers, to programs and to pandas."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pandas as pd
import pytest
import uvicorn
from office import COUNT, Office
from sqlalchemy import create_engine, text
from sqlalchemy.dialects import registry

import laprasdp as lp
from laprasdp import dbapi
from laprasdp.service.application import application
from laprasdp.service.running import listening, uvicorn_config
from laprasdp.wire import read_plan, read_price, read_told, write_plan, write_price, write_told


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A service in a thread of this process, on a real port."""
    made = Office(tmp_path_factory.mktemp("office"))
    serving = lp_serving(made)
    socket = listening(serving)
    made.url = f"http://127.0.0.1:{socket.getsockname()[1]}"  # type: ignore[attr-defined]
    server = uvicorn.Server(uvicorn_config(lambda: application(made.desk), serving))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    yield made
    server.should_exit = True
    thread.join()
    made.close()


def lp_serving(office: Office) -> object:
    from dataclasses import replace

    return replace(office.serving, port=0)


@pytest.fixture
def session(office: Office) -> Iterator[lp.RemoteSession]:
    with lp.connect(office.url, office.tokens["ada"]) as made:  # type: ignore[attr-defined]
        yield made


STATEMENTS = (
    COUNT, f"{COUNT} WHERE n < 3", f"{COUNT} GROUP BY m", "SELECT AVG(n) FROM t",
    "SELECT m, COUNT(*), SUM(n) FROM t GROUP BY m", "SELECT ROUND(AVG(n), 1) AS mean FROM t",
    "SELECT m, COUNT(*) AS c FROM t GROUP BY m HAVING COUNT(*) > 30", "SELECT MEDIAN(n) FROM t",
    "SELECT STDDEV(n) FROM t",
)  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_answer_is_what_the_session_has_answered(
    office: Office, session: lp.RemoteSession, statement: str
) -> None:
    price = session.price(statement)
    answer = session.ask(statement)
    local = office.desk.tables["t"].session.ask(statement, analyst="ada")
    assert type(answer) is type(local)
    assert answer.columns() == local.columns()
    assert answer.columns(0.8) == local.columns(0.8)  # a level of those that are always told
    assert answer.charge == pytest.approx(price.charge)
    assert session.ask(statement, analyst="ada").charge == 0
    assert read_told(json.loads(json.dumps(write_told(local)))).columns(0.9) == local.columns(0.9)
    assert session.account == office.desk.tables["t"].account


def test_the_rest_of_the_protocol(office: Office, session: lp.RemoteSession) -> None:
    table = office.desk.tables["t"]
    assert session.plan().row() == table.plan().row()
    assert read_plan(write_plan(table.plan())).typical_std == table.plan().typical_std
    price = table.session.price(f"{COUNT} WHERE n = 8", analyst="ada")
    assert read_price(write_price(price)) == price == session.price(f"{COUNT} WHERE n = 8")
    assert (
        session.parse(f"{COUNT} WHERE n < 3").queries == table.session.parse(f"{COUNT} WHERE n < 3").queries
    )
    assert (session.name, session.analyst, session.unit) == ("t", "ada", table.session.unit)
    assert repr(session).startswith("<RemoteSession over t: ε = ")
    statement = session.parse(f"{COUNT} WHERE n < 3")
    assert [one.charge for one in session.ask_many([statement, statement])][1] == 0
    with pytest.raises(lp.BudgetExhausted, match="nothing is left"):
        remeasured(session)


def remeasured(session: lp.RemoteSession) -> None:
    """Until nothing is left, whatever other tests have asked before."""
    for _ in range(100):
        session.ask(COUNT, remeasure=True)


def test_errors_are_those_of_a_session(office: Office, session: lp.RemoteSession) -> None:
    for statement, kind in (
        ("SELECT MAX(n) FROM t", lp.UnsupportedQuery),
        ("SELECT COUNT(*", lp.QuerySyntaxError),
        ("SELECT COUNT(*) FROM s", lp.OtherTable),
    ):
        with pytest.raises(kind):
            session.ask(statement)
        with pytest.raises(kind):
            session.parse(statement)
    with pytest.raises(lp.TooImprecise):
        session.ask(f"{COUNT} WHERE n = 5", max_std=1e-6)
    with pytest.raises(lp.UnknownAnalyst, match="a token of ben"):
        session.ask(COUNT, analyst="ben")
    with pytest.raises(lp.UnknownAnalyst, match="curator"):
        session.allot({})
    with pytest.raises(lp.UnknownAnalyst, match="token"):
        lp.connect(office.url, "lapras_none")  # type: ignore[attr-defined]
    with pytest.raises(lp.LedgerError, match="cannot be reached"):
        lp.connect("http://127.0.0.1:9", "lapras_none")
    with pytest.raises(lp.ConfigError, match="begins with"):
        lp.connect("ftp://127.0.0.1", "lapras_none")
    with pytest.raises(lp.UnsupportedQuery, match="as text"):
        session.ask(next(iter(session.parse(COUNT).queries)))
    with (
        lp.connect(office.url, office.tokens["cleo"]) as curator,  # type: ignore[attr-defined]
        pytest.raises(lp.UnknownAnalyst, match="role analyst"),
    ):
        curator.ask(COUNT)
    session.close()
    session.close()
    with pytest.raises(lp.LedgerError, match="closed"):
        session.ask(COUNT)


def test_pandas_and_sqlalchemy_ask_a_service(office: Office) -> None:
    given = {"source": office.url, "token": office.tokens["ada"]}  # type: ignore[attr-defined]
    with dbapi.connect(given["source"], given["token"], uncertainty=True) as connection:
        cursor = connection.execute("SELECT m, COUNT(*) AS c FROM t GROUP BY m")
        assert [name for name, *_ in cursor.description or ()] == ["m", "c", "c std", "c low", "c high"]
        rows = cursor.fetchall()
    registry.register("lapras", "laprasdp.dbapi.alchemy", "LaprasDialect")  # as an installed package does
    engine = create_engine("lapras://", connect_args=given)
    with engine.connect() as opened:
        frame = pd.read_sql(text("SELECT m, COUNT(*) AS c FROM t GROUP BY m"), opened)
        one = opened.execute(text("SELECT COUNT(*) FROM t WHERE n < :top"), {"top": 3}).scalar_one()
    assert frame["c"].tolist() == [row[1] for row in rows]
    assert isinstance(one, float)
    engine.dispose()
