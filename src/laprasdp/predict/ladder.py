"""Which values a literal of a template may have: the edges of the attribute that it is compared with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from sqlglot import exp

from laprasdp.errors import UnsupportedQuery
from laprasdp.predict.template import Key
from laprasdp.queries.attribute import Attribute, Bins, Dates, Integers, Reals
from laprasdp.queries.domain import Domain
from laprasdp.sql.syntax import read

Role = Literal["from", "last", "value"]
_ROLES: dict[type, tuple[Role, Role]] = {  # with the column on the left, and on the right
    exp.EQ: ("value", "value"),
    exp.GTE: ("from", "last"),
    exp.LT: ("from", "last"),
    exp.GT: ("last", "from"),
    exp.LTE: ("last", "from"),
}
_NUMBER, _TEXT = 910_000_000, "\u2402"


@dataclass(frozen=True)
class Ladder:
    """
    The values that one literal of a template may have, in order.

    Attributes
    ----------
    axis : int
        Of the attribute.
    upper : bool
        It is the end of a range, or its start.
    days : bool
        The values are dates.
    rungs : sequence of str
        As SQL spells them.
    """

    axis: int
    upper: bool
    days: bool
    rungs: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {rung: place for place, rung in enumerate(self.rungs)})

    def place(self, literal: str) -> int | None:
        """Where a literal stands, also one like 5.0; None if it is not on the ladder."""
        places: dict[str, int] = self._places  # type: ignore[attr-defined]
        found = places.get(literal)
        if found is None and "." in literal:
            found = places.get(literal.rstrip("0").rstrip("."))
        return found

    def rung(self, place: int) -> str | None:
        """The literal at a place; None beyond the ends."""
        return self.rungs[place] if 0 <= place < len(self.rungs) else None


Rungs = tuple[Ladder | None, ...]


def ladders(key: Key, domain: Domain) -> Rungs:
    """
    The ladder of each literal of a statement's template; None where its attribute has no order.

    The statement is read once with marks in place of its literals, so that they can be found again.
    """
    marks = [
        f"'{_TEXT}{i}{_TEXT}'" if literal.startswith("'") else str(_NUMBER + i)
        for i, literal in enumerate(key.literals)
    ]
    found: list[Ladder | None] = [None] * len(marks)
    try:
        tree = read(Key(key.shape, tuple(marks)).text)
    except UnsupportedQuery:
        return tuple(found)
    for node in tree.find_all(exp.Literal):
        text = str(node.this)
        number = text.strip(_TEXT) if node.is_string else str(int(text) - _NUMBER) if text.isdigit() else ""
        if number.isdigit() and int(number) < len(marks) and text in marks[int(number)]:
            found[int(number)] = _ladder(node, domain)
    return tuple(found)


def moved_by(key: Key, rungs: Rungs, steps: dict[int, int]) -> Key | None:
    """The statement with literals moved along their ladders; None beyond an end or for an empty range."""
    literals, ends = list(key.literals), dict[tuple[int, bool], int]()
    for slot, ladder in enumerate(rungs):
        place = None if ladder is None else ladder.place(key.literals[slot])
        if ladder is None or place is None:
            if slot in steps:
                return None
            continue
        place += steps.get(slot, 0)
        rung = ladder.rung(place)
        if rung is None:
            return None
        literals[slot] = rung
        ends[ladder.axis, ladder.upper] = place
    if any(not upper and ends.get((axis, True), place + 1) <= place for (axis, upper), place in ends.items()):
        return None
    return Key(key.shape, tuple(literals))


def _ladder(literal: exp.Literal, domain: Domain) -> Ladder | None:
    node: Any = literal
    while isinstance(node.parent, exp.Paren) or type(node.parent) is exp.Cast:
        node = node.parent
    compared: Any = node.parent
    role: Role
    if isinstance(compared, exp.Between):
        upper = compared.args["high"] is node
        role, column = ("last" if upper else "from"), compared.this
    elif type(compared) in _ROLES:
        left = compared.expression is node
        role, column = _ROLES[type(compared)][not left], compared.this if left else compared.expression
        upper = isinstance(compared, exp.LT | exp.LTE) == left and not isinstance(compared, exp.EQ)
    else:
        return None
    name = domain.find(column.name, exact=bool(column.this.quoted)) if type(column) is exp.Column else None
    if name is None:
        return None
    attribute = domain[name]
    rungs = _rungs(attribute, role)
    return Ladder(domain.axis(name), upper, isinstance(attribute, Dates), rungs) if rungs else None


def _rungs(attribute: Attribute, role: Role) -> Sequence[str]:
    match attribute:
        case Integers():
            more = role == "from"
            return [str(value) for value in range(attribute.min, attribute.max + 1 + more)]
        case Reals():
            return [f"{attribute.value(level):f}" for level in range(attribute.values)]
        case Bins() if role == "from":
            return [_spell(edge) for edge in attribute.edges]
        case Bins() if role == "last" and attribute.whole:
            return [str(int(edge) - 1) for edge in attribute.edges]
        case Dates() if role == "from":
            return [f"'{edge}'" for edge in attribute.edges]
        case Dates() if role == "last":
            return [f"'{edge - dt.timedelta(days=1)}'" for edge in attribute.edges]
        case Dates() if attribute.step == 1:
            return [f"'{edge}'" for edge in attribute.edges[:-1]]
    return []


def _spell(edge: float) -> str:
    exact = Fraction(edge)
    return str(exact.numerator) if exact.denominator == 1 else repr(float(edge))
