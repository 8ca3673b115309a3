"""Options that several commands have, and what their values may be."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Literal

import typer


def is_level(level: float) -> float:
    """A level, if it is one."""
    if not 0 < level < 1:
        raise typer.BadParameter("a level lies strictly between 0 and 1, such as 0.95")
    return level


def records(std: float | None) -> float | None:
    """A standard deviation, if it is one."""
    if std is not None and not 0 < std < math.inf:
        raise typer.BadParameter("a standard deviation is a positive number of records, such as 5")
    return std


def digests(heads: list[str] | None) -> list[str]:
    """Digests in small letters, if they are some."""
    for head in heads or []:
        if not re.fullmatch("[0-9a-f]{64}", head.lower()):
            raise typer.BadParameter("a digest is 64 hexadecimal digits, as `lapras ledger verify` prints it")
    return [head.lower() for head in heads or []]


def columns(given: list[str] | None) -> dict[str, str]:
    from laprasdp.predict.source import NAMES

    columns = dict(one.partition("=")[::2] for one in given or [])
    for what, name in columns.items():
        if what not in NAMES or not name:
            raise typer.BadParameter(f"--column takes {', '.join(NAMES)}, such as query=statement_text")
    return columns


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
ConfigFile = Annotated[
    Path, typer.Option("--config", "-c", metavar="TOML", help="What is declared about the table.")
]
LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="Statements with times: CSV, JSON lines, Parquet or DuckDB.")
]
LogIs = Annotated[
    str | None,
    typer.Option(
        metavar="public|private-answers",
        help="Where the log comes from; predictions are public, so it must be said.",
    ),
]
Horizon = Annotated[int | None, typer.Option(min=1, help="Statements to predict; else as in the TOML file.")]
Model = Annotated[Literal["mixture", "frequency"], typer.Option(help="How to predict.")]
LogTable = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="The table with the log inside a database.")
]
LogColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="WHAT=NAME",
        help="A column of the log: query, time, user or session, and its name; else found by usual names.",
    ),
]
LogLines = Annotated[bool, typer.Option("--multiline", help="Statements in a CSV log may hold line breaks.")]
Analyst = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who asks; charges are kept under this name.")
]
OnePeriod = Annotated[
    str | None, typer.Option(metavar="DATE", help="With [windows]: the period that begins on this date.")
]
MaxStd = Annotated[
    float | None,
    typer.Option(
        metavar="STD",
        callback=records,
        help="Spend no more than this standard deviation needs; also AT STD 25 at the statement's end.",
    ),
]
Adjusted = Annotated[
    Literal["nonnegative", "rounded", "consistent", "fitted"] | None,
    typer.Option(help="Print an adjusted value beside each, free: not negative; whole; adding up; fitted."),
]
Remeasure = Annotated[
    bool, typer.Option("--remeasure", help="Buy a better answer, joined to what was shown before.")
]
Tables = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", metavar="TOML", help="What is declared about a table; one each."),
]
Workers = Annotated[int | None, typer.Option(min=1, max=64, help="Processes; several need PostgreSQL.")]
NewRole = Annotated[
    Literal["analyst", "curator", "auditor", "service"] | None,
    typer.Option(help="What somebody new may do."),
]
NewCap = Annotated[float | None, typer.Option(help="The ε of what may be measured for somebody new.")]
Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes one that is free.")]
