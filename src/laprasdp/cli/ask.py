"""`lapras ask`: one statement, answered or priced on a ledger that lasts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laprasdp.cli.printing import REASONS, Format, Post, fitting, writer
from laprasdp.cli.show import opening, records, say, what_is_left
from laprasdp.cli.show import price as charged
from laprasdp.config import read_config
from laprasdp.errors import QuerySyntaxError
from laprasdp.stream.price import Price

_AT = re.compile(r"\s+AT\s+STD\s+([0-9.]+(?:e[+-]?[0-9]+)?)\s*;?\s*$", re.IGNORECASE)


def at_std(text: str) -> tuple[str, float | None]:
    """
    A statement without AT STD at its end, and the standard deviation that stood there.

    Examples
    --------
    >>> at_std("SELECT COUNT(*) FROM t AT STD 25")
    ('SELECT COUNT(*) FROM t', 25.0)
    """
    found = _AT.search(text)
    if found is None:
        return text, None
    try:
        return text[: found.start()], float(found[1])
    except ValueError:
        raise QuerySyntaxError(f"AT STD takes a number, not {found[1]}") from None


def ask(
    statement: str,
    config: Path,
    level: float,
    wish: dict[str, Any],
    post: Post | None = None,
    *,
    priced: bool,
    form: Format,
) -> int:
    """
    Answer `statement` and print it; or print its price, and ask nothing.

    Parameters
    ----------
    wish : dict
        ``analyst``, ``max_std`` and ``remeasure``, as `Session.ask` takes them.
    post : optional
        What is printed beside each value.
    """
    statement, std = at_std(statement)
    wish |= {} if std is None else {"max_std": std}
    settings, post = fitting(read_config(config), post)
    settings.kept()  # without one, every question would have the whole budget
    with opening():
        session = settings.open()
    if priced:
        price = session.price(statement, **wish)
        row = {"query": statement, "unit": session.unit} | price.row()
        print(json.dumps(row) if form == "json" else _price_line(price, session.unit))
        return 0
    answer = session.ask(statement, **wish)
    writer(form, level, session, post)(None, answer)
    say(what_is_left(session))
    return 0


def _ends(stds: Sequence[float | None]) -> str:
    """The smallest and the largest of some standard deviations, where they are known before."""
    known = [std for std in stds if std is not None]
    if len(known) < len(stds) or not known:
        return "known once it is answered" if stds else "0"
    return " to ".join(dict.fromkeys(records(std) for std in (min(known), max(known))))


def _price_line(price: Price, unit: str) -> str:
    if price.refusal is None:
        parts = [f"charge {unit} {charged(price.charge)}"]
        for name, stds in (price.columns or {"": price.std}).items():
            parts[0] += f", {f'{name} ' if name else ''}std {_ends(stds)}"
    else:
        parts = [f"it would be refused: {price.refusal}"]
    for one in price.released:
        where = "" if one.period is None else f" in the period from {one.period}"
        parts.append(
            f"also released first{where}: {REASONS[one.reason]}, charge {unit} {charged(one.charge)}"
        )
    return "; ".join(parts)
