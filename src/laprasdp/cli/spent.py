"""The tables of `lapras budget`: by analyst, by source and by query; raises, and the forecast in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from laprasdp.cli.show import console, price, records, shorten, table
from laprasdp.stream.rehearsal import Rehearsal
from laprasdp.stream.spending import Raised, Share

_SHOWN = 10  # rows of the table by query


def by_analyst(analysts: Iterable[Share], caps: Mapping[str, float], unit: str) -> None:
    """Print who asked and what was measured for each, beside the caps."""
    shown = {share.name: share for share in analysts}
    for name in caps:
        shown.setdefault(name, Share(name, 0, 0, 0.0, 0.0))
    rows = table("analyst", ">statements", ">refused", f">spent {unit}", ">spent ε", ">cap ε")
    for share in shown.values():
        cap = caps.get(share.name or "")
        rows.add_row(
            share.name or "(no name)",
            str(share.count),
            str(share.refused),
            price(share.spent),
            f"{share.epsilon_spent:.3g}",
            "" if cap is None else f"{cap:g}",
        )
    console().print(rows)
    console().print()


def by_source(sources: Iterable[Share], unit: str) -> None:
    """Print where answers came from and what that cost."""
    rows = table("source", ">answers", f">spent {unit}", ">spent ε")
    for share in sources:
        name, count = share.name or "", f"{share.count:,}"
        if name == "opening":
            name, count = f"{name} ({count} {'release' if share.count == 1 else 'releases'})", ""
        rows.add_row(name, count, price(share.spent), f"{share.epsilon_spent:.3g}")
    console().print(rows)
    console().print("What touches different cells shares a charge: parts may add up to more than is spent.\n")


def by_query(unit: str, dearest: Sequence[tuple[float, str | None, datetime, str | None, str]]) -> None:
    """
    Print what was measured for statements.

    Parameters
    ----------
    unit : str
        Of charges.
    dearest : sequence of (charge, analyst, time, statement, periods)
        The most expensive first; periods are a text, empty everywhere where there are none.
    """
    screen = console()
    if not dearest:
        return
    apart = [">periods"] if any(periods for *_, periods in dearest) else []
    rows = table(f">charge {unit}", *apart, "<analyst", "<asked", "measured for, most expensive first")
    for charge, analyst, at, statement, periods in dearest[:_SHOWN]:
        text = shorten(statement or "", max(screen.width - 50 - 9 * len(apart), 30))
        rows.add_row(
            price(charge), *([periods] if apart else []), analyst or "", f"{at:%Y-%m-%d %H:%M}", text
        )
    screen.print(rows, markup=False)
    if len(dearest) > _SHOWN:
        screen.print(f"and {len(dearest) - _SHOWN} more; --json lists all")
    screen.print()


def raised_words(raised: Raised) -> str:
    """Who raised the budget, and when."""
    who = f" by {raised.analyst}" if raised.analyst else ""
    return f"raised {raised.at:%Y-%m-%d}{who}: from {raised.old} to {raised.new}"


def forecast_words(rest: Rehearsal) -> str:
    """The forecast in one or two lines."""
    if not rest.queries:
        return "no typical query that has to be measured fits any more; what was released stays free."
    many = f"{rest.queries} or more" if rest.more else f"about {rest.queries}"
    known = f", {rest.free} of them from what is known by then" if rest.free else ""
    first, last = records(rest.first), records(rest.last)
    course = "" if first == last else f", {first} at first and {last} in the end"
    std = f"a standard deviation of about {records(rest.mean)}{course}"
    kinds = sorted(rest.kinds.items(), key=lambda kind: kind[1])
    span = ""
    if len(kinds) > 1:
        (best, least), (worst, most) = kinds[0], kinds[-1]
        span = f"\nBy kind: {records(least)} for {best}, to {records(most)} for {worst}."
    return f"{many} further typical queries fit{known}.\nThey have {std}.{span}"
