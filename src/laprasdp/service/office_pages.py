"""The pages of who watches: Plan, Budget, People and Audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from laprasdp.errors import BudgetError, LaprasError
from laprasdp.queries.prediction import Prediction
from laprasdp.service.bodies import RaiseBody
from laprasdp.service.door import FIELD
from laprasdp.service.drafted import written
from laprasdp.service.journal import Journal
from laprasdp.service.ledger_api import exported, verified
from laprasdp.service.madeup import audited
from laprasdp.service.marks import Spot, plot
from laprasdp.service.pages import Pages, number, partial, problem_of, text
from laprasdp.service.principal import ROLES, Principal, Token
from laprasdp.service.problem import Declined
from laprasdp.service.served import ServedTable
from laprasdp.service.spelling import half, of_past, when
from laprasdp.service.statements_api import begun, raised
from laprasdp.sql.statements import split
from laprasdp.stream.asking import Account
from laprasdp.stream.spending import Share, Spending

_LISTED = 100


def office_pages(pages: Pages) -> APIRouter:
    """The routes."""
    router, desk = APIRouter(include_in_schema=False), pages.desk

    async def acted(request: Request, here: str, act: Any) -> Response:
        """What a form does, in a thread; a refusal stands on the page itself."""
        async with request.form() as form:  # which ends what it carries

            def work() -> Response:
                who = pages.entered(request, here)
                desk.door.check_form(request, form.get(FIELD))
                found: Response = act(request, who, dict(form))
                return found

            return await desk.later(work)

    @router.get("/d/{dataset}/plan")
    def plan(request: Request, curve: int = 0) -> Response:
        who, table = pages.entered(request, "plan"), desk.table(request)
        drawn = _curve(table) if curve else {"curve": None, "drawn": None, "most": 0.0}
        if curve and partial(request):
            return pages.show(request, "_curve.html", who, "plan", **drawn)
        return pages.show(request, "plan.html", who, "plan", **_plan(table), **drawn)

    @router.post("/d/{dataset}/plan")
    async def predicted(request: Request) -> Response:
        return await acted(request, "plan", _predict)

    def _predict(request: Request, who: Principal, form: dict[str, Any]) -> Response:
        table, problem = desk.table(request), None
        if who.role != "curator":
            raise Declined("forbidden", "predictions are for a curator")
        try:
            if text(form, "act") == "begin":
                begun(table, text(form, "confirm"))
            else:
                table.set_predictions(_statements(form))
        except (LaprasError, Declined) as error:
            problem = problem_of(error)
        values = {**_plan(table), "curve": None, "drawn": None, "most": 0.0, "problem": problem}
        return pages.show(request, "plan.html", who, "plan", problem["status"] if problem else 200, **values)

    @router.get("/d/{dataset}/budget")
    def budget(request: Request, rest: int = 0) -> Response:
        who, table = pages.entered(request, "budget"), desk.table(request)
        if table.waiting:
            return RedirectResponse(f"/d/{quote(table.name, safe='')}/plan", 303)
        left = table.rehearsal() if rest else None
        if left is not None and partial(request):
            return pages.show(request, "_rest.html", who, "budget", rest=left)
        return pages.show(request, "budget.html", who, "budget", **_budget(pages, table), rest=left)

    @router.post("/d/{dataset}/budget")
    async def larger(request: Request) -> Response:
        return await acted(request, "budget", _raise)

    def _raise(request: Request, who: Principal, form: dict[str, Any]) -> Response:
        table, problem = desk.table(request), None
        if who.role != "curator":
            raise Declined("forbidden", "a raise is for a curator")
        try:
            epsilon, delta = number(form, "epsilon"), number(form, "delta")
            if epsilon is None or (delta is not None and delta >= 1):
                raise BudgetError("write the new ε, and a δ below 1")
            body = RaiseBody(
                epsilon=epsilon,
                delta=delta,
                confirm=text(form, "confirm"),
                period=text(form, "period") or None,
            )
            raised(table, who, body)
        except (LaprasError, Declined) as error:
            problem = problem_of(error)
        values = {**_budget(pages, table), "problem": problem, "raised": problem is None, "rest": None}
        return pages.show(
            request, "budget.html", who, "budget", problem["status"] if problem else 200, **values
        )

    @router.get("/d/{dataset}/people")
    def people(request: Request) -> Response:
        who = pages.entered(request, "people")
        return pages.show(request, "people.html", who, "people", **_people(pages))

    @router.post("/d/{dataset}/people")
    async def changed(request: Request) -> Response:
        return await acted(request, "people", _change)

    def _change(request: Request, who: Principal, form: dict[str, Any]) -> Response:
        more: dict[str, Any] = {"open": text(form, "name")}
        try:
            more |= _changed(pages, form)
        except (LaprasError, Declined) as error:
            more["problem"] = problem_of(error)
        status = more["problem"]["status"] if "problem" in more else 200
        return pages.show(request, "people.html", who, "people", status, **{**_people(pages), **more})

    @router.get("/d/{dataset}/audit")
    def audit(request: Request) -> Response:
        who = pages.entered(request, "audit")
        return pages.show(request, "audit.html", who, "audit", **_audit(desk.table(request)))

    @router.post("/d/{dataset}/audit")
    async def worked(request: Request) -> Response:
        return await acted(request, "audit", _work)

    def _work(request: Request, who: Principal, form: dict[str, Any]) -> Response:
        table = desk.table(request)
        part, more = "_audited.html", dict[str, Any]()
        if text(form, "act") == "audit":
            more = {"audit": audited()}
        else:
            part, more = "_verified.html", {"found": verified(table)}
        if partial(request):
            return pages.show(request, part, who, "audit", **more)
        return pages.show(request, "audit.html", who, "audit", **{**_audit(table), **more})

    @router.get("/d/{dataset}/audit/export")
    def export(request: Request) -> Response:
        pages.entered(request, "audit")
        return exported(desk.table(request))

    return router


def _plan(table: ServedTable) -> dict[str, Any]:
    plan, alone = table.plan(), table.plan(predictions=False)
    gathered = []
    named = [
        (one.query.rpartition(" [")[0] or one.query, _wide(table, one.std), one) for one in plan.predicted
    ]
    for (name, width), alike in groupby(named, key=lambda each: each[:2]):
        members = [one for *_, one in alike]
        query = members[0].query if len(members) == 1 else f"{name} [{len(members)} groups]"
        gathered.append({"query": query, "mae": members[0].mae, "half": width})
    before = {kind.kind: kind.mae for kind in alone.kinds}
    overlap, typical = table.config.stream.overlap, plan.typical_std
    return {
        "plan": plan,
        "predicted": gathered,
        "kinds": [(kind.kind, kind.mae, before.get(kind.kind)) for kind in plan.kinds],
        "typical": _wide(table, typical) or "nothing",
        "problem": None,
        "declared": [one.text for one in table.config.stream.declared],
        "worth": {"known": plan.mae_at(1.0 if overlap is None else overlap), "alone": alone.streams[0].mae},
    }


def _statements(form: dict[str, Any]) -> tuple[Prediction, ...]:
    """The statements of the form, or of a file that it carries: SQL, one behind another."""
    given = form.get("file")
    if isinstance(given, UploadFile) and given.size:
        try:
            told = given.file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Declined("invalid", "the file is not UTF-8 text") from None
    else:
        told = text(form, "statements")
    found = list(split(told.splitlines(keepends=True)))
    wrong = next((one for one in found if one.error), None)
    if wrong is not None:
        raise Declined("invalid", f"line {wrong.line}: {wrong.error}")
    return written([(one.text, None) for one in found])


def _wide(table: ServedTable, std: float | None) -> str:
    return "" if std is None else half(table.half_width(std))


def _curve(table: ServedTable) -> dict[str, Any]:
    curve = table.curve()
    known = [std for _, *stds in curve for std in stds if std is not None]
    most = max(known, default=1.0)
    ends = ((curve[0][0], curve[-1][0]), (0.0, most))
    lines = [
        (kind, [(row[0], row[place]) for row in curve if row[place] is not None])
        for kind, place in (("other", 2), ("line", 1))
    ]
    return {"curve": curve, "drawn": plot(lines, ends), "most": most}  # type: ignore[arg-type]


def _budget(pages: Pages, table: ServedTable) -> dict[str, Any]:
    accounts = {account.period: account for account in table.session.accounts}
    caps = {one.name: one.cap for one in pages.desk.accounts.principals() if one.asks}
    budgets = [
        _one_budget(accounts[name], journal, caps)
        for name, journal in table.journals().items()
        if name in accounts
    ]
    return {"budgets": budgets, "can_rehearse": len(budgets) == 1, "problem": None, "raised": False}


def _one_budget(account: Account, journal: Journal, caps: dict[str, float | None]) -> dict[str, Any]:
    spending = journal.spending
    shares = {share.name: share for share in spending.analysts}
    everybody = [*shares.values(), *(Share(name, 0, 0, 0.0, 0.0) for name in caps if name not in shares)]
    whole = account.spent + account.remaining
    causes = journal.causes if isinstance(journal.causes, Counter) else Counter()
    return {
        "account": account,
        "spending": spending,
        "people": [(share, caps.get(share.name or "")) for share in everybody],
        "causes": [(name, spent, spent / whole) for name, spent in causes.items() if spent],
        **_over_time(spending),
    }


def _over_time(spending: Spending) -> dict[str, Any]:
    if not spending.releases:
        return {"drawn": None, "top": 0.0}
    end = float(max(spending.statements, 1))
    spent: list[Spot] = [(0.0, 0.0)]
    spent += [(one.after + (not one.opening), one.epsilon_spent) for one in spending.releases]
    limits: list[Spot] = [(0.0, spending.begun.epsilon)]
    limits += [(float(one.after), one.new.epsilon) for one in spending.raises]
    spent.append((end, spending.epsilon_spent))
    limits.append((end, spending.budget.epsilon))
    top = max(spending.budget.epsilon, spending.epsilon_spent)
    lines: Sequence[tuple[str, Sequence[Spot]]] = [("limit", limits), ("line", spent)]
    return {"drawn": plot(lines, ((0.0, end), (0.0, top)), steps=True), "top": top}


def _people(pages: Pages) -> dict[str, Any]:
    accounts = pages.desk.accounts
    everybody = [
        (one, [_token(each, accounts.clock()) for each in accounts.tokens(one.name)])
        for one in accounts.principals()
    ]
    return {
        "everybody": everybody,
        "roles": ROLES,
        "problem": None,
        "token": None,
        "token_of": "",
        "open": "",
    }


def _token(token: Token, now: float) -> dict[str, Any]:
    state = "does not expire" if token.expires is None else f"until {when(token.expires)}"
    if token.dead(now):
        state = "expired" if token.revoked is None else f"revoked {when(token.revoked)}"
    return {"number": token.number, "name": token.name, "state": state, "dead": token.dead(now)}


def _changed(pages: Pages, form: dict[str, Any]) -> dict[str, Any]:
    """What the form of a person does; a token that it makes is on the page this once."""
    accounts, name, act = pages.desk.accounts, text(form, "name"), text(form, "act")
    if act == "add":
        days = number(form, "days") or 90.0
        accounts.add(name, text(form, "role"), number(form, "cap"))
        return {"token": accounts.issue(name, "first", days=days), "token_of": name, "open": ""}
    if act == "token":
        return {"token": accounts.issue(name, text(form, "label")), "token_of": name}
    if act == "revoke" and text(form, "number").isdigit():
        accounts.revoke(name, int(text(form, "number")))
    elif act == "cap":
        cap = number(form, "cap")
        if cap is None:
            raise Declined("invalid", "write the cap as an ε, such as 0.5")
        accounts.change(name, cap=cap)
    elif act in ("stop", "let"):
        accounts.change(name, active=act == "let")
    return {}


def _audit(table: ServedTable) -> dict[str, Any]:
    refusals = [of_past(one) for one in table.history(None) if one.refusal is not None]
    heads = [(name, one.head) for name, one in table.ledgers().items()]
    return {"found": None, "heads": heads, "refusals": refusals[:_LISTED], "audit": None}
