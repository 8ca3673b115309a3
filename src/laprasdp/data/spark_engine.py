"""Spark as an engine: one statement, counted by the cluster, of files that stayed as they were."""

from __future__ import annotations

import re
import socket
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from laprasdp.data.column import Column, found_column
from laprasdp.data.packed import Packed
from laprasdp.data.patience import awaited
from laprasdp.data.persons import cells_of
from laprasdp.data.scan import Declared, Scan
from laprasdp.data.spark_words import duckdb_type, is_padded, joined, placed, typed, value_of, words_for
from laprasdp.data.words import spelled
from laprasdp.errors import DataError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

SCHEMES = ("spark", "sc")
_BATCH = 2**17
_FEW = 64  # files
_PATIENCE = 120.0  # seconds without a worker
_ADDRESS = re.compile(r"(spark|sc)://[\w.,:\[\]-]+")
_FILE = re.compile(r"(?:(parquet|delta|orc)\.`([^`]+)`|([^`@]*/[^`@]*))(?:@(\d+))?")
_NAME = re.compile(r"([^/@.`]+(?:\.[^/@.`]+){0,2})(?:@(\d+))?")
_OURS = {
    "spark.log.level": "OFF",  # what is logged quotes values
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_NEEDED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""With other values numbers would be written otherwise, or rows be left out."""
_CONDITIONS = {
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table",
    "PATH_NOT_FOUND": "there is no such file or folder",
    "SCHEMA_NOT_FOUND": "there is no such schema",
    "UNABLE_TO_INFER_SCHEMA": "it is no file or folder of that format",
    "UNRESOLVED_COLUMN": "a column of it is not there any more",
    "FAILED_READ_FILE": "a file of it is damaged, or was replaced while it was read: open it again",
    "INSUFFICIENT_TABLE_PERMISSIONS": "this user may not read it",
    "DELTA_VERSIONS_NOT_CONTIGUOUS": "this version of it is not kept any more",
    "PACKAGE_NOT_INSTALLED": "install what is missing, as pip install 'lapras-dp[spark]' does",
    "OPERATION_CANCELED": "somebody ended the job: open it again",
}


class SparkEngine:
    """
    A table, view, file or folder that a Spark cluster reads; implements `laprasdp.data.engine.Engine`.

    Parameters
    ----------
    source : str or SparkSession
        ``spark://host:port`` of a standalone master, ``sc://host:port`` of a Spark Connect server, or a
        session, which is left open.
    table : str, optional
        ``table``, ``schema.table`` or ``catalog.schema.table``; the path of a Parquet file or folder; or
        ``delta.`path` `` and the like as Spark writes them.  ``@12`` behind it names a version of a Delta
        table or a snapshot of an Iceberg table; without it the last one is read.

    Attributes
    ----------
    name, label : str
        How the table, and how messages, call it.
    described : list of (name, type)
        Its columns, with the DuckDB types that stand for theirs.

    Raises
    ------
    DataError
        Nobody answers at the address, there is no such table, or the session would leave rows out.

    Notes
    -----
    **Privacy.**  Guarantees what `Engine` asks: the rows are read by one statement, of expressions of a row's
    own values that fail on none.  A version is pinned where the format has versions.  Files without versions
    are listed before and after with their sizes and times, and another list is an error, so what was counted
    is of one state of them (a file that is replaced by one of the same size within its clock's tick is not
    seen).  A view's own expressions may fail; it cannot be opened then.  Executors may write what does not
    fit in their memory to the cluster's own disks.
    """

    def __init__(self, source: str | Any, table: str | None = None) -> None:
        self._owned, self._tag = isinstance(source, str), f"lapras-{token_hex(8)}"
        self.label = source.partition(";")[0] if isinstance(source, str) else "the Spark session"
        self.name, self._version, self._is_file = "", "", False
        with self._told():
            self._spark = _session(source) if isinstance(source, str) else source
        try:
            with self._told():
                self._check_settings()
                self._find(table)
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> tuple[str, str]:
        """Spark, and the table with catalog and schema, or the name of the file; with its version."""
        return "spark", self._place + (f"@{self._version}" if self._version else "")

    def columns(self, names: Sequence[str], person: str | None) -> tuple[tuple[Column, ...], Column | None]:
        """The columns of these names, and the one that names a person."""
        known = [Column(name, kind, place) for place, (name, kind) in enumerate(self.described)]
        found = tuple(found_column(self.label, known, name) for name in names)
        if person is None:
            return found, None
        return found, found_column(self.label, known, person, "privacy unit's column")

    def types(self, scan: Scan) -> Mapping[str, str]:
        """The DuckDB type that stands for each attribute's column, from the schema."""
        return {read.name: read.column.type for read in scan.attributes}

    def run(self, scan: Scan) -> Iterator[RecordBatch]:
        """The combinations of levels that occur, and how many rows there are of each."""
        cells = cells_of(self._rows(scan), scan, words_for(""), packs=False)  # it groups columns faster
        statement = typed(cells).sql("spark")
        with self._told():
            counted = self._counted(statement)
            if self._state(self._frame()) != self._begun:
                raise DataError(f"{self.label} was changed while it was read: open it again")
        batches = counted.to_batches(_BATCH)
        yield from batches if scan.person is None else map(Packed(scan.sizes).unpacked, batches)

    def close(self) -> None:
        """Leave the cluster, if the session was not given; closing twice does nothing."""
        if self._owned:
            self._owned = False
            with suppress(Exception):  # what is gone is left
                self._spark.stop()

    def _check_settings(self) -> None:
        for key, value in _NEEDED.items():
            if str(self._spark.conf.get(key)).lower() != value:
                raise DataError(f"{self.label} has {key} not {value}: its answers could differ")

    def _find(self, table: str | None) -> None:
        if table is None:
            raise DataError(f"{self.label} is a cluster: name a table, or the path of Parquet files")
        file, named = _FILE.fullmatch(table), _NAME.fullmatch(table)
        self.label, self._is_file = f"{table} of {self.label}", file is not None
        if file is not None:
            form, path, self._version = file[1] or "parquet", file[2] or file[3], file[4] or ""
            parts = [form, path]
            self.name = path.rstrip("/").rpartition("/")[2].split(".")[0] or "data"
            self._place = path.rstrip("/").rpartition("/")[2]
        elif named is not None:
            parts, self._version = named[1].split("."), named[2] or ""
            known = self._spark.catalog.getTable(".".join(f"`{part}`" for part in parts))
            whole = [known.catalog, *(known.namespace or []), known.name]
            self._place = ".".join(part for part in whole if part)
            self.name, form = parts[-1], self._format(parts)
        else:
            raise DataError(f"{self.label}: write schema.table, or the path of Parquet files")
        self._parts = parts
        if form in ("delta", "iceberg"):
            self._version = self._version or self._last_version(form)
        elif self._version:
            raise DataError(f"{self.label}: {form or 'a view'} has no versions: leave @{self._version} out")
        frame = self._frame()
        fields, self._begun = frame.schema.fields, self._state(frame)
        self._padded = [is_padded(field) for field in fields]
        self.described = [(field.name, duckdb_type(field.dataType.simpleString())) for field in fields]

    def _format(self, parts: Sequence[str]) -> str:
        """Of which format a table is, or ''."""
        named = _table(parts).sql("spark")
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {named}").collect()
        return next((str(row[1]).lower() for row in rows if row[0] == "Provider"), "")

    def _last_version(self, form: str) -> str:
        named = _table(self._parts).sql("spark")
        if form == "delta":
            asked = f"DESCRIBE HISTORY {named} LIMIT 1"
        else:
            asked = f"SELECT snapshot_id FROM {named}.refs WHERE name = 'main'"
        return str(self._spark.sql(asked).collect()[0][0])

    @property
    def _table(self) -> exp.Table:
        table = _table(self._parts, alias="t")
        if self._version:
            number = exp.Literal.number(self._version)
            table.set("version", exp.Version(this="VERSION", kind="AS OF", expression=number))
        return table

    def _frame(self) -> Any:
        """The table as it is now; of files Spark reads the schema anew, by a job of its own."""
        if not self._version and not self._is_file:
            self._spark.catalog.refreshTable(".".join(f"`{part}`" for part in self._parts))
        return self._spark.sql(exp.select("*").from_(self._table).sql("spark"))

    def _state(self, frame: Any) -> object:
        """The schema of the table and, if no version holds them, its files with sizes and times."""
        schema = frame.schema.simpleString()
        files = [] if self._version else sorted(frame.inputFiles())
        if not files:
            return schema, files
        return schema, files, self._listed(files)

    def _listed(self, files: Sequence[str]) -> list[str]:
        """Names, sizes and times of files; of few of them by the driver itself, which needs no job."""
        if len(files) > _FEW or _is_remote(self._spark):
            literal = [re.sub(r"([\\\[\]{}*?])", r"\\\1", name) for name in files]
            kept = ["path", "length", "modificationTime"]
            listed = self._spark.read.format("binaryFile").load(literal).select(*kept).toArrow()
            return sorted(map(str, listed.to_pylist()))
        jvm, conf = self._spark._jvm, self._spark._jsparkSession.sessionState().newHadoopConf()
        paths = [jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name)) for name in files]
        found = [path.getFileSystem(conf).getFileStatus(path) for path in paths]
        return sorted(f"{one.getPath()} {one.getLen()} {one.getModificationTime()}" for one in found)

    def _counted(self, statement: str) -> Any:
        """The result of a statement, as an Arrow table."""
        if _is_remote(self._spark):

            def act() -> Any:
                self._spark.addTag(self._tag)
                try:
                    return self._spark.sql(statement).toArrow()
                finally:
                    self._spark.removeTag(self._tag)

            return awaited(act, lambda: self._spark.interruptTag(self._tag))
        context, busy = self._spark.sparkContext, [time.monotonic()]
        tracker, executors = context.statusTracker(), context._jsc.sc()

        def tagged() -> Any:
            context.addJobTag(self._tag)
            try:
                return self._spark.sql(statement).toArrow()
            finally:
                context.removeJobTag(self._tag)

        def share() -> float | None:
            if context.master.startswith("local") or executors.getExecutorMemoryStatus().size() > 1:
                busy[0] = time.monotonic()  # one of them is the driver's
            if time.monotonic() > busy[0] + _PATIENCE:
                raise DataError(f"{self.label}: no worker is there to read it: start one, or wait for others")
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = sum(stage.numTasks for stage in stages if stage is not None)
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            return done / tasks if tasks else None

        return awaited(tagged, lambda: context.cancelJobsWithTag(self._tag), share=share)

    def _rows(self, scan: Scan) -> exp.Select:
        """The levels a0, a1, … and, with persons, who, a text."""
        rows = exp.select().from_(self._table)
        for i, read in enumerate(scan.attributes):
            level, rows = self._level(read, rows, f"list{i}")
            rows = rows.select(exp.cast(level, "INTEGER").as_(f"a{i}"))
        if scan.person is not None:
            rows = rows.select(words_for(scan.person.type)["text"](self._value(scan.person)).as_("who"))
        return rows

    def _level(self, read: Declared, rows: exp.Select, listed: str) -> tuple[exp.Expr, exp.Select]:
        value, words = self._value(read.column), words_for(read.column.type)
        names = {"value": value, "absent": _named(read.column).is_(exp.null())}
        lookup = read.level.lookup
        if lookup is not None and lookup.is_ordered:
            names["found"] = placed(lookup, spelled(lookup.of, words, names))
        elif lookup is not None:
            rows = joined(rows, lookup, spelled(lookup.of, words, names), listed)
            names["found"] = exp.column("level", listed)
        return spelled(read.level.expression, words, names), rows

    def _value(self, column: Column) -> exp.Expr:
        return value_of(_named(column), column.type, is_padded=self._padded[column.place])

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of Spark as what a user can do about them; what it says may quote a value."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pandas, which is not used
                yield
        except (DataError, ModuleNotFoundError, AssertionError):
            raise
        except Exception as error:  # of Py4J, gRPC, PySpark and the operating system
            raise DataError(f"{self.label}: {_reason(error)}") from None


