"""What every session offers: of one table and of periods alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from growing import COUNT, FEB, JAN, SPAN
from growing import opened as windows
from test_session_life import opened as session

import laprasdp as lp
from laprasdp.cli.show import budget_line, what_is_left
from laprasdp.stream.asking import Account, Asking

KINDS: dict[str, Callable[..., Any]] = {"session": session, "windows": windows}
OFFERED = [name for name in vars(Asking) if not name.startswith("_")]


@pytest.fixture(params=KINDS)
def asking(request: pytest.FixtureRequest) -> Any:
    with KINDS[request.param]() as found:
        yield found


@pytest.mark.parametrize("kind", [lp.Session, lp.WindowedSession])
def test_every_session_keeps_the_protocol(kind: type) -> None:
    assert {"unit", "accounts", "account", "parse", "admit", "ask", "ask_many", "plan", "close"} <= {*OFFERED}
    for name in OFFERED:
        wanted, found = vars(Asking)[name], inspect.getattr_static(kind, name)
        assert isinstance(found, property) == isinstance(wanted, property), name
        if not isinstance(wanted, property):
            parameters = inspect.signature(found).parameters
            for parameter, one in inspect.signature(wanted).parameters.items():
                assert parameters[parameter] == one, (name, parameter)
            more = set(parameters) - set(inspect.signature(wanted).parameters)
            assert all(parameters[one].default is None for one in more), name
        elif name not in ("accounts", "account", "unit"):
            raise AssertionError(name)


def test_accounts_say_what_the_properties_say(asking: Any) -> None:
    asking.ask(COUNT)
    found = asking.accounts
    if isinstance(asking, lp.Session):
        assert found == (
            Account(asking.budget, asking.spent, asking.remaining, asking.unit, asking.epsilon_spent),
        )
    else:
        assert [one.period for one in found] == [period.name for period in asking.periods]
        for key in ("spent", "remaining", "epsilon_spent"):
            assert {one.period: getattr(one, key) for one in found} == getattr(asking, key)
        assert {one.period: one.budget for one in found} == asking.budgets
    assert {one.unit for one in found} == {asking.unit}
    assert asking.account in found
    assert 0 < asking.account.share_left < 1


def test_the_account_is_the_one_with_the_smallest_share_left() -> None:
    with windows() as asking:
        assert asking.account.period == JAN  # the first of several
        asking.ask(f"{COUNT} WHERE day BETWEEN '2024-02-01' AND '2024-02-29'")
        assert asking.account.period == FEB
        assert what_is_left(asking).endswith(f" in the period from {FEB}, the least of 3")
        asking.raise_budget(FEB, lp.Budget(20, 1e-6))
        asking.ask(f"{COUNT} WHERE day <= '2024-01-31'")
        spent = asking.remaining
        assert asking.account.period == JAN
        assert spent[FEB] > spent[JAN]
        # much is left of the large budget, but the smaller part of it
        for place in range(3):
            asking.ask(f"{COUNT} WHERE n = {place} AND day BETWEEN '2024-02-01' AND '2024-02-29'")
        assert asking.remaining[FEB] > asking.remaining[JAN]
        assert asking.account.period == FEB
        assert asking.account.share_left == min(one.share_left for one in asking.accounts)


def test_one_budget_is_told_as_it_was(asking: Any) -> None:
    line = what_is_left(asking)
    assert line.startswith(budget_line(asking.account))
    assert ("in the period" in line) == isinstance(asking, lp.WindowedSession)


def test_asking_many_is_lazy_and_stops_at_a_refusal(asking: Any) -> None:
    taken = []

    def statements() -> Any:
        for text in [COUNT, "SELECT 1", COUNT]:
            taken.append(text)
            yield text

    answers = asking.ask_many(statements())
    assert next(answers).value == asking.ask(COUNT).value
    assert taken == [COUNT]
    with pytest.raises(lp.UnsupportedQuery):
        next(answers)
    assert SPAN not in taken


def test_a_session_shows_its_table_and_what_is_left(asking: Any) -> None:
    asking.ask(COUNT)
    assert f"<{type(asking).__name__} over t: ε = " in repr(asking)
    assert "% left>" in repr(asking)
    asking.close()
    assert "closed" in repr(asking)
