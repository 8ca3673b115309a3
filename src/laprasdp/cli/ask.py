"""`lapras ask`: one statement, answered or priced on a ledger that lasts."""

from __future__ import annotations

import json
from pathlib import Path

from laprasdp.cli.printing import REASONS, Format, writer
from laprasdp.cli.show import price as charged
from laprasdp.cli.show import progress, records, say, what_is_left
from laprasdp.config import read_config
from laprasdp.stream.price import Price


def ask(
    statement: str, config: Path, level: float, analyst: str | None, *, priced: bool, form: Format
) -> int:
    """Answer `statement` and print it; or print its price, and ask nothing."""
    settings = read_config(config)
    settings.kept()  # without one, every question would have the whole budget
    with progress("opening the table"):
        session = settings.open()
    if priced:
        price = session.price(statement, analyst=analyst)
        row = {"query": statement, "unit": session.unit} | price.row()
        print(json.dumps(row) if form == "json" else _price_line(price, session.unit))
        return 0
    answer = session.ask(statement, analyst=analyst)
    writer(form, level, session)(None, answer)
    say(what_is_left(session))
    return 0


def _price_line(price: Price, unit: str) -> str:
    if price.refusal is None:
        known = [std for std in price.std if std is not None]
        ends = dict.fromkeys(records(std) for std in (min(known), max(known)))
        parts = [f"charge {unit} {charged(price.charge)}, std {' to '.join(ends)}"]
    else:
        parts = [f"it would be refused: {price.refusal}"]
    for one in price.released:
        where = "" if one.period is None else f" in the period from {one.period}"
        parts.append(
            f"also released first{where}: {REASONS[one.reason]}, charge {unit} {charged(one.charge)}"
        )
    return "; ".join(parts)
