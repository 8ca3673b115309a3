"""The address of the ledger: what an auditor verifies and takes away."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import StreamingResponse

from laprasdp.service.desk import Desk
from laprasdp.service.served import ServedTable
from laprasdp.service.statements_api import NDJSON
from laprasdp.wire import Plain


def ledger(desk: Desk) -> APIRouter:
    """The routes, for one prefix."""
    router, door = APIRouter(prefix="/ledger"), desk.door

    @router.get("/verify", summary="Work out again everything that the ledger claims; for an auditor")
    def verify(request: Request) -> Plain:
        door.by_token(request, "auditor")
        return verified(desk.table(request))

    @router.get(
        "/export", summary="The ledger as JSON lines; for an auditor", response_class=StreamingResponse
    )
    def export(request: Request) -> StreamingResponse:
        door.by_token(request, "auditor")
        return exported(desk.table(request))

    return router


def verified(table: ServedTable) -> Plain:
    """What was found wrong, and where each chain ends: a head to write down elsewhere."""
    heads = {name: one.head for name, one in table.ledgers().items()}
    each = [
        {
            "period": name,
            "entries": heads[name].entries,
            "head": heads[name].digest,
            "findings": [{"position": one.position, "what": one.what} for one in found],
        }
        for name, found in table.verify().items()
    ]
    return {"sound": not any(one["findings"] for one in each), "ledgers": each}


def exported(table: ServedTable) -> StreamingResponse:
    """The lines of every ledger, as a file."""

    def lines() -> Iterator[str]:
        for one in table.ledgers().values():
            for line in one.lines():
                yield line + "\n"

    named = {"Content-Disposition": f'attachment; filename="{_safe(table.name)}.jsonl"'}
    return StreamingResponse(lines(), media_type=NDJSON, headers=named)


def _safe(name: str) -> str:
    return "".join(one if one.isascii() and (one.isalnum() or one in "-_.") else "_" for one in name)
