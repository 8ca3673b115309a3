"""Wire: answers, prices, plans and accounts as plain data, both ways: a service says it, a client reads."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from laprasdp.derive.laws import LinearLaw, NoLaw, RatioLaw, RoundedLaw, Tail, ValueKind, ValueLaw
from laprasdp.privacy.budget import Budget
from laprasdp.stream.answer import Answer, GroupedAnswer, Released
from laprasdp.stream.asking import Account, Told
from laprasdp.stream.plan import Plan, PlannedKind, PlannedQuery, PlannedStream
from laprasdp.stream.price import Price
from laprasdp.stream.resultset import Figure, LeftOut, ResultRow, ResultSet

Plain = dict[str, Any]
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Of the intervals that are told where a law is too long to send."""
_LAWS: Mapping[str, type] = {"linear": LinearLaw, "none": NoLaw, "ratio": RatioLaw, "rounded": RoundedLaw}


@dataclass(frozen=True)
class ToldLaw:
    """
    What is known of an error by its intervals at `LEVELS`.

    Attributes
    ----------
    std : float or None
    kind : ValueKind
    ends : tuple of (low, high)
    """

    std: float | None
    kind: ValueKind
    ends: tuple[tuple[float, float], ...]

    def interval(self, level: float) -> tuple[float, float]:
        """The interval of the next level that was told: it holds the truth at least as often."""
        place = bisect_left(LEVELS, level)
        return self.ends[place] if place < len(LEVELS) else (-math.inf, math.inf)


def write_told(answer: Told) -> Plain:
    """An answer as plain data."""
    if isinstance(answer, Answer):
        return {"form": "answer", **_head(answer), "rows": [_write_answer(answer)]}
    if isinstance(answer, GroupedAnswer):
        total = None if answer.total is None else _write_answer(answer.total)
        rows = [_write_answer(one) for one in answer]
        return {"form": "groups", **_head(answer), "rows": rows, "total": total}
    rows = [
        {
            "group": row.group,
            "columns": {name: _write_figure(one) for name, one in row.columns.items()},
            "belongs": row.belongs,
        }
        for row in answer
    ]
    told = {"form": "result", **_head(answer), "rows": rows, "names": list(answer.names)}
    left_out = [{"group": one.group, "belongs": one.belongs} for one in answer.left_out]
    return told | {"source": answer.source, "simulated": answer.simulated, "left_out": left_out}


def read_told(form: Mapping[str, Any]) -> Told:
    """The answer that `write_told` wrote."""
    if form["form"] == "answer":
        return _read_answer(form["rows"][0])
    if form["form"] == "groups":
        total = None if form["total"] is None else _read_answer(form["total"])
        return GroupedAnswer(form["query"], tuple(map(_read_answer, form["rows"])), total)
    rows = tuple(
        ResultRow(
            row["group"], {name: _read_figure(one) for name, one in row["columns"].items()}, row["belongs"]
        )
        for row in form["rows"]
    )
    return ResultSet(
        form["query"], tuple(form["names"]), rows, form["source"], form["charge"], form["remaining"],
        _read_released(form), form["simulated"], tuple(LeftOut(**one) for one in form["left_out"]),
    )  # fmt: skip


def write_price(price: Price) -> Plain:
    """A price as plain data; None stands where a standard deviation is known once it is answered."""
    return {**price.row(), "columns": {name: list(stds) for name, stds in price.columns.items()}}


def read_price(form: Mapping[str, Any]) -> Price:
    """The price that `write_price` wrote."""
    columns = {name: tuple(stds) for name, stds in form["columns"].items()}
    return Price(form["charge"], tuple(form["std"]), _read_released(form), form["refusal"], columns)


def write_plan(plan: Plan) -> Plain:
    """A plan as plain data."""
    return plan.row()


def read_plan(form: Mapping[str, Any]) -> Plan:
    """The plan that `write_plan` wrote, without the queries that it was played by."""
    parts: dict[str, Callable[..., Any]] = {
        "predicted": PlannedQuery, "streams": PlannedStream, "kinds": PlannedKind
    }  # fmt: skip
    known = {one.name for one in fields(Plan)} - {"played"}
    values: Plain = {
        key: tuple(parts[key](**one) for one in value) if key in parts else value
        for key, value in form.items()
        if key in known
    }
    return Plan(**values)


def write_account(account: Account) -> Plain:
    """An account as plain data."""
    budget = {"epsilon": account.budget.epsilon, "delta": account.budget.delta}
    own = {one.name: getattr(account, one.name) for one in fields(Account) if one.name != "budget"}
    return {"budget": budget, **own, "share_left": account.share_left}


def read_account(form: Mapping[str, Any]) -> Account:
    """The account that `write_account` wrote."""
    own = {one.name: form[one.name] for one in fields(Account) if one.name != "budget"}
    return Account(Budget(**form["budget"]), **own)


def _head(answer: Told) -> Plain:
    released = [one.row() for one in answer.released]
    return {
        "query": answer.query, "charge": answer.charge, "remaining": answer.remaining, "released": released
    }  # fmt: skip


def _write_answer(answer: Answer) -> Plain:
    more = {"law": answer.law, "parts": answer.parts, "column": answer.column, "group": answer.group}
    return answer.row() | more | {"simulated": answer.simulated}


def _read_answer(row: Mapping[str, Any]) -> Answer:
    own = {one.name: row[one.name] for one in fields(Answer) if one.name not in ("released", "fitted")}
    return Answer(**own, released=_read_released(row), fitted=row.get("fitted"))


def _read_released(form: Mapping[str, Any]) -> tuple[Released, ...]:
    return tuple(Released(**one) for one in form["released"])


def _write_figure(figure: Figure) -> Plain:
    parts = [_write_figure(one) for one in figure.parts]
    return figure.row() | {"law": _write_law(figure.law), "parts": parts}


def _write_law(law: ValueLaw) -> Plain:
    for name, kind in _LAWS.items():
        if isinstance(law, kind):
            if isinstance(law, RoundedLaw):
                return {"name": name, "inner": _write_law(law.inner), "digits": law.digits}
            return {"name": name, **asdict(law)}  # type: ignore[call-overload]
    ends = [[None if math.isinf(end) else end for end in law.interval(level)] for level in LEVELS]
    return {"name": "told", "std": law.std, "kind": law.kind, "ends": ends}


def _read_figure(form: Mapping[str, Any]) -> Figure:
    parts = tuple(_read_figure(one) for one in form["parts"])
    return Figure(form["value"], _read_law(form["law"]), parts)


def _read_law(form: Mapping[str, Any]) -> ValueLaw:
    rest = {key: value for key, value in form.items() if key != "name"}
    if form["name"] == "told":
        ends = tuple((_end(low, -math.inf), _end(high, math.inf)) for low, high in form["ends"])
        return ToldLaw(form["std"], form["kind"], ends)
    if "law" in rest:
        rest["law"] = Tail(**rest["law"])
    if form["name"] == "rounded":
        rest["inner"] = _read_law(form["inner"])
    law: ValueLaw = _LAWS[form["name"]](**rest)
    return law


def _end(value: float | None, infinite: float) -> float:
    return infinite if value is None else value
