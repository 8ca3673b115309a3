"""A dialect of SQLAlchemy, so that text queries and pandas read through ``create_engine("lapras:///lapras.toml")``."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect


class LaprasDialect(DefaultDialect):
    """
    Statements as they are written, over `laprasdp.dbapi`.

    Notes
    -----
    The URL is ``lapras://analyst@/path/of/lapras.toml``; the analyst may be left out.  Address and token of a
    service go beside it, as ``connect_args={"source": "https://…", "token": …}``.  There are no transactions:
    what was asked is charged.
    """

    name = "lapras"
    driver = "laprasdp"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The module of PEP 249."""
        from laprasdp import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """What `laprasdp.dbapi.connect` is called with."""
        return [], {"source": url.database or "lapras.toml", "analyst": url.username}

    def initialize(self, connection: Any) -> None:
        """Nothing is asked of the table to get to know it."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """It is there as long as it is open."""
        return not dbapi_connection.closed
