"""Groups in a session: what was measured is free later, what is charged is what was not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draw import MemoryTable
from test_groups import WIDE

import laprasdp as lp

COUNT = "SELECT COUNT(*) FROM t"


def opened(policy: str, domain: lp.Domain = WIDE, **more: Any) -> lp.Session:
    table = MemoryTable(domain, np.arange(domain.size) % 40)
    return lp.open_session(
        table, domain, budget=lp.Budget(1.0, 1e-6), horizon=20, policy=policy, public=True, **more
    )


@pytest.mark.parametrize("policy", ["primm", "smooth", "smooth-cache", "static", "independent"])
def test_groups_that_were_measured_are_free_in_any_statement(policy: str) -> None:
    session = opened(policy)
    answer = session.ask(f"{COUNT} WHERE c > 3 GROUP BY a, b")
    assert isinstance(answer, lp.GroupedAnswer)
    assert len(answer) == 132
    assert {one.source for one in answer} == {"measured"}
    assert session.spent >= answer.charge * (1 - 1e-9) > 0
    spent = session.spent
    again = session.ask("SELECT b, COUNT(*) FROM t WHERE c >= 4 GROUP BY a, b ORDER BY a DESC, b")
    by_group = {(one.group["a"], one.group["b"]): one.value for one in answer}
    assert all(by_group[one.group["a"], one.group["b"]] == one.value for one in again)
    single = session.ask(f"{COUNT} WHERE b = 4 AND a = 7 AND c BETWEEN 4 AND 9")
    assert (single.value, single.charge) == (by_group[7, 4], 0.0)
    assert session.spent == spent


def test_only_groups_that_are_not_known_are_measured_and_charged() -> None:
    session = opened("smooth")
    before = session.ask(f"{COUNT} WHERE a = 2 AND b = 3")
    answer = session.ask(f"{COUNT} WHERE a < 6 GROUP BY a, b")
    sources = {(one.group["a"], one.group["b"]): one.source for one in answer}
    assert sources[2, 3] == "replay"
    assert {sources[a, b] for a in range(6, 12) for b in range(11)} == {"constant"}
    assert list(sources.values()).count("measured") == 65
    assert {one.value for one in answer if one.source == "replay"} == {before.value}


def test_a_roll_up_is_a_sum_in_the_cache() -> None:
    session = opened("smooth-cache")
    answer = session.ask(f"{COUNT} WHERE c = 1 GROUP BY a, b")
    for k in range(40):  # until a fresh answer would be no better
        session.ask(f"{COUNT} WHERE c = 1 AND a = {k % 12} AND b > {k % 7 + 1}")
    spent = session.spent
    rolled = session.ask(f"{COUNT} WHERE c = 1 AND a = 3 AND b IN (0, 10)")
    assert rolled.source == "cache"
    wanted = [one for one in answer if one.group in ({"a": 3, "b": 0}, {"a": 3, "b": 10})]
    assert rolled.value == pytest.approx(sum(one.value for one in wanted))
    assert rolled.std == pytest.approx(sum(one.std**2 for one in wanted) ** 0.5)
    assert session.spent == spent


@pytest.mark.parametrize("policy", ["primm", "smooth-cache"])
def test_many_groups_are_told_from_the_state_that_answered_them(policy: str) -> None:
    session = opened(policy)
    first = session.ask(f"{COUNT} WHERE c > 3 GROUP BY a, b")
    session.ask(f"{COUNT} WHERE c > 5 GROUP BY a, b")
    session.ask(f"{COUNT} WHERE a = 1 AND c > 3")
    joint = first.covariance
    assert joint is not None
    assert joint.diagonal() == pytest.approx([one.std**2 for one in first], rel=1e-9)
    if policy == "smooth-cache":  # each was measured by itself
        assert not (joint - np.diag(joint.diagonal())).any()
    assert np.linalg.eigvalsh(joint).min() > 0


def test_a_statement_of_groups_costs_what_its_dearest_group_does() -> None:
    alone, together = opened("independent"), opened("independent")
    one = alone.ask(f"{COUNT} WHERE a = 1 AND b = 1")
    every = together.ask(f"{COUNT} GROUP BY a, b")
    assert together.spent == alone.spent
    assert {each.std for each in every} == {one.std}
