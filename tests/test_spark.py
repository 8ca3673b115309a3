"""Spark as a source: the levels of DuckDB for every type, files that stay as they are, lost workers."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from command import invoke, lapras
from sources import as_dict
from spark import Cluster
from typed import all_types, cases

from laprasdp.data.dialect import Dialect
from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.open import columns_of, open_table
from laprasdp.data.scan import plan
from laprasdp.data.spark import SparkTable
from laprasdp.data.spark_engine import SparkEngine
from laprasdp.data.table import Table
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Categories, Integers
from laprasdp.queries.domain import Domain

pytestmark = pytest.mark.xdist_group("spark")
N = Domain(n=Integers(0, 9))
SECRET = "SECRET"


def counts(table: Table) -> dict[tuple[int, ...], int]:
    axes = tuple(range(len(table.domain)))
    found = as_dict(table.marginal(axes), axes)
    table.close()
    return found


@pytest.fixture
def session(cluster: Cluster) -> Iterator[Any]:
    """A session whose tables are gone afterwards."""
    session = cluster.session
    session.sql("CREATE SCHEMA IF NOT EXISTS shop")
    yield session
    session.sql("DROP SCHEMA shop CASCADE")


def scan_of(engine: SparkEngine, domain: Domain = N) -> Any:
    columns, person = engine.columns(list(domain), None)
    return plan(domain, columns, person, unit=PrivacyUnit(), key="k", dialect=Dialect())


def test_each_type_has_the_levels_that_it_has_in_duckdb(session: Any, tmp_path: Path) -> None:
    given = cases()
    path = tmp_path / "types.parquet"
    parquet.write_table(all_types(given), path)
    domain = Domain({f"c{i}": attribute for i, (_, attribute, _) in enumerate(given)})
    wanted = counts(DuckDBTable(path, domain))
    assert len(wanted) > 60
    assert counts(SparkTable(session, domain, table=str(path))) == wanted


def test_what_is_no_value_and_what_is_padded(session: Any, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 lie outside, as in DuckDB; collations and paddings count for nothing."""
    path = tmp_path / "bytes.parquet"
    parquet.write_table(pa.table({"c": pa.array([b"a", b"A", b"\xffa", None], pa.binary())}), path)
    session.sql(
        f"CREATE TABLE shop.texts USING parquet AS SELECT CAST(c AS STRING) AS c FROM parquet.`{path}`"
    )
    attribute = Categories(["a"], other=True, nullable=True)
    assert counts(SparkTable(session, Domain(c=attribute), table="shop.texts")) == {(0,): 1, (1,): 1, (2,): 1}
    session.sql("CREATE TABLE shop.t (c STRING COLLATE UTF8_LCASE, p CHAR(4), v VARCHAR(4)) USING parquet")
    session.sql("INSERT INTO shop.t VALUES ('A', 'ab', 'ab '), ('a', 'ab ', 'ab'), ('a', 'abc', 'ab')")
    for name, values, wanted in [
        ("c", ["a", "A"], {(0,): 2, (1,): 1}),
        ("p", ["ab", "abc"], {(0,): 2, (1,): 1}),
        ("v", ["ab", "ab "], {(0,): 2, (1,): 1}),
    ]:
        table = SparkTable(session, Domain({name: Categories(values)}), table="shop.t")
        assert counts(table) == wanted
    unit = PrivacyUnit("c", 1)
    assert counts(
        SparkTable(session, Domain(p=Categories(["ab", "abc"])), table="shop.t", unit=unit, key="k")
    )
    ((_, held),) = columns_of(session, "shop.texts")
    assert held == "VARCHAR"


def test_types_without_levels_are_refused(session: Any) -> None:
    for place, (kind, message) in enumerate(
        [
            ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE, .*time zone"),
            ("ARRAY<INT>", r"INTEGER\[\]"),
            ("MAP<STRING, INT>", "MAP<STRING,INT>"),
            ("BINARY", "BLOB"),
        ]
    ):
        session.sql(f"CREATE TABLE shop.t{place} (n {kind}) USING parquet")
        with pytest.raises(DataError, match=f"column n holds {message}"):
            SparkTable(session, N, table=f"shop.t{place}")


def test_files_that_change_while_they_are_read_open_nothing(session: Any, tmp_path: Path) -> None:
    """Added, replaced, removed, with another type, without a column: after opening and before the end."""

    def written(name: str, column: str, values: list[Any]) -> Callable[[Path], object]:
        return lambda folder: parquet.write_table(pa.table({column: values}), folder / name)

    for place, act in enumerate(
        [
            written("b.parquet", "n", [1]),
            written("a.parquet", "n", [1, 2, 3]),
            written("a.parquet", "n", [SECRET]),
            written("a.parquet", "m", [1]),
            lambda folder: (folder / "a.parquet").unlink(),
            lambda folder: (folder / "a.parquet").write_bytes(b"PAR1" + SECRET.encode()),
        ]
    ):
        folder = tmp_path / str(place)
        folder.mkdir()
        parquet.write_table(pa.table({"n": [1, 1]}), folder / "a.parquet")
        engine = SparkEngine(session, str(folder))
        scan = scan_of(engine)
        act(folder)
        with pytest.raises(DataError) as caught:
            list(engine.run(scan))
        told = str(caught.value)
        assert "\n" not in told
        assert SECRET not in told


