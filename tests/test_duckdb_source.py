"""What a table does to its source, and which sources are refused."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sources import (
    DATASETS,
    DOMAIN,
    arrow_of,
    as_dict,
    brute,
    check,
    contract_rows,
    from_csv,
    from_database,
    from_json,
    from_parquet,
)

from laprasdp.data.duckdb import DuckDBTable
from laprasdp.data.schema import columns, kind_of
from laprasdp.errors import DataError
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain

# The source stays as it is


def stamp(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


@pytest.mark.parametrize(
    "source", [from_parquet, from_csv, from_json, from_database], ids=lambda s: s.__name__
)
def test_the_file_and_its_folder_stay_untouched(source: Any, tmp_path: Path, monkeypatch: Any) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "cwd"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    rows = contract_rows()
    path, table = source(folder, rows)
    before = stamp(folder)
    folder.chmod(0o555)
    try:
        opened = DuckDBTable(path, DOMAIN, table=table)
        opened.marginal((0, 1))
        Path(path).write_bytes(b"changed")  # a snapshot: later answers come from the same rows
        check(opened, rows)
    finally:
        folder.chmod(0o755)
    Path(path).unlink()
    assert set(before) == {Path(path).name}
    assert list(folder.iterdir()) == [] == list(elsewhere.iterdir())
    path, table = source(folder, rows)
    before = stamp(folder)
    with DuckDBTable(path, DOMAIN, table=table) as opened:
        opened.marginal((0, 1, 2))
        assert stamp(folder) == before
    columns(path, table)
    assert stamp(folder) == before


def test_the_snapshot_reaches_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the databases that opening makes, one is still open: it holds the cells and sees no file."""
    path, rows = from_database(tmp_path, contract_rows())
    for source, name in [(DATASETS / "adult.parquet", None), (path, rows)]:
        made: list[duckdb.DuckDBPyConnection] = []
        true = duckdb.connect

        def connect(*arguments: Any, made: Any = made, true: Any = true, **more: Any) -> Any:
            made.append(true(*arguments, **more))
            return made[-1]

        monkeypatch.setattr(duckdb, "connect", connect)
        table = DuckDBTable(source, Domain(age=Integers(0, 90)), table=name)
        monkeypatch.undo()
        reached = []
        for connection in made:
            try:
                reached.append(connection.execute("SELECT table_name FROM duckdb_tables()").fetchall())
            except duckdb.ConnectionException:
                continue
            with pytest.raises(duckdb.PermissionException):
                connection.execute("FROM read_parquet(?)", [str(DATASETS / "adult.parquet")])
            with pytest.raises(duckdb.Error):
                connection.execute("SET enable_external_access = true")
        assert reached == [[("cells",)]]
        table.close()


