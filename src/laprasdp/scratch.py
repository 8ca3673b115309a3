"""A DuckDB that holds nothing private: it reads statements, and works out public functions of public values.

It reads no file, loads no extension and knows no table but those that it is given.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Tree = dict[str, Any]
"""A node of DuckDB's own syntax tree, as `json_serialize_sql` spells it."""

_CONFIG: dict[str, Any] = {
    "threads": 1,
    "memory_limit": "1GB",
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
_NO_MEANING = frozenset(("query_location", "alias"))


class ScratchError(Exception):
    """What DuckDB said about a statement or a public value, in one line."""


class Scratch:
    """
    One DuckDB in memory, opened when it is first needed.

    Notes
    -----
    **Privacy.**  Assumes that whatever it is given is public: declared levels, lookups, released values.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._opened: duckdb.DuckDBPyConnection | None = None

    def __deepcopy__(self, memo: object) -> Scratch:
        return self  # it remembers nothing but public tables

    def read(self, text: str) -> Tree:
        """
        The tree of the one SELECT that a text is, as DuckDB reads it.

        Raises
        ------
        ScratchError
            It is no SELECT, several statements, or nothing that DuckDB can read.
        """
        asked = "SELECT json_serialize_sql(?::VARCHAR)"
        found = json.loads(self._run(asked, [text]).fetchall()[0][0])
        if found["error"]:
            raise ScratchError(_line(found.get("error_message", "")))
        if len(found["statements"]) != 1:
            raise ScratchError("several statements in one text; ask them one by one")
        node: Tree = found["statements"][0]["node"]
        return node

    def spell(self, node: Tree) -> str:
        """An expression for a message: what DuckDB spells may have lost a type, so it is never run."""
        select = self.read("SELECT 1")
        select["select_list"] = [node | {"alias": ""}]
        tree = json.dumps({"error": False, "statements": [{"node": select}]})
        text: str = self._run("SELECT json_deserialize_sql(?::JSON)", [tree]).fetchall()[0][0]
        return text.removeprefix("SELECT ")

    def expression(self, text: str) -> Tree:
        """The tree of an expression."""
        node: Tree = self.read(f"SELECT {text}")["select_list"][0]
        return node

    def describe(self, text: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a text that `read` took; it is planned, and not run."""
        with self._lock:
            return [(str(row[0]), str(row[1])) for row in self._run(f"DESCRIBE {text}").fetchall()]

    def create(self, name: str, columns: Mapping[str, str]) -> None:
        """A table without rows."""
        spelled = ", ".join(f"{quoted(one)} {kind}" for one, kind in columns.items())
        self._run(f"CREATE OR REPLACE TABLE {quoted(name)} ({spelled})")

    def keep(self, name: str, table: pa.Table, columns: str = "*") -> None:
        """A table of public values that stays."""
        with self._lock:
            self._connection.register("lapras given", table)
            try:
                self._run(f'CREATE OR REPLACE TABLE {quoted(name)} AS SELECT {columns} FROM "lapras given"')
            finally:
                self._connection.unregister("lapras given")

    def run(self, select: Tree, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """What a SELECT, as a tree, says about the given tables and those that were kept."""
        given = tables or {}
        tree = json.dumps({"error": False, "statements": [{"node": select}]})
        with self._lock:
            for name, table in given.items():
                self._connection.register(name, table)
            try:
                literal = tree.replace("'", "''")  # of JSON, made here: a PRAGMA takes no parameters
                return self._run(f"PRAGMA json_execute_serialized_sql('{literal}')").to_arrow_table()
            finally:
                for name in given:
                    self._connection.unregister(name)

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._opened is None:
            import duckdb

            self._opened = duckdb.connect(":memory:", config=dict(_CONFIG))
            self._opened.execute("SET lock_configuration = true")
        return self._opened

    def _run(self, text: str, given: Sequence[object] = ()) -> duckdb.DuckDBPyConnection:
        import duckdb

        with self._lock:
            try:
                return self._connection.execute(text, given or None)
            except duckdb.Error as error:
                raise ScratchError(_line(str(error))) from None


def quoted(name: str) -> str:
    """A name as SQL spells it."""
    return '"' + name.replace('"', '""') + '"'


def same(one: Any, other: Any) -> bool:
    """Do two trees say the same, aliases and places in the text apart?"""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = (one.keys() | other.keys()) - _NO_MEANING
        return all(same(one.get(key), other.get(key)) for key in keys)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def children(node: Tree) -> Iterator[tuple[Any, Any, Tree]]:
    """Every node right below a node: what holds it, under which key, and itself."""
    for key, part in node.items():
        if isinstance(part, dict):
            if "class" in part or "type" in part:
                yield node, key, part
            else:
                yield from children(part)
        elif isinstance(part, list):
            for place, one in enumerate(part):
                if isinstance(one, dict):
                    if "class" in one or "type" in one:
                        yield part, place, one
                    else:
                        yield from children(one)


def _line(text: str) -> str:
    """The first line of a message, without the kind of the error."""
    first = text.strip().split("\n")[0]
    _, found, rest = first.partition("Error: ")
    return " ".join((rest if found else first).split())[:300]
