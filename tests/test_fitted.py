"""Fitted values through a session: bounded, free, the same again, kept, and shown wherever answers are."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import invoke, write_small
from draw import MemoryTable
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy.catalog import POLICIES
from laprasdp.queries.query import Query
from laprasdp.record.entries import Reply, Stamp
from laprasdp.record.estimate import Estimate
from laprasdp.record.format import read_entry, write_entry
from laprasdp.stream.fitted import within
from laprasdp.wire import read_told, write_told

SMALL = lp.Domain(age=lp.Integers(0, 9), sex=lp.Categories(["f", "m"], nullable=True))
WIDE = lp.Domain(
    day=lp.Integers(0, 11), place=lp.Categories(list("abcdefgh")), hour=lp.Integers(0, 7), sex=lp.Booleans()
)
TEN = lp.Domain((f"a{i}", lp.Integers(0, 9)) for i in range(10))
LONG = lp.Domain(z=lp.Integers(0, 9_999), age=lp.Integers(0, 7))
BUDGET = lp.Budget(1, 1e-6)
NARROW = [
    "SELECT COUNT(*) FROM t WHERE day < 3 AND place IN ('a', 'b')",
    "SELECT COUNT(*) FROM t WHERE hour = 2 AND sex",
    "SELECT COUNT(*) FROM t WHERE day = 1 AND place = 'c' AND hour < 4",
    "SELECT COUNT(*) FROM t WHERE day = 1 AND place = 'c' AND hour < 4 AND sex",
    "SELECT COUNT(*) FROM t GROUP BY place",
    "SELECT COUNT(*) FROM t GROUP BY day, place, sex",
    "SELECT SUM(day) FROM t WHERE sex",
]


class Sparse(MemoryTable):
    """Rows of a table of very many cells."""

    def __init__(self, domain: lp.Domain, rows: int) -> None:
        self.domain, self.unit = domain, lp.PrivacyUnit()
        rng = np.random.default_rng(3)
        self._columns = [np.sort(rng.integers(0, size, rows)) for size in domain.shape]

    def marginal(self, axes: tuple[int, ...]) -> Any:
        from laprasdp.queries.marginal import Marginal

        count = len(self._columns[0])
        return Marginal({axis: self._columns[axis] for axis in axes}, np.ones(count, dtype=np.int64))


def table(domain: lp.Domain) -> MemoryTable:
    if domain.size > 10_000:
        return Sparse(domain, 3_000)
    return MemoryTable(domain, np.random.default_rng(1).poisson(2.0, domain.size) ** 2)


def opened(domain: lp.Domain = WIDE, **more: Any) -> lp.Session:
    given: dict[str, Any] = {"budget": BUDGET, "horizon": 20, "public": True, "noise": lp.SeededNoise(7)}
    return lp.open_session(table(domain), domain, **given | {"post": "fitted"} | more)


def flat(told: Any) -> list[lp.Answer]:
    return list(told) if isinstance(told, lp.GroupedAnswer) else [told]


def bounded(answer: lp.Answer) -> bool:
    """Never negative, and within one standard deviation where that is not negative."""
    assert answer.fitted is not None
    near = abs(answer.fitted - answer.value) <= answer.std * (1 + 1e-9)
    return answer.fitted == 0 if answer.value < -answer.std else near and answer.fitted >= 0


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e9), st.none() | st.floats(allow_nan=True, allow_infinity=True))
def test_it_is_never_off_by_more_than_one_std(value: float, variance: float, found: float | None) -> None:
    one = Estimate(value, variance, "measured")
    shown, std = within(one, found), math.sqrt(variance)
    near = std * (1 + 1e-9) + 1e-15 * abs(value)
    assert shown >= 0
    assert abs(shown - value) <= near or shown == 0 > value + std
    for truth in (0, 3, max(value, 0), 2e6):
        assert abs(shown - truth) <= abs(value - truth) + near
    assert abs(within(one, found, signed=True) - value) <= near
    if found is not None and max(value - std, 0) <= found <= value + std:
        assert shown == found  # it is moved no farther than it must be


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("accounting", ["basic", "gaussian"])
def test_every_policy_has_them(policy: str, accounting: str) -> None:
    try:
        session = opened(
            SMALL, policy=policy, accounting=accounting, predictions=["SELECT COUNT(*) FROM t WHERE age < 4"]
        )
    except lp.BudgetError:
        pytest.skip("it is accounted for otherwise")
    shown = 0
    for text in (
        "SELECT COUNT(*) FROM t WHERE age < 4",
        "SELECT COUNT(*) FROM t WHERE age = 9 AND sex = 'f'",
        "SELECT COUNT(*) FROM t GROUP BY sex",
    ):
        try:
            answers = flat(session.ask(text))
        except lp.BudgetExhausted:
            continue
        shown += 1
        assert all(bounded(one) for one in answers)
    assert shown


@pytest.mark.parametrize(
    ("domain", "asked"),
    [
        (WIDE, NARROW),
        (TEN, ["SELECT COUNT(*) FROM t WHERE a1 < 3 AND a4 > 5", "SELECT COUNT(*) FROM t WHERE a0 = 3"]),
        (LONG, ["SELECT COUNT(*) FROM t WHERE z < 400 AND age = 3", "SELECT COUNT(*) FROM t GROUP BY age"]),
        (lp.Domain(z=lp.Integers(0, 49)), ["SELECT COUNT(*) FROM t WHERE z < 4"]),
    ],
)
@pytest.mark.parametrize("predicted", [False, True])
def test_every_kind_of_table_has_them(domain: lp.Domain, asked: list[str], predicted: bool) -> None:
    session = opened(domain, predictions=asked[:2] if predicted else ())
    for text in asked:
        assert all(bounded(one) for one in flat(session.ask(text)))


def test_an_answer_that_may_be_negative_is_not_lifted() -> None:
    query = Query(WIDE, {"day": np.arange(12)}, np.arange(12) - 11)
    answer = opened().ask(query)
    assert answer.fitted < 0
    assert abs(answer.fitted - answer.value) <= answer.std * (1 + 1e-9)


def test_they_change_nothing_that_is_released_charged_or_shown() -> None:
    def told(**more: Any) -> list[Any]:
        session = opened(**more)
        answers = [one for text in NARROW for one in flat(session.ask(text))]
        return [session.spent, *((one.value, one.std, one.charge, one.source) for one in answers)]

    assert told() == told(post=None)
    assert all(one.fitted is None for one in flat(opened(post=None).ask(NARROW[0])))


def test_they_are_a_function_of_what_was_released(tmp_path: Path) -> None:
    """A session that is opened again, and one that replays from the start, fit what the first one would."""
    ledger = MemoryLedger()
    first = opened(ledger=ledger)
    before = [one.fitted for text in NARROW[:5] for one in flat(first.ask(text))]
    again = opened(ledger=ledger)
    repeated = [flat(again.ask(text)) for text in NARROW[:5]]
    assert [one.fitted for each in repeated for one in each] == before
    assert {one.charge for each in repeated for one in each} == {0}
    one = again.ask("SELECT COUNT(*) FROM t WHERE day < 3 AND place = 'a'")
    state = opened(ledger=ledger).state
    (query,) = first.parse("SELECT COUNT(*) FROM t WHERE day < 3 AND place = 'a'").queries
    shown = Estimate(one.value, one.std**2, "measured")
    (afresh,) = state.fits.fitted(state.policy, [query], (shown,))
    assert afresh is not None
    assert afresh.fitted == pytest.approx(one.fitted, rel=1e-9)


def test_what_was_shown_is_kept_and_shown_again(tmp_path: Path) -> None:
    """Across reopening and snapshots; it stands in the entry, and an old question may get one later."""
    path = tmp_path / "l"
    with opened(ledger=SQLLedger(path), post=None) as session:
        plain = session.ask(NARROW[0])
        assert plain.fitted is None
    with opened(ledger=SQLLedger(path)) as session:
        late, other = session.ask(NARROW[0]), session.ask(NARROW[1])
        assert (late.value, late.charge) == (plain.value, 0)
        assert bounded(late)
    with opened(ledger=SQLLedger(path)) as session:
        for text in NARROW[2:4]:
            session.ask(text)
        assert [session.ask(text).fitted for text in NARROW[:2]] == [late.fitted, other.fitted]
        renewed = session.ask(NARROW[1], remeasure=True)
        assert bounded(renewed)
        assert session.ask(NARROW[1]).fitted == renewed.fitted != other.fitted
    kept = SQLLedger(path)
    replies = [one.entry for one in kept.since(0) if isinstance(one.entry, Reply)]
    assert [one.answers[0].fitted for one in replies[:2]] == [None, late.fitted]
    assert verify(kept) == []


def test_a_statement_that_fails_leaves_no_trace_in_the_fit() -> None:
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    session.ask(NARROW[0])
    append, kept = ledger.transaction, len(ledger.since(0))

    class Torn(Exception):
        pass

    from contextlib import contextmanager

    @contextmanager
    def torn(stamp: Stamp) -> Any:
        with append(stamp) as transaction:
            yield transaction
            raise Torn

    ledger.transaction = torn  # type: ignore[method-assign]
    with pytest.raises((Torn, lp.LedgerError)):
        session.ask(NARROW[2])
    ledger.transaction = append  # type: ignore[method-assign]
    assert len(ledger.since(0)) == kept
    after = session.ask(NARROW[2])
    state = opened(ledger=ledger).state
    (query,) = session.parse(NARROW[2]).queries
    (afresh,) = state.fits.fitted(state.policy, [query], (Estimate(after.value, after.std**2, "measured"),))
    assert afresh is not None
    assert afresh.fitted == pytest.approx(after.fitted, rel=1e-9)


def test_the_form_of_an_entry_with_fitted_values() -> None:
    session = opened()
    session.ask(NARROW[0])
    (kept,) = (one for one in session.ledger.since(0) if isinstance(one.entry, Reply))
    text = write_entry(kept)
    form = json.loads(text)
    assert form["format"] == 5
    assert write_entry(read_entry(text, WIDE)) == text
    for wrong in ({"format": 1}, {"answers": [form["answers"][0] | {"fitted": "3"}]}):
        with pytest.raises(lp.LedgerError):
            read_entry(json.dumps(form | wrong), WIDE)


def test_a_forged_one_is_found(tmp_path: Path) -> None:
    def wrong(ledger: SQLLedger, shown: Estimate, fitted: float) -> list[str]:
        from dataclasses import replace

        with ledger.transaction(Stamp(one.stamp.at)) as transaction:
            transaction.append(Reply(reply.queries, (replace(shown, source="replay", fitted=fitted),)))
        return [str(found) for found in verify(ledger)]

    for far, words in ((2.0, "no value fitted"), (0.5, "another answer")):
        ledger = SQLLedger(tmp_path / f"{far}")
        with opened(ledger=ledger) as session:
            session.ask(NARROW[0])
        (one,) = (kept for kept in ledger.since(0) if isinstance(kept.entry, Reply))
        reply: Any = one.entry
        (shown,) = reply.answers
        moved = shown.value + far * math.sqrt(shown.variance) * (-1 if shown.fitted > shown.value else 1)
        assert any(words in line for line in wrong(ledger, shown, moved))


def test_they_are_in_rows_frames_and_on_the_wire() -> None:
    session = opened()
    one, groups = session.ask(NARROW[0]), session.ask(NARROW[4])
    assert one.row()["fitted"] == one.fitted
    for told in (one, groups):
        again = read_told(json.loads(json.dumps(write_told(told))))
        assert [each.fitted for each in flat(again)] == [each.fitted for each in flat(told)]
        assert "count_star() fitted" in told.to_arrow().column_names
        assert "fitted" in told._repr_html_()
    assert f"fitted {one.fitted:,.6g}" in repr(one)
    plain = opened(post=None).ask(NARROW[0])
    assert "fitted" not in plain.row()
    assert read_told(write_told(plain)) == plain


def test_sums_over_periods_have_them() -> None:
    domain = lp.Domain(day=lp.Dates(date(2024, 1, 1), date(2024, 1, 20)), age=lp.Integers(0, 39))
    rng = np.random.default_rng(1)
    days = [date(2024, 1, int(day)) for day in rng.integers(1, 21, 5_000)]
    rows = pa.table({"day": days, "age": rng.integers(0, 40, 5_000)})
    with lp.open_windows(
        rows, domain, attribute="day", periods=10, budget=BUDGET, horizon=10, name="t", post="fitted",
        public=True, noise=lp.SeededNoise(1),
    ) as session:  # fmt: skip
        for text in ("SELECT COUNT(*) FROM t WHERE age < 4", "SELECT COUNT(*) FROM t GROUP BY age"):
            answers = flat(session.ask(text))
            assert all(bounded(one) for one in answers)
        parts = answers[0].periods.values()
        assert len(parts) == 2
        assert answers[0].fitted == pytest.approx(sum(part.fitted for part in parts), abs=answers[0].std)


def test_what_post_may_be() -> None:
    with pytest.raises(lp.ConfigError, match='post must be "fitted" or None'):
        opened(post="smooth")


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    plain = (tmp_path / "lapras.toml").read_text() + '[ledger]\nfile = "l.ledger"\n'
    (tmp_path / "lapras.toml").write_text(plain)
    statement = "SELECT COUNT(*) FROM t WHERE n < 3"
    first = json.loads(invoke("ask", statement, "--json", "--post", "fitted").stdout)
    assert first["post"] == first["fitted"]
    assert abs(first["fitted"] - first["value"]) <= first["std"] * (1 + 1e-9)
    (tmp_path / "lapras.toml").write_text(plain.replace("horizon = 10", 'horizon = 10\npost = "fitted"'))
    again = json.loads(invoke("ask", statement, "--json").stdout)
    assert (again["post"], again["charge"]) == (first["post"], 0)
    assert "fitted" in invoke("ask", statement).stdout.splitlines()[0]
    assert json.loads(invoke("ask", statement, "--json", "--post", "rounded").stdout)["post"] >= 0
    (tmp_path / "q.sql").write_text(f"{statement};\nSELECT COUNT(*) FROM t GROUP BY n")
    rows = [json.loads(line) for line in invoke("run", "q.sql", "--json").stdout.splitlines()]
    assert all(row["post"] == row["fitted"] for row in rows)
    assert invoke("ledger", "verify").exit_code == 0