def test_threads_get_the_same_answers_and_closing_is_final() -> None:
    table = DuckDBTable(arrow_of(contract_rows()), DOMAIN)
    wanted = brute(DOMAIN, contract_rows(), (0, 2, 3))
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(as_dict(table.marginal((0, 2, 3)), (0, 2, 3))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8
    table.close()
    table.close()
    with pytest.raises(DataError, match="table data is closed"):
        table.marginal(())


# Real tables


def test_adult() -> None:
    table = DuckDBTable(
        DATASETS / "adult.parquet", Domain(AGE=Integers(17, 90), sex=Categories(["Female", "Male"]))
    )
    assert table.name == "adult"
    assert table.marginal(()).counts.tolist() == [48842]
    assert as_dict(table.marginal((1,)), (1,)) == {(0,): 16192, (1,): 32650}
    assert len(table.marginal((0,)).counts) == 74


def test_flights() -> None:
    path = DATASETS / "flights_2015jan_idebench.parquet"
    raw = pa.parquet.read_table(path).to_pylist()
    names = {key: sorted({row[key] for row in raw}) for key in ("UNIQUE_CARRIER", "ORIGIN_STATE_ABR")}
    assert [len(values) for values in names.values()] == [14, 54]
    domain = Domain(
        UNIQUE_CARRIER=Categories(names["UNIQUE_CARRIER"]),
        ORIGIN_STATE_ABR=Categories(names["ORIGIN_STATE_ABR"]),
        ARR_DELAY=Bins([-100, -15, 0, 15, 60, 2000], whole=True, nullable=True),
        DISTANCE=Bins(range(0, 5001, 20), whole=True),
    )
    table = DuckDBTable(path, domain)
    assert as_dict(table.marginal((0, 2)), (0, 2)) == brute(domain, raw, (0, 2))
    assert as_dict(table.marginal((1, 3)), (1, 3)) == brute(domain, raw, (1, 3))


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "none.csv: there is no such file"),
        ("empty.csv", b"", "empty.csv is an empty file, not a table"),
        ("x.parquet", b"nonsense" * 9, "x.parquet is not a readable Parquet file"),
        ("x.parquet", b"PAR1" + b"nonsense" * 9, "x.parquet is not a readable Parquet file"),
        ("x.json", b"{nonsense", "x.json is not a JSON array of records; one with a record a line is named"),
        ("x.csv", bytes(range(256)) * 9, "x.csv: the first line cannot be a header"),
        ("x.csv", b"nonsense,b\n1,2\n", "x.csv: the first line names none of the declared columns"),
        ("x.duckdb", b"nonsense" * 9, "x.duckdb is not a readable DuckDB database"),
        ("x.duckdb", b"nonsenseDUCK" * 9, "x.duckdb"),
        ("x.db", b"SQLite format 3\0" * 9, "x.db is an SQLite database; what is read: Parquet"),
        ("x.xlsx", b"PK" * 9, r"x.xlsx is of no known kind; what is read: Parquet \(.parquet\), CSV"),
        ("noending", b"a,b\n1,2\n", "noending is of no known kind"),
    ],
)
def test_files_that_are_no_table(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        DuckDBTable(tmp_path / name, Domain(a=Integers(0, 9)))
    assert "\n" not in str(caught.value)
    assert "nonsense" not in str(caught.value)


def test_paths_that_are_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(a=Integers(0, 9))
    with pytest.raises(DataError, match="is a directory; name one file"):
        DuckDBTable(tmp_path, domain)
    with pytest.raises(DataError, match="remote address"):
        DuckDBTable("https://example.org/a.csv", domain)
    with pytest.raises(DataError, match="cannot be opened"):
        DuckDBTable("a\0b.csv", domain)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="not a regular file"):
        DuckDBTable(tmp_path / "pipe.csv", domain)
    with pytest.raises(DataError, match="a dict is no table: give a path"):
        DuckDBTable({"a": 1}, domain)
    with pytest.raises(DataError, match="leave out table t"):
        DuckDBTable(pa.table({"a": [1]}), domain, table="t")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"a.csv is a CSV file, one table by itself: leave out table t"):
        DuckDBTable(tmp_path / "a.csv", domain, table="t")

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"a.csv cannot be read: permission denied"):
        DuckDBTable(tmp_path / "a.csv", domain)


@pytest.mark.parametrize(
    "column", ["who", "person", "a0", "level", "value", "rows", "s", "map0", "copy", "a b"]
)
def test_column_names_never_collide_with_ours(column: str, tmp_path: Path) -> None:
    pa.parquet.write_table(
        pa.table({column: [1, 1, 2, 300], "n": ["x", "y", "x", "x"]}), tmp_path / "t.parquet"
    )
    domain = Domain({column: Bins(range(200)), "n": Categories(["x", "y"])})
    for unit, total in [(PrivacyUnit(), 3), (PrivacyUnit(column, 1), 2), (PrivacyUnit("n", 1), 2)]:
        assert DuckDBTable(tmp_path / "t.parquet", domain, unit=unit).marginal(()).counts == [total]


def test_databases(tmp_path: Path) -> None:
    path, domain = tmp_path / "shop.db", Domain(a=Integers(0, 9))
    with duckdb.connect(path) as connection:
        with pytest.raises(DataError, match=r"shop\.db"):
            DuckDBTable(path, domain, table="t")
        connection.execute("CREATE TABLE Orders(a INTEGER); INSERT INTO Orders VALUES (1), (2), (77)")
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t(a INTEGER); CREATE VIEW v AS FROM Orders WHERE a < 2"
        )
    with pytest.raises(DataError, match=r"shop.db is a database: name a table; it has Orders, v, s.t"):
        DuckDBTable(path, domain)
    with pytest.raises(DataError, match=r"shop.db has no table missing; it has Orders, v, s.t"):
        DuckDBTable(path, domain, table="missing")
    totals = [DuckDBTable(path, domain, table=t).marginal(()).counts[0] for t in ("orders", "v", "s.t")]
    assert totals == [2, 1, 0]
    assert DuckDBTable(path, domain, table="orders").name == "Orders"
    with duckdb.connect(path) as connection:  # the snapshot holds no lock
        connection.execute("DROP TABLE s.t")