def test_what_the_cluster_refuses_is_one_line(session: Any, tmp_path: Path) -> None:
    session.sql("CREATE TABLE shop.t (n INT, text STRING) USING parquet")
    session.sql("INSERT INTO shop.t VALUES (1, 'SECRET')")
    session.sql("CREATE VIEW shop.failing AS SELECT CAST(text AS INT) AS n FROM shop.t")
    for source, table, message in [
        (session, None, "name a table"),
        (session, "shop.nothing", "there is no such table"),
        (session, "nowhere.t", "there is no such"),
        (session, str(tmp_path / "none.parquet"), "there is no such file or folder"),
        (session, "shop.failing", "it cannot be read to its end"),
        (session, "a.b.c.d", "write schema.table"),
        (session, "shop.t@3", "parquet has no versions: leave @3 out"),
        ("spark://127.0.0.1:1", "t", "nobody answers there"),
        ("sc://127.0.0.1:1/;token=SECRET", "t", "nobody answers there"),
        ("spark://SECRET@/x", "t", "address cannot be read"),
    ]:
        with pytest.raises(DataError, match=message) as caught:
            SparkTable(source, N, table=table)
        told = str(caught.value)
        assert "\n" not in told
        assert SECRET not in told.replace("spark://SECRET@/x", "")
    with pytest.raises(DataError, match="has no column m; it has n, text"):
        SparkTable(session, Domain(m=Integers(0, 1)), table="shop.t")
    with pytest.raises(DataError, match="there is a Spark session in this process"):
        SparkTable(session.sparkContext.master, N, table="shop.t")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(DataError, match=r"ignoreCorruptFiles not false"):
        SparkTable(session, N, table="shop.t")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "false")


def slow(session: Any, name: str, tasks: int) -> None:
    """A view of 40 rows, of which each takes a tenth of a second."""
    sleep = "java_method('java.lang.Thread', 'sleep', 100L)"
    session.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS "
        f"SELECT CASE WHEN {sleep} = 'x' THEN 1 ELSE id % 10 END AS n FROM range(0, 40, 1, {tasks})"
    )


def once_it_runs(session: Any, act: Callable[[], object]) -> threading.Thread:
    def watched() -> None:
        tracker = session.sparkContext.statusTracker()
        while not any(
            stage is not None and stage.numActiveTasks
            for stage in map(tracker.getStageInfo, tracker.getActiveStageIds())
        ):
            time.sleep(0.02)
        act()

    watching = threading.Thread(target=watched)
    watching.start()
    return watching


def test_an_interrupt_ends_a_scan(session: Any) -> None:
    slow(session, "slowly", 2)
    watching = once_it_runs(session, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        SparkTable(session, N, table="slowly")
    watching.join()
    end = time.monotonic() + 10
    while session.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < end, "the cluster goes on"
        time.sleep(0.02)


def test_a_lost_worker_changes_no_count_and_the_last_one_opens_nothing(
    cluster: Cluster, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(session, "slowly", 8)
    watching = once_it_runs(session, lambda: cluster.kill_worker("first"))
    assert counts(SparkTable(session, N, table="slowly")) == {(n,): 4 for n in range(10)}
    watching.join()
    monkeypatch.setattr("laprasdp.data.spark_engine._PATIENCE", 1.0)
    watching = once_it_runs(session, lambda: cluster.kill_worker("second"))
    with pytest.raises(DataError, match="no worker is there"):
        SparkTable(session, N, table="slowly")
    watching.join()
    for name in ("first", "second"):
        cluster.start_worker(name)


def test_spark_connect_counts_the_same(cluster: Cluster, tmp_path: Path) -> None:
    rows = {"n": [k % 11 for k in range(500)], "who": [f"p{k * k % 97}" for k in range(500)]}
    path = tmp_path / "visits.parquet"
    parquet.write_table(pa.table(rows), path)
    for unit in (PrivacyUnit(), PrivacyUnit("who", 2)):
        wanted = counts(DuckDBTable(path, N, unit=unit, key="k"))
        told = open_table(cluster.connect, N, table=str(path), unit=unit, key="k")
        assert told.origin.settings()["table"] == "visits.parquet"
        assert counts(told) == wanted


def test_commands_write_a_configuration_and_ask(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    parquet.write_table(pa.table({"n": list(range(10))}), path)
    out = tmp_path / "lapras.toml"
    told = invoke("init", f"{cluster.connect}/;user_id=me", "--table", path, "--out", out)
    assert "1 of 1 columns can be attributes" in told.stdout
    text = out.read_text()
    assert f'url = "{cluster.connect}/"\ntable = "{path}"' in text
    assert 'name = "visits"' in text
    out.write_text(text.replace("# min =", "min = 0").replace("# max =", "max = 9"))
    asked = invoke("ask", "SELECT COUNT(*) FROM visits WHERE n < 5", "--json", "--config", out)
    assert abs(json.loads(asked.stdout)["value"] - 5) < 100
    out.write_text(out.read_text().replace(f"{cluster.connect}/", cluster.master))
    again = lapras("ask", "SELECT COUNT(*) FROM visits WHERE n < 4", "--json", "--config", out, timeout=180)
    assert abs(json.loads(again.stdout)["value"] - 4) < 100
    assert again.stderr.startswith("spent")
    assert again.stderr.count("\n") == 1  # nothing of Spark's own
