"""`lapras init`: a commented lapras.toml from a table's schema; the values stay unseen."""

from __future__ import annotations

import json
import os
from pathlib import Path

from laprasdp.config.attributes import toml_key
from laprasdp.data.dialect import Dialect
from laprasdp.data.open import address, called, columns_of, on_server
from laprasdp.data.schema import kind_of
from laprasdp.errors import ConfigError, LedgerError
from laprasdp.ledger.file import check_alone
from laprasdp.whole import write_whole

_HEAD = """\
# What LAPRAS may answer about this table, and at what price to privacy.
# Everything in this file is public: fill it in from what is known about the columns, never from the rows.

[source]
{source}
# name = {name}{pad}# how statements call the table
# public = false       # true only if everybody may see the rows

[privacy]
epsilon = 1.0          # smaller protects more; `lapras plan` shows the errors it buys
delta = 1e-6           # well below 1 / number of persons
unit = "row"           # each row is a person of its own; otherwise leave this line out and write:
# column = "person"    # the column that names the person, and
# max_rows = 1         # how many rows of one person count at most

[stream]
horizon = 100          # statements that the budget is paced for; "unknown" where nobody can say
# predictions = "expected.sql"    # statements that are expected; or a list of them
# policy = "primm"
# accounting = "gaussian"
# split = "matrix-heavy"
# overlap = 0.8 # share of the stream that logs say is predicted; for policy = "primm"
# shapes = ["ranges of one attribute"]    # what unpredicted statements will be; for policy = "primm"

[ledger]
file = {ledger}{ledger_pad}# keeps what was asked and spent; without it every process has the whole budget
# url = "postgresql://user@host/name"    # instead of file; the password comes from ~/.pgpass or PGPASSWORD

# [analysts]           # who may ask, and the ε that may be measured for each at most; without it, anybody
# alice = 0.3

# One section an attribute: fill in the open keys, and delete the sections nobody will ask about.
# A row with a value outside what is declared here is not counted.
"""
_KEYS = {
    "integers": """\
type = "integers"      # one level each; for wide ranges use "bins" with start, stop, width, whole = true
# min =
# max =
""",
    "bins": """\
type = "bins"
# edges = []           # increasing; or, for even bins:
# start =
# stop =
# width =
# whole = false        # true if the column holds whole numbers only
# for sums and averages of the numbers: type = "reals", and lower, upper and step
""",
    "categories": """\
type = "categories"
# values = []          # the texts that can occur
# other = false        # true gathers every other text in one more level
""",
    "dates": """\
type = "dates"
# first =              # like 2024-01-01
# last =
# step = 1             # days, or "week", "month", "quarter", "year"
""",
    "booleans": """\
type = "booleans"
""",
}
_WRITTEN = """\
# How the file is written; nothing of it is guessed from the rows.
# delimiter = ","      # a tab for .tsv
# quote = '\"'          # doubled inside a field; "" where there is none
# null = ""            # the field that means NULL
# columns = ["a", "b"] # names of the columns, where the first line is no header
# multiline = false    # true if quoted fields hold line breaks; then every quote has to be closed
# date_format = "%d/%m/%Y"    # otherwise dates are like 2024-01-31
# decimal = "."
# encoding = "utf-8"   # or "latin-1"\
"""
_OPEN = """\
# type = "integers"    # and min, max
# type = "bins"        # and edges = [], or start, stop, width; whole = true for whole numbers
# type = "reals"       # and lower, upper, step: a number between the ends, as a multiple of the step
# type = "categories"  # and values = [], the texts that can occur; other = true gathers every other text
# type = "dates"       # and first, last like 2024-01-01; step = days, "week", "month", "quarter", "year"
# type = "booleans"    # true, t, yes, y, 1 and false, f, no, n, 0
"""
_KEYED = """\
# A JSON file tells no columns without its rows: one section for each key that is asked about.
# [domain.KEY]
"""
_TIMES = """\
# The column holds times of day, and a level is a whole day: what cuts a day is refused.
# Answered are x < '2024-02-01', x >= '2024-01-01' and CAST(x AS DATE) = '2024-01-31'.
"""
_NULLABLE = "# nullable = false     # true makes NULL a level; otherwise such rows are not counted\n"


def init(
    table: str, name: str | None, out: Path, delimiter: str | None, *, force: bool, as_json: bool
) -> int:
    """Write `out` for `table`, a file or the address of a server."""
    if out.is_dir():
        raise ConfigError(f"{out} is a directory; name the file to write")
    ledger = out.with_name(f"{out.stem}.ledger")
    try:
        check_alone(ledger)
    except LedgerError as error:
        raise LedgerError(f"the ledger {ledger}: {error}") from None
    dialect = None if delimiter is None else Dialect(delimiter=delimiter.replace("\\t", "\t"))
    found = [(column, kind, kind_of(kind)) for column, kind in columns_of(table, name, dialect)]
    text = _text(table, name, out, dialect, found)
    try:
        write_whole(out, text, new=not force)
    except FileExistsError:
        raise ConfigError(f"{out} is there already; --force overwrites it") from None
    if as_json:
        described = [{"name": column, "type": kind, "declared": fitting} for column, kind, fitting in found]
        print(json.dumps({"file": str(out), "columns": described}))
    else:
        usable = sum(fitting is not None or not kind for _, kind, fitting in found)
        print(f"wrote {out}: {usable} of {len(found)} columns can be attributes")
        print(f"next: fill in the ranges and values in {out}, then `lapras plan --config {out}`")
    return 0


def _text(
    table: str,
    name: str | None,
    out: Path,
    dialect: Dialect | None,
    found: list[tuple[str, str, str | None]],
) -> str:
    if on_server(table):
        source = f"url = {quoted(address(table))}\ntable = {quoted(str(name))}"
    else:
        where = quoted(os.path.relpath(Path(table).resolve(), out.parent.resolve()))
        source = f"file = {where}" if name is None else f"database = {where}\ntable = {quoted(name)}"
    if dialect is not None:
        source += f"\ndelimiter = {quoted(dialect.delimiter or '')}"
    if not all(kind for _, kind, _ in found):
        source += f"\n{_WRITTEN}"
    said = quoted(called(name) if name else Path(table).name.split(".")[0])
    kept = quoted(f"{out.stem}.ledger")
    pads = {"pad": " " * max(14 - len(said), 1), "ledger_pad": " " * max(15 - len(kept), 1)}
    parts = [_HEAD.format(source=source, name=said, ledger=kept, **pads)]
    if not found:
        parts.append(_KEYED + _OPEN + _NULLABLE)
    for column, kind, fitting in found:
        comment = " ".join(kind.split())[:80]
        if not kind:
            parts.append(f"[domain.{toml_key(column)}]  # text\n{_OPEN}{_NULLABLE}")
        elif fitting is None:
            parts.append(f"# [domain.{quoted(column)}]: {comment} cannot be an attribute\n")
        else:
            times = _TIMES if fitting == "dates" and kind != "DATE" else ""
            parts.append(f"[domain.{toml_key(column)}]  # {comment}\n{times}{_KEYS[fitting]}{_NULLABLE}")
    return "\n".join(parts)


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