def _session(address: str) -> Any:
    """A session of a cluster; the workers find it at the address by which this machine reaches the master."""
    if _ADDRESS.fullmatch(address.partition(";")[0].rstrip("/")) is None:
        raise DataError("the cluster's address cannot be read: write spark://host:port or sc://host:port")
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise DataError(f"install {error.name}, as pip install 'lapras-dp[spark]' does") from None
    hosts = address.partition("://")[2].partition("/")[0].split(",")
    here = _reached(hosts, 15002 if address.startswith("sc:") else 7077)
    if address.startswith("sc:"):
        from pyspark.sql.connect.session import SparkSession as Remote

        return Remote.builder.remote(address).create()
    running = SparkSession.getActiveSession()
    if running is not None:
        raise DataError("there is a Spark session in this process: give that one as the source")
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    asked = {"spark.master": address, "spark.app.name": "lapras", "spark.driver.host": here}
    conf = SparkConf().setAll(list({**_OURS, **_NEEDED, **asked}.items()))
    gateway = getattr(SparkContext, "_gateway", None)  # the driver of an earlier session lives on
    if gateway is None:
        gateway = launch_gateway(conf, {"stdout": DEVNULL, "stderr": DEVNULL})  # type: ignore[no-untyped-call]
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


def _reached(hosts: Sequence[str], usual: int) -> str:
    """This machine's address on the way to the first host that answers."""
    for host in hosts:
        name, _, port = host.rpartition(":") if ":" in host else (host, "", str(usual))
        with (
            suppress(OSError, ValueError),
            socket.create_connection((name.strip("[]"), int(port)), 10) as one,
        ):
            here: str = one.getsockname()[0]
            return here
    raise DataError(f"{','.join(hosts)}: nobody answers there: start the server or check host and port")


def _is_remote(session: Any) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def _table(parts: Sequence[str], alias: str | None = None) -> exp.Table:
    name, schema, catalog = [*map(_quoted, reversed(parts)), None, None][:3]
    return exp.table_(name, schema, catalog, alias=alias)  # type: ignore[arg-type]


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _named(column: Column) -> exp.Column:
    return exp.column(_quoted(column.name), "t")


def _reason(error: Exception) -> str:
    """What an error of Spark means: nothing of what it says is repeated."""
    condition = getattr(error, "getCondition", lambda: None)() or ""
    text = f"{condition} {type(error).__name__} {error}"
    known = next((says for part, says in _CONDITIONS.items() if part in text), None)
    if known is None and re.search("UNAVAILABLE|Py4JNetworkError|ConnectionRefused|SESSION_CLOSED", text):
        known = "the connection was lost: open it again"
    if known is None and re.search("UNAUTHENTICATED|PERMISSION_DENIED", text):
        known = "this user may not read it"
    return known or "it cannot be read to its end: does an expression of a view fail, or is a file damaged?"
