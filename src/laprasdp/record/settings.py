"""The public settings of a ledger's sessions, as plain data, and how they differ from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from laprasdp.errors import LedgerError
from laprasdp.privacy.unit import FIRST_ORDER, ORDERS, PrivacyUnit
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals
from laprasdp.queries.domain import Domain

Settings = Mapping[str, Any]
"""Plain data, as JSON spells it; of the data nothing, and `budget` as it was when the ledger was begun."""


def domain_of(settings: Settings) -> Domain:
    """The domain that the settings declare."""
    return Domain((name, _KINDS[declared["type"]](declared)) for name, declared in settings["domain"])


def unit_of(settings: Settings) -> Any:
    """The privacy unit that the settings declare; those of the first ledgers do not name an order of rows."""
    unit = settings.get("unit")
    if not isinstance(unit, Mapping) or unit.get("column") is None:
        return unit
    return {"order": FIRST_ORDER, **unit}


def as_begun(unit: PrivacyUnit, begun: Iterable[Settings]) -> PrivacyUnit:
    """The unit with the order of rows that ledgers of it were begun with, if it is one."""
    if unit.column is None:
        return unit
    kept = [unit_of(settings) for settings in begun]
    orders = {str(one.get("order")) for one in kept if isinstance(one, Mapping)}
    return replace(unit, order=orders.pop()) if len(orders) == 1 and orders <= {*ORDERS} else unit


def check_settings(kept: Settings, given: Settings) -> None:
    """
    Whether a session of these settings may go on with a ledger.

    Parameters
    ----------
    kept, given : mapping
        Of the ledger and of the session.  The budget is left out: it may have been raised since.

    Raises
    ------
    LedgerError
        Some setting differs; the message names each.
    """
    if "source" in kept and "source" not in given:  # a table that was opened elsewhere says nothing of itself
        given = {**given, "source": kept["source"]}
    if "unit" in kept:
        kept = {**kept, "unit": unit_of(kept)}
    differing = [
        found
        for name in sorted({*kept, *given} - {"budget"})
        if kept.get(name) != given.get(name)
        for found in _difference(name, kept.get(name), given.get(name))
    ]
    if differing:
        raise LedgerError(f"the ledger was begun with other settings: {'; '.join(differing)}")


def _difference(name: str, kept: Any, given: Any) -> list[str]:
    if name == "domain" and kept and given:
        old, new = dict(kept), dict(given)
        changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        return [f"attribute {key} is declared differently" for key in changed] or [
            "the attributes are in another order"
        ]
    if name == "predictions" and kept is not None and given is not None:
        if len(kept) != len(given):
            return [f"it has {len(kept)} predicted queries, not {len(given)}"]
        places = [place for place, (a, b) in enumerate(zip(kept, given, strict=True), start=1) if a != b]
        return [f"predicted query {places[0]} is another"]
    if isinstance(kept, Mapping) and isinstance(given, Mapping):
        return [
            f"{name}.{key} is {kept.get(key)!r}, not {given.get(key)!r}"
            for key in {**kept, **given}
            if kept.get(key) != given.get(key)
        ]
    return [f"{name} is {kept!r}, not {given!r}"]


_KINDS: dict[str, Callable[[Mapping[str, Any]], Attribute]] = {
    "integers": lambda d: Integers(d["min"], d["max"], nullable=d["nullable"]),
    "bins": lambda d: Bins(d["edges"], d["whole"], nullable=d["nullable"]),
    "categories": lambda d: Categories(d["values"], d["other"], nullable=d["nullable"]),
    "dates": lambda d: Dates(d["first"], d["last"], d["step"], nullable=d["nullable"]),
    "booleans": lambda d: Booleans(nullable=d["nullable"]),
    "reals": lambda d: Reals(d["lower"], d["upper"], d["step"], nullable=d["nullable"]),
}
