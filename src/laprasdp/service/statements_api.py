"""The address of statements: the schema, prices, answers, the plan and what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from laprasdp.privacy.budget import Budget
from laprasdp.record.format import canonical
from laprasdp.service.bodies import BeginBody, PredictionsBody, QuestionBody, RaiseBody
from laprasdp.service.desk import Desk
from laprasdp.service.drafted import written
from laprasdp.service.journal import PastStatement
from laprasdp.service.principal import ASKING
from laprasdp.service.problem import Declined
from laprasdp.service.served import ServedTable
from laprasdp.stream.spending import Spending
from laprasdp.wire import Plain, write_account, write_plan, write_price

NDJSON = "application/x-ndjson"


def statements(desk: Desk) -> APIRouter:
    """The routes, for one prefix."""
    router = APIRouter()
    door = desk.door

    @router.get("/schema", summary="What may be asked about")
    def schema(request: Request) -> Plain:
        who, table = door.by_token(request), desk.table(request)
        return {**schema_of(table), "tables": list(desk.tables), "you": {"name": who.name, "role": who.role}}

    @router.post("/price", summary="What a statement would cost and how exact it would be; nothing is asked")
    async def price(request: Request, body: QuestionBody) -> Plain:
        def work() -> Plain:
            who, table = door.by_token(request, *ASKING), desk.table(request)
            found = table.price(who, body.statement, max_std=body.max_std, remeasure=body.remeasure)
            return {"query": body.statement, "unit": table.session.unit, **write_price(found)}

        return await desk.later(work)

    @router.post("/ask", summary="Answer a statement; asking it again is free")
    async def ask(
        request: Request,
        body: QuestionBody,
        idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    ) -> Response:
        def work() -> Plain:
            who, table = door.by_token(request, *ASKING), desk.table(request)
            return desk.ask(
                table, who, body.statement,
                max_std=body.max_std, remeasure=body.remeasure, key=idempotency_key,
            )  # fmt: skip

        found = await desk.later(work)
        if NDJSON in request.headers.get("accept", ""):
            return StreamingResponse(_lines(found), media_type=NDJSON)
        return JSONResponse(found)

    @router.get("/answers", summary="Your statements, the newest first; an auditor sees everybody's")
    def answers(
        request: Request,
        q: Annotated[str, Query(max_length=1000)] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[int | None, Query(ge=0)] = None,
    ) -> Plain:
        who, table = door.by_token(request, *ASKING, "auditor"), desk.table(request)
        found = table.history(who.name if who.asks else None, q)
        rest = [one for one in found if before is None or one.position < before]
        return {"answers": [answer_row(one) for one in rest[:limit]], "more": len(rest) > limit}

    @router.get("/answers/{position}", summary="One of them")
    def answer(request: Request, position: int) -> Plain:
        who, table = door.by_token(request, *ASKING, "auditor"), desk.table(request)
        return answer_row(one_of(table.history(who.name if who.asks else None), position))

    @router.get("/plan", summary="Expected errors before anything is spent")
    def plan(request: Request, predictions: bool = True) -> Plain:
        door.by_token(request)
        return write_plan(desk.table(request).plan(predictions=predictions))

    @router.get("/predictions", summary="What is expected to be asked")
    def predictions(request: Request) -> Plain:
        door.by_token(request)
        return predictions_of(desk.table(request))

    @router.put("/predictions", summary="Other predictions, until the ledger is begun; then only its own")
    def predict(request: Request, body: PredictionsBody) -> Plain:
        door.by_token(request, "curator")
        table = desk.table(request)
        table.set_predictions(written([(one.statement, one.expected) for one in body.predictions]))
        return predictions_of(table)

    @router.post("/begin", summary="Begin the ledger with the predictions that are set; they stay then")
    def begin(request: Request, body: BeginBody) -> Plain:
        door.by_token(request, "curator")
        table = desk.table(request)
        begun(table, body.confirm)
        return predictions_of(table)

    @router.get("/budget", summary="What is left; a curator and an auditor see on what it was spent")
    def budget(request: Request) -> Plain:
        who, table = door.by_token(request), desk.table(request)
        found: Plain = {"accounts": [write_account(one) for one in table.session.accounts]}
        if who.asks:
            cap = table.cap_of(who)
            return found | {"cap": None if cap is None else {"epsilon": cap[0], "epsilon_spent": cap[1]}}
        return found | {
            "spending": [spending_row(name, one.spending) for name, one in table.journals().items()]
        }

    @router.post("/budget/raise", summary="A larger budget, on record: it weakens what was promised")
    def larger(request: Request, body: RaiseBody) -> Plain:
        who, table = door.by_token(request, "curator"), desk.table(request)
        raised(table, who, body)
        return {"accounts": [write_account(one) for one in table.session.accounts]}

    return router


def predictions_of(table: ServedTable) -> Plain:
    """What is expected to be asked, and whether the ledger was begun with it."""
    declared = table.config.stream.declared
    listed = [{"statement": one.text, "expected": one.expected} for one in declared]
    return {"predictions": listed, "begun": not table.waiting}


def begun(table: ServedTable, confirm: str) -> None:
    """
    Begin the ledger of a table.

    Raises
    ------
    Declined
        It is not confirmed, or was begun before.
    LaprasError
        The table cannot be opened as declared.
    """
    if confirm != "begin":
        raise Declined("invalid", 'the predictions stay then: confirm it by the word "begin"')
    table.begin()


def raised(table: ServedTable, who: Any, body: RaiseBody) -> None:
    """
    Record a larger budget.

    Raises
    ------
    Declined
        It is not confirmed.
    BudgetError
        As from `Session.raise_budget`.
    """
    if body.confirm != "raise":
        raise Declined("invalid", 'a raise weakens what was promised: confirm it by the word "raise"')
    delta = table.account.budget.delta if body.delta is None else body.delta
    table.raise_budget(who, Budget(body.epsilon, delta), body.period)


def schema_of(table: ServedTable) -> Plain:
    """What is declared of a table, as its ledger spells it."""
    config = table.config
    domain = [[name, declared] for name, declared in config.domain.settings().items()]
    budget, unit = table.account.budget, config.unit
    return {
        "table": config.name,
        "domain": json.loads(canonical(domain)),
        "types": dict(getattr(getattr(table.session, "table", None), "types", {})),
        "lookups": list(config.lookups),
        "privacy": {
            "epsilon": budget.epsilon, "delta": budget.delta, "column": unit.column, "max_rows": unit.max_rows
        },
        "unit": table.session.unit,
        "horizon": config.stream.horizon,
        "periods": [] if config.windows is None else [one.period for one in table.session.accounts],
    }  # fmt: skip


def one_of(asked: list[PastStatement], position: int) -> PastStatement:
    """
    The statement at a position.

    Raises
    ------
    Declined
        There is none among these.
    """
    for one in asked:
        if one.position == position:
            return one
    raise Declined("not-found", "there is no answer of yours at this place")


def answer_row(asked: PastStatement) -> Plain:
    """A statement of the ledger as plain data."""
    values = [
        {"value": 0.0, "std": 0.0, "source": "constant"}
        if one is None
        else {"value": one.value, "std": one.variance**0.5, "source": one.source}
        for one in asked.answers
    ]
    period = {} if asked.period is None else {"period": asked.period}
    return {
        "position": asked.position, "at": asked.at.isoformat(), "analyst": asked.analyst,
        "statement": asked.statement, "charge": asked.charge, "source": asked.source,
        "refusal": asked.refusal, "measured": values, **period,
    }  # fmt: skip


def spending_row(period: str | None, spending: Spending) -> Plain:
    """What was spent, on what and for whom."""
    row = spending.row()
    return row if period is None else {"period": period, **row}


def _lines(form: Plain) -> Iterator[str]:
    """An answer row by row; the first line says what it is."""
    rest = {key: value for key, value in form.items() if key != "rows"}
    yield json.dumps({**rest, "rows": len(form["rows"])}) + "\n"
    for row in form["rows"]:
        yield json.dumps(row) + "\n"
