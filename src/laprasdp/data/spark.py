"""A private table on a Spark cluster: the cluster counts it once, and is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laprasdp.data.scanned import ScannedTable
from laprasdp.data.spark_engine import SparkEngine
from laprasdp.errors import interruptible
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain


class SparkTable(ScannedTable):
    """
    A table read once by a Spark cluster.

    Parameters
    ----------
    source : str or SparkSession
        ``spark://host:port``, ``sc://host:port``, or a session, which is left open.
    table : str, optional
        A table, or the path of Parquet files, as in `laprasdp.data.spark_engine.SparkEngine`.
    name : str, optional
        How statements call the table; its own name otherwise.
    domain, unit, key, apart
        As in `ScannedTable`.

    Raises
    ------
    DataError
        The cluster lets nobody in, or the table cannot be read as declared.

    Notes
    -----
    **Privacy.**  As `ScannedTable` and `laprasdp.data.spark_engine.SparkEngine`.

    Numbers, dates and texts mean what they mean in DuckDB (see `DuckDBTable`): texts are equal if all bytes
    are, whatever the collation; NaN and infinities lie outside.  ``char(n)`` is read without its padding,
    ``timestamp`` is refused, since its calendar date depends on a time zone; ``timestamp_ntz`` has one.
    """

    @interruptible()
    def __init__(
        self,
        source: str | Any,
        domain: Domain,
        *,
        table: str | None = None,
        name: str | None = None,
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 (frozen)
        key: str | None = None,
        apart: tuple[str, Sequence[int]] | None = None,
    ) -> None:
        engine = SparkEngine(source, table)
        name = engine.name if name is None else name
        super().__init__(engine, domain, name=name, unit=unit, key=key, apart=apart)
