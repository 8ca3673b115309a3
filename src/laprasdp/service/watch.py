"""What machines ask: whether it lives, whether it can answer, and counts that are public, as OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from laprasdp.service.desk import Desk
from laprasdp.service.problem import Declined

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def watch(desk: Desk) -> APIRouter:
    """The routes."""
    router = APIRouter()

    @router.get("/healthz", summary="Whether it lives", response_class=PlainTextResponse)
    async def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @router.get(
        "/readyz", summary="Whether its ledgers and accounts can be read", response_class=PlainTextResponse
    )
    def readyz() -> PlainTextResponse:
        if desk.stopping:
            raise Declined("stopping", "the service is stopping", {"Retry-After": "5"})
        desk.accounts.named("")
        waiting = []
        for table in desk.tables.values():
            if table.waiting:
                waiting.append(table.name)
                continue
            for ledger in table.ledgers().values():
                ledger.head  # noqa: B018 (it is read)
        told = f"; a curator has not begun {', '.join(waiting)}" if waiting else ""
        return PlainTextResponse(f"ready{told}\n")

    @router.get("/metrics", summary="Public counts", response_class=PlainTextResponse)
    def metrics() -> PlainTextResponse:
        return PlainTextResponse("".join(_lines(desk)), media_type=OPENMETRICS)

    return router


def _lines(desk: Desk) -> Iterator[str]:
    yield "# TYPE lapras_requests counter\n# HELP lapras_requests Requests that have ended, by status.\n"
    for status, count in sorted(desk.outcomes.items()):
        yield f'lapras_requests_total{{status="{status}"}} {count}\n'
    yield "# TYPE lapras_epsilon gauge\n# HELP lapras_epsilon The budget, and what is spent of it.\n"
    begun = {name: table for name, table in desk.tables.items() if not table.waiting}
    for name, table in begun.items():
        for account in table.session.accounts:
            period = "" if account.period is None else f',period="{account.period}"'
            labels = f'dataset="{_escaped(name)}"{period}'
            yield f'lapras_epsilon{{{labels},part="budget"}} {account.budget.epsilon!r}\n'
            yield f'lapras_epsilon{{{labels},part="spent"}} {account.epsilon_spent!r}\n'
    yield "# TYPE lapras_ledger_entries gauge\n# HELP lapras_ledger_entries Entries that are kept.\n"
    for name, table in begun.items():
        entries = sum(ledger.head.entries for ledger in table.ledgers().values())
        yield f'lapras_ledger_entries{{dataset="{_escaped(name)}"}} {entries}\n'
    yield "# EOF\n"


def _escaped(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
