"""`lapras ask`: one statement, answered on a ledger that lasts."""

from __future__ import annotations

from pathlib import Path

from laprasdp.cli.rows import writer
from laprasdp.cli.show import progress, say, what_is_left
from laprasdp.config import read_config


def ask(statement: str, config: Path, level: float, analyst: str | None, *, as_json: bool) -> int:
    """Answer `statement` and print it."""
    settings = read_config(config)
    settings.kept()  # without one, every question would have the whole budget
    with progress("opening the table"):
        session = settings.open()
    answer = session.ask(statement, analyst=analyst)
    writer("json" if as_json else "text", level, session)(None, answer)
    say(what_is_left(session))
    return 0