def test_columns_that_do_not_fit() -> None:
    table = pa.table(
        {
            "age": ["1"],
            "Born": pa.array([1], pa.timestamp("us", tz="UTC")),
            "blob": [b""],
            "list": [[1]],
            "n": [1],
            "f": [1.5],
        }
    )
    cases: list[tuple[Domain, str]] = [
        (Domain(age=Integers(0, 9)), "column age holds VARCHAR, which cannot be read as integers"),
        (Domain(age=Bins([0, 9])), "column age holds VARCHAR, which cannot be read as bins"),
        (Domain(age=Booleans()), "column age holds VARCHAR, which cannot be read as booleans"),
        (Domain(age=Dates("2024-01-01", "2024-01-02")), "column age holds VARCHAR, .* as dates"),
        (Domain(n=Categories(["1"])), "column n holds BIGINT, which cannot be read as categories"),
        (Domain(n=Booleans()), "column n holds BIGINT, which cannot be read as booleans"),
        (Domain(list=Integers(0, 9)), r"column list holds BIGINT\[\], which cannot be read as integers"),
        (Domain(born=Dates("2024-01-01", "2024-01-02")), "column Born holds .*depends on a time zone"),
        (Domain(ages=Integers(0, 9)), "the table has no column ages; the nearest is age"),
        (Domain(zzz=Integers(0, 9)), "the table has no column zzz; it has age, Born, blob, list, n, f"),
    ]
    for domain, message in cases:
        with pytest.raises(DataError, match=message):
            DuckDBTable(table, domain)
    for column, held in [("blob", "BLOB"), ("f", "DOUBLE"), ("Born", "TIMESTAMP WITH TIME ZONE")]:
        with pytest.raises(DataError, match=f"column {column} holds {held}, which cannot name a person"):
            DuckDBTable(table, Domain(n=Integers(0, 9)), unit=PrivacyUnit(column))
    with pytest.raises(DataError, match="has no privacy unit's column nn; it has age, Born"):
        DuckDBTable(table, Domain(n=Integers(0, 9)), unit=PrivacyUnit("nn"))


def test_case_tells_columns_apart_only_where_it_must(tmp_path: Path) -> None:
    table = pa.table({"Age": [1], "age": [2], "aGe_1": [3], "B": [4]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        found = [
            DuckDBTable(source, Domain({name: Integers(0, 9)})).marginal((0,)).levels[0].tolist()
            for name in ("Age", "age", "age_1", "b")
        ]
        assert found == [[1], [2], [3], [4]]
        with pytest.raises(DataError, match=r"AGE could be several columns of .*: Age, age"):
            DuckDBTable(source, Domain(AGE=Integers(0, 9)))


def test_no_message_repeats_a_value(tmp_path: Path) -> None:
    lines = ["age"] + ["1"] * 30_000
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"age": int(x)}) for x in lines[1:]))
    with open(tmp_path / "t.jsonl", "a") as file:
        file.write('\n{"age": "SECRET"}\n{"age": SECRET')
    assert DuckDBTable(tmp_path / "t.jsonl", Domain(age=Integers(0, 9))).marginal(()).counts == [30_000]
    (tmp_path / "t.json").write_bytes((tmp_path / "t.jsonl").read_bytes())
    (tmp_path / "t.csv").write_text("SECRET,1\nSECRET,2\n")
    for name in ("t.json", "t.csv"):
        with pytest.raises(DataError) as caught:
            DuckDBTable(tmp_path / name, Domain(age=Integers(0, 9)))
        assert "SECRET" not in str(caught.value)


# The schema


def test_schema() -> None:
    assert columns(DATASETS / "adult.parquet")[:2] == [("age", "INTEGER"), ("workclass", "VARCHAR")]
    assert columns(DATASETS / "airport_state.csv") == [("airport", ""), ("state", "")]
    assert columns(pa.table({"a": [1], "b": pa.nulls(1)})) == [("a", "BIGINT"), ("b", "")]


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        ("UHUGEINT", "integers"),
        ("FLOAT", "bins"),
        ("DECIMAL(18,3)", "bins"),
        ("UUID", "categories"),
        ("ENUM('a', 'b(')", "categories"),
        ("TIMESTAMP_NS", "dates"),
        ("DATE", "dates"),
        ("BOOLEAN", "booleans"),
        ("TIMESTAMP WITH TIME ZONE", None),
        ("INTEGER[]", None),
        ("STRUCT(a INTEGER)", None),
        ("TIME", None),
    ],
)
def test_kind_of(spelled: str, kind: str | None) -> None:
    assert kind_of(spelled) == kind


def test_no_progress_bar_is_drawn_into_what_a_program_prints() -> None:
    """DuckDB draws one after two seconds where the main module has no file, as in a worker process."""
    program = (
        "import duckdb, pandas; from laprasdp.data.duckdb import DuckDBTable; from laprasdp import *;"
        "true, made = duckdb.connect, [];"
        "duckdb.connect = lambda *a, **k: made.append(true(*a, **k)) or made[-1];"
        "opened = DuckDBTable(pandas.DataFrame({'a': [1]}), Domain(a=Integers(0, 1)), name='t');"
        "read = \"SELECT current_setting('enable_progress_bar')\";"
        "print(true().execute(read).fetchall(), made[-1].execute(read).fetchall())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[(True,)]", "[(False,)]"]
