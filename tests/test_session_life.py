"""A session's end: closing, `with`, and collection let go of everything that a session has open."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from growing import COUNT, FEB
from growing import opened as windows_opened

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.periods import open_windows
from laprasdp.stream.opening import open_session

DOMAIN = lp.Domain(n=lp.Integers(0, 2))
ROWS = pa.table({"n": [0, 1, 1, 2]})
CLOSED = "the session is closed: open another one to go on"
ROUNDS = int(os.environ.get("LAPRAS_SESSION_ROUNDS", "12"))
"""Each opens four sessions; 500 make 2,000, under a limit of 256 descriptors."""


def opened(ledger: Any = None) -> lp.Session:
    return open_session(
        ROWS, DOMAIN, budget=lp.Budget(1, 1e-6), horizon=4, policy="independent", name="t", ledger=ledger
    )


def windows(ledger: Any = None) -> lp.WindowedSession:
    days = pa.table({"day": pa.array([19_724, 19_755], pa.date32()), "n": [1, 1]})  # January and February
    return open_windows(
        days, lp.Domain(n=lp.Integers(0, 2), day=lp.Dates("2024-01-01", "2024-02-29")), attribute="day",
        periods="month", budget=lp.Budget(1, 1e-6), horizon=4, policy="independent", name="t", ledger=ledger,
    )  # fmt: skip


KINDS: dict[str, Callable[[Any], Any]] = {"session": opened, "windows": windows}


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "ledger.db" if request.param == "sqlite" else None


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return KINDS[request.param]


@pytest.fixture
def without_collector() -> Iterator[None]:
    """What is dropped is collected because nothing refers to it, not because somebody looks for circles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_closed_session_is_asked_nothing_more(make: Callable[[Any], Any], ledger: Path | None) -> None:
    session = make(ledger)
    session.ask(COUNT)
    session.close()
    session.close()
    asked: list[Callable[[], Any]] = [
        lambda: session.ask(COUNT), lambda: session.ask(f"{COUNT} WHERE n = 1"), lambda: session.spent,
        lambda: list(session.ask_many([COUNT])), lambda: session.remaining, session.plan,
    ]  # fmt: skip
    if isinstance(session, lp.WindowedSession):
        asked += [lambda: session.raise_budget(FEB, lp.Budget(2, 1e-6)), session.add_period]
    else:
        asked += [lambda: session.raise_budget(lp.Budget(2, 1e-6))]
    for ask in asked:
        with pytest.raises(lp.LedgerError) as caught:
            ask()
        assert str(caught.value) == CLOSED
    assert session.parse(COUNT).text  # what needs neither table nor ledger


def test_a_block_closes_its_session(make: Callable[[Any], Any], ledger: Path | None) -> None:
    with make(ledger) as session:
        value = session.ask(COUNT).value
    with pytest.raises(lp.LedgerError, match=CLOSED):
        session.ask(COUNT)
    with pytest.raises(ZeroDivisionError), make(ledger) as session:
        1 / 0  # noqa: B018
    with pytest.raises(lp.LedgerError, match=CLOSED):
        session.ask(COUNT)
    if ledger is not None:
        with make(ledger) as again:
            assert again.ask(COUNT).value == value
        assert [file.name for file in ledger.parent.iterdir()] == ["ledger.db"]  # the log is written back


def test_what_was_given_stays_open(tmp_path: Path) -> None:
    from laprasdp.data.duckdb import DuckDBTable
    from laprasdp.ledger.sql import SQLLedger

    table, kept = DuckDBTable(ROWS, DOMAIN, name="t"), SQLLedger(tmp_path / "ledger.db")
    budget = lp.Budget(1, 1e-6)
    sessions = [open_session(table, DOMAIN, budget=budget, ledger=kept) for _ in range(2)]
    first = sessions[0].ask(COUNT)
    sessions[0].close()
    assert sessions[1].ask(COUNT).value == first.value
    assert sessions[1].ask(f"{COUNT} WHERE n = 1").source


def test_a_table_that_was_opened_for_a_session_is_closed_with_it(make: Callable[[Any], Any]) -> None:
    session = make(None)
    table = session.table if isinstance(session, lp.Session) else session.period(FEB).table
    session.close()
    with pytest.raises(lp.DataError, match="is closed"):
        table.marginal(())


def test_what_a_configuration_opens_is_closed(tmp_path: Path, without_collector: None) -> None:
    (tmp_path / "t.csv").write_text("n\n0\n1\n")
    (tmp_path / "lapras.toml").write_text(
        '[source]\nfile = "t.csv"\n[privacy]\nepsilon = 1\ndelta = 1e-6\n[ledger]\nfile = "x.ledger"\n'
        '[domain.n]\ntype = "integers"\nmin = 0\nmax = 2\n'
    )
    before = descriptors()
    with read_config(tmp_path / "lapras.toml").open() as session:
        session.ask(COUNT)
        assert (tmp_path / "x.ledger-wal").exists()
    assert not (tmp_path / "x.ledger-wal").exists()
    assert descriptors() <= before


@pytest.mark.parametrize("close", [True, False], ids=["closed", "dropped"])
def test_nothing_keeps_a_session(
    make: Callable[[Any], Any], ledger: Path | None, close: bool, without_collector: None
) -> None:
    def once() -> list[weakref.ref[Any]]:
        session = make(ledger)
        session.ask(COUNT)
        with pytest.raises(lp.UnsupportedQuery):
            session.ask("SELECT 1")
        one = session if isinstance(session, lp.Session) else session.period(FEB)
        seen = [session, one, one.table, one.ledger]
        if close:
            session.close()
        return [weakref.ref(each) for each in seen]

    once()  # what is imported once stays
    before = descriptors()
    assert [gone() for gone in once()] == [None] * 4
    assert descriptors() == before
    if ledger is not None:
        assert [file.name for file in ledger.parent.iterdir()] == ["ledger.db"]


def test_a_session_of_many_threads_lets_go(tmp_path: Path, without_collector: None) -> None:
    from concurrent.futures import ThreadPoolExecutor

    before = descriptors()
    session = opened(tmp_path / "ledger.db")
    with ThreadPoolExecutor(8) as pool:
        assert len({answer.value for answer in pool.map(session.ask, [COUNT] * 40)}) == 1
        assert len(set(pool.map(lambda _: session.spent, range(40)))) == 1
    session.close()
    assert descriptors() <= before + 1
    with opened(tmp_path / "ledger.db") as again:
        assert again.ask(COUNT).source == "replay"


CHILD = """
import resource, sys
rounds, limit = int(sys.argv[2]), min(256, 20 + int(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
import gc
gc.disable()
from test_session_life import COUNT, opened
from pathlib import Path
folder = Path(sys.argv[1])
for number in range(rounds):
    for ledger in (None, folder / f"{number % 7}.db"):
        with opened(ledger) as session:
            session.ask(COUNT)
        session = opened(ledger)
        session.ask(COUNT)
        del session
print("done")
"""


def test_many_sessions_fit_few_descriptors(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), str(ROUNDS)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_windows_that_are_closed_leave_a_shelf_that_is_opened_again(tmp_path: Path) -> None:
    from laprasdp.ledger.sql import SQLShelf

    shelf = SQLShelf(tmp_path / "shelf.db")
    with windows_opened(ledger=shelf) as session:
        value = session.ask(COUNT).value
    with windows_opened(ledger=shelf) as session:
        assert session.ask(COUNT).value == value
