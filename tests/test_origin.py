"""A ledger knows its table by what is public of it, and keeps the order of rows that it was begun with."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet
import pytest

import laprasdp as lp
from laprasdp.errors import LedgerError
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.privacy.unit import FIRST_ORDER, ORDERS, PrivacyUnit
from laprasdp.record.settings import unit_of

DOMAIN = lp.Domain(n=lp.Integers(0, 9))
ASKED = "SELECT COUNT(*) FROM t"


WHOLE = pa.int64()


def written(path: Path, kind: pa.DataType = WHOLE, rows: int = 10) -> Path:
    columns = {"n": pa.array(range(rows), kind), "who": pa.array([f"p{k % 3}" for k in range(rows)])}
    pa.parquet.write_table(pa.table(columns), path)
    return path


def asked(source: Any, ledger: Any, **options: Any) -> None:
    with lp.open_session(
        source, DOMAIN, budget=lp.Budget(1, 1e-6), horizon=9, ledger=ledger, name="t", **options
    ) as session:
        session.ask(ASKED)


def test_another_table_is_refused_until_the_curator_says_that_it_moved(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a.parquet"), written(tmp_path / "b.parquet", rows=3)
    ledger = tmp_path / "kept.ledger"
    asked(first, ledger)
    message = r'the ledger is of a\.parquet \(parquet\), not of b\.parquet .*write moved_from = "a\.parquet"'
    with pytest.raises(LedgerError, match=message):
        asked(second, ledger)
    with pytest.raises(LedgerError, match="not of b"):
        asked(second, ledger, moved_from="c.parquet")
    asked(second, ledger, moved_from="a.parquet")
    asked(first, ledger)


def test_a_folder_may_move_and_rows_may_come(tmp_path: Path) -> None:
    ledger = tmp_path / "kept.ledger"
    asked(written(tmp_path / "a.parquet"), ledger)
    (tmp_path / "elsewhere").mkdir()
    asked(written(tmp_path / "elsewhere" / "a.parquet", rows=20), ledger)


def test_a_type_that_changed_is_named(tmp_path: Path) -> None:
    ledger = tmp_path / "kept.ledger"
    asked(written(tmp_path / "a.parquet"), ledger)
    with pytest.raises(LedgerError, match=r"not of a\.parquet \(parquet\) with n INTEGER"):
        asked(written(tmp_path / "a.parquet", pa.int32()), ledger)


def test_nothing_of_the_rows_is_in_a_fingerprint(tmp_path: Path) -> None:
    kept = []
    for rows in (0, 10):
        ledger = MemoryLedger()
        asked(written(tmp_path / "a.parquet", rows=rows), ledger)
        begun = ledger.begun()
        assert begun is not None
        kept.append(begun["source"])
    assert kept == [{"engine": "parquet", "table": "a.parquet", "columns": [["n", "BIGINT"]]}] * 2


def test_a_frame_in_memory_has_no_types(tmp_path: Path) -> None:
    """With a NULL more pandas makes doubles of whole numbers: a type may tell of a row."""
    pandas = pytest.importorskip("pandas")
    ledger = MemoryLedger()
    asked(pandas.DataFrame({"n": [1, 2]}), ledger)
    asked(pandas.DataFrame({"n": [1, None]}), ledger)


def test_a_ledger_of_before_knows_no_table_and_keeps_its_order(tmp_path: Path) -> None:
    """The ledger of persons that an earlier version made goes on with the rows that it has counted."""
    path = tmp_path / "persons.ledger"
    packed = Path(__file__).parent / "ledgers" / "persons-basic" / "lapras.ledger.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    ledger = SQLLedger(path)
    begun = ledger.begun()
    ledger.close()
    assert begun is not None
    assert "source" not in begun
    assert unit_of(begun)["order"] == FIRST_ORDER


@pytest.mark.parametrize("order", ORDERS)
def test_a_session_takes_the_order_that_its_ledger_has(tmp_path: Path, order: str) -> None:
    source, ledger = written(tmp_path / "a.parquet"), MemoryLedger()
    asked(source, ledger, unit=PrivacyUnit("who", 2, order))
    begun = ledger.begun()
    assert begun is not None
    assert unit_of(begun)["order"] == order
    with lp.open_session(
        source,
        DOMAIN,
        budget=lp.Budget(1, 1e-6),
        horizon=9,
        ledger=ledger,
        name="t",
        unit=PrivacyUnit("who", 2),
    ) as session:
        assert session.table.unit.order == order


@pytest.mark.filterwarnings(
    "ignore:.*experimental", "ignore:fetch_arrow_table:DeprecationWarning", "ignore:The 'future.infer"
)
def test_a_ledger_knows_its_table_through_ibis(tmp_path: Path) -> None:
    made = ibis.duckdb.connect()
    made.con.execute("CREATE TABLE t AS SELECT k % 2 AS n FROM range(1000) AS r(k)")
    made.con.execute("CREATE TABLE u AS FROM t")
    domain, budget = lp.Domain(n=lp.Integers(0, 1)), lp.Budget(1.0, 1e-6)
    asked = "SELECT COUNT(*) FROM t WHERE n = 1"

    def ask(source: Any, **more: Any) -> float:
        kept = tmp_path / "t.ledger"
        with lp.open_session(source, domain, budget=budget, ledger=kept, name="t", **more) as session:
            return float(session.ask(asked).value)

    first = ask(made, table="t")
    assert abs(first - 500) < 100
    assert ask(made.table("t")) == first
    with pytest.raises(LedgerError, match=r"is of memory.main.t \(duckdb\), not of memory.main.u"):
        ask(made, table="u")
