"""The pages of who asks: Ask, History and an answer."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from laprasdp.errors import LaprasError
from laprasdp.service.door import FIELD
from laprasdp.service.pages import Pages, number, partial, problem_of, text
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined
from laprasdp.service.served import ServedTable
from laprasdp.service.spelling import half, measured, of_past, of_told
from laprasdp.service.statements_api import one_of
from laprasdp.stream.asking import Told
from laprasdp.stream.price import Price
from laprasdp.wire import write_told

_LAST, _LISTED = 5, 200


def ask_pages(pages: Pages) -> APIRouter:
    """The routes."""
    router, desk = APIRouter(include_in_schema=False), pages.desk

    @router.get("/d/{dataset}/ask")
    def ask(request: Request, statement: str = "") -> Response:
        who = pages.entered(request, "ask")
        return _page(pages, request, who, statement, "", {})

    @router.post("/d/{dataset}/ask")
    async def asked(request: Request) -> Response:
        form = await request.form()

        def work() -> Response:
            who = pages.entered(request, "ask")
            desk.door.check_form(request, form.get(FIELD))
            return _asked(pages, request, who, dict(form))

        return await desk.later(work)

    @router.get("/d/{dataset}/history")
    def history(request: Request, q: str = "") -> Response:
        who, table = pages.entered(request, "history"), desk.table(request)
        found = table.history(who.name if who.asks else None, q)
        rows = [of_past(one) for one in found[:_LISTED]]
        return pages.show(
            request,
            "history.html",
            who,
            "history",
            q=q,
            rows=rows,
            more=len(found) > _LISTED,
            everybody=not who.asks,
        )

    @router.get("/d/{dataset}/answers/{position}")
    def answer(request: Request, position: int) -> Response:
        who, table = pages.entered(request, "history"), desk.table(request)
        one = one_of(table.history(who.name if who.asks else None), position)
        return pages.show(request, "answer.html", who, "history", row=of_past(one), measured=measured(one))

    return router


def _asked(pages: Pages, request: Request, who: Principal, form: dict[str, Any]) -> Response:
    """What comes of the form: a price, an answer, a file, or a name put at the end of the statement."""
    table, act = pages.desk.table(request), text(form, "act") or "ask"
    statement, wanted = text(form, "statement"), text(form, "max_std")
    if "insert" in form:
        joined = f"{statement} {text(form, 'insert')}".strip()
        return _page(pages, request, who, joined, wanted, {})
    try:
        max_std = number(form, "max_std")
        if act == "price":
            price = table.price(who, statement, max_std=max_std, remeasure=False)
            return _page(pages, request, who, statement, wanted, _priced(table, price))
        told = table.ask(who, statement, max_std=max_std, remeasure=False)
    except (LaprasError, Declined) as error:
        problem = problem_of(error)
        request.state.code = problem["code"]
        return _page(pages, request, who, statement, wanted, {"problem": problem}, problem["status"])
    if act in ("csv", "json"):
        return _file(told, act, table.name)
    past = next((one for one in table.history(who.name) if one.statement == told.query), None)
    more = {"told": told, "position": None if past is None else past.position, **of_told(told)}
    return _page(pages, request, who, statement, wanted, more)


def _page(
    pages: Pages,
    request: Request,
    who: Principal,
    statement: str,
    max_std: str,
    more: dict[str, Any],
    status: int = 200,
) -> Response:
    """The page Ask, or the part of it that changes."""
    table, account = pages.desk.table(request), pages.desk.table(request).account
    values: dict[str, Any] = {
        "problem": None, "price": None, "told": None, "single": None, "rows": [], "keys": [], "values": [],
        "marked": False, "more": 0, "simulated": False, "source": "",
        "position": None, "expected": "", "oob": False,
        "statement": statement, "max_std": max_std, "account": account, "cap": table.cap_of(who),
        "unit": table.session.unit, "whole": account.spent + account.remaining, **more,
    }  # fmt: skip
    last = dict.fromkeys(one.statement or "" for one in table.history(who.name)[:50] if one.refusal is None)
    values |= {"last": list(last)[:_LAST], "first": f"SELECT COUNT(*) FROM {table.name}"}
    if partial(request):
        return pages.show(request, "_told.html", who, "ask", **{**values, "oob": True})
    values["columns"] = _columns(table)
    return pages.show(request, "ask.html", who, "ask", status, **values)


def _priced(table: ServedTable, price: Price) -> dict[str, Any]:
    """A price for the page: half of the widest interval that is known before."""
    stds = [std for column in price.columns.values() for std in column] or list(price.std)
    known = [std for std in stds if std is not None]
    widths = [half(table.half_width(std)) for std in sorted({min(known), max(known)})] if known else []
    expected = " to ".join(dict.fromkeys(widths)) if len(known) == len(stds) else ""
    return {"price": price, "expected": expected}


def _columns(table: ServedTable) -> list[tuple[str, str, str, list[Any]]]:
    """Name, kind, range and values of each column, as declared."""
    found = []
    for name, declared in table.config.domain.settings().items():
        values = [] if "values" not in declared else list(declared["values"])[:40]
        if declared["type"] == "booleans":
            values = [True, False]
        if declared.get("nullable"):
            values.append(None)
        rest = {
            key: value
            for key, value in declared.items()
            if key not in ("type", "values", "nullable", "other")
        }
        said = [f"{key} {_brief(value)}" for key, value in rest.items()]
        if "values" in declared:
            said.append(
                f"{len(declared['values'])} values" + (" and others" if declared.get("other") else "")
            )
        said.append("may be NULL" if declared.get("nullable") else "rows with NULL are not counted")
        found.append((name, str(declared["type"]), "; ".join(said), values))
    return found


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"{value[0]} to {value[-1]}, {len(value)} of them" if value else "none"
    return str(value)


def _file(told: Told, act: str, name: str) -> Response:
    """The answer as a file; it was asked before, or is asked by this."""
    safe = "".join(one if one.isascii() and one.isalnum() else "_" for one in name)
    headers = {"Content-Disposition": f'attachment; filename="{safe}.{act}"'}
    if act == "json":
        return Response(json.dumps(write_told(told)), media_type="application/json", headers=headers)
    columns = told.columns()
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\r\n")
    rows.writerow([_inert(name) for name in columns])
    for row in zip(*columns.values(), strict=True):
        rows.writerow([_inert(one) for one in row])
    return Response(written.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _inert(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
