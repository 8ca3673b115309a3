"""Whatever is given for an argument: it serves, or one line of an error of ours says which argument it is."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.queries.query import Query

DAYS = lp.Domain(day=lp.Dates("2024-01-01", "2024-01-20"))
TABLE = MemoryTable(DAYS, range(20))
BUDGET = lp.Budget(1, 1e-6)
COUNT = "SELECT COUNT(*) FROM t"
NUMBERS: list[Any] = [True, False, 0, -1, 3, 10**9, 10**400, -(10**400), 0.5, -0.5, 1e308, 5e-324, 1j]
ODD: list[Any] = [
    *NUMBERS,
    *(None, math.nan, math.inf, -math.inf, "", "x", "\ud800", "a\nb", b"x", (), [], [None], ["x"], {}),
    *({"x": math.nan}, {"ada": 1e308}, {"ada": "x"}, {1: 1}, {1}, object(), lambda: 1, BUDGET),
    *(
        dt.date.max,
        dt.datetime(2024, 1, 1),
        [0, math.nan],
        [math.inf],
        [10**400],
        [True],
        range(3),
    ),
]
SESSION = (
    *("source", "domain", "budget", "horizon", "predictions", "policy", "accounting", "split", "overlap"),
    *("expected", "reading", "unit", "table", "name", "public", "noise", "ledger", "caps", "clock"),
)


def opened(**given: Any) -> Any:
    given = {"source": TABLE, "domain": DAYS, "budget": BUDGET, "horizon": 4} | given
    session = lp.open_session(given.pop("source"), given.pop("domain"), **given)
    return session.ask(COUNT, analyst="ada" if given.get("caps") else None)


def windowed(**given: Any) -> Any:
    given = {"source": TABLE, "domain": DAYS, "budget": BUDGET, "attribute": "day", "periods": 10} | given
    session = lp.open_windows(given.pop("source"), given.pop("domain"), **given)
    return session.ask(COUNT, analyst="ada" if given.get("caps") else None)


def session() -> lp.Session:
    return lp.open_session(TABLE, DAYS, budget=BUDGET, policy="independent")


def made(kind: Callable[..., Any], **sound: Any) -> Callable[..., Any]:
    return lambda **given: kind(**sound | given)


DOORS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "open_session": (opened, SESSION),
    "open_windows": (windowed, (*SESSION, "attribute", "periods")),
    "Budget": (made(lp.Budget, epsilon=1, delta=1e-6), ("epsilon", "delta")),
    "Integers": (made(lp.Integers, min=0, max=9), ("min", "max", "nullable")),
    "Bins": (made(lp.Bins, edges=[0, 1]), ("edges", "whole", "nullable")),
    "Categories": (made(lp.Categories, names=["a"]), ("names", "other", "nullable")),
    "Dates": (made(lp.Dates, first="2024-01-01", last="2024-01-20"), ("first", "last", "step", "nullable")),
    "Booleans": (lp.Booleans, ("nullable",)),
    "PrivacyUnit": (made(lp.PrivacyUnit, column="who"), ("column", "max_rows")),
    "Reading": (lp.Reading, ("warm_up", "estimate", "overflow", "repeats")),
    "Domain": (lambda attributes: lp.Domain(attributes), ("attributes",)),
    "Period": (made(lp.Period, first="2024-01-01", last="2024-01-20"), ("first", "last")),
    "ask": (lambda **given: session().ask(**{"statement": COUNT} | given), ("statement", "analyst")),
    "price": (lambda **given: session().price(**{"statement": COUNT} | given), ("statement", "analyst")),
    "ask_many": (lambda **given: list(session().ask_many(**given)), ("statements",)),
    "raise_budget": (lambda **given: session().raise_budget(**given), ("budget",)),
    "interval": (lambda **given: session().ask(COUNT).interval(**given), ("level",)),
    "count": (lambda **given: Query.count(DAYS, **given), ("day",)),
}


@pytest.fixture(autouse=True, scope="module")
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A text may be the path of a ledger, which is then begun."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("odd"))
    yield
    os.chdir(before)


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_an_odd_value_serves_or_is_refused_in_one_line(data: st.DataObject) -> None:
    call, arguments = DOORS[data.draw(st.sampled_from(sorted(DOORS)))]
    given = {data.draw(st.sampled_from(arguments)): data.draw(st.sampled_from(ODD))}
    says = "served"
    try:
        call(**given)
    except lp.LaprasError as refused:
        says = str(refused)
    assert says
    assert says.count("\n") == 0


@pytest.mark.parametrize("argument", sorted({*SESSION} - {"source"}))
def test_the_line_names_the_argument(argument: str) -> None:
    for call in (opened, windowed):
        name = "shelf" if argument == "ledger" and call is windowed else argument
        with pytest.raises(lp.ConfigError, match=f"^{name} must be .*, not <object object"):
            call(**{argument: object()})


@pytest.mark.parametrize("overlap", ["x", math.nan, math.inf, -0.1, True])
def test_an_overlap_is_a_number(overlap: Any) -> None:
    with pytest.raises(lp.ConfigError, match=f"^overlap must be a number from 0 to 1, not {overlap!r}$"):
        opened(overlap=overlap)
