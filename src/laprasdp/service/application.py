"""The application: routes, what every answer carries, and what becomes of errors."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from laprasdp import __version__
from laprasdp.service.ask_pages import ask_pages
from laprasdp.service.desk import Desk
from laprasdp.service.ledger_api import ledger
from laprasdp.service.office_pages import office_pages
from laprasdp.service.pages import HERE, REFUSED, Pages
from laprasdp.service.people_api import people
from laprasdp.service.problem import CODES, Declined, response
from laprasdp.service.sign_in_pages import sign_in_pages
from laprasdp.service.statements_api import statements
from laprasdp.service.watch import watch

LOG = logging.getLogger("laprasdp.service")
LONGEST = 2_000_000
"""Bytes of a request that are read."""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
"""What every answer carries; nothing of a private table is kept by a browser."""


def application(desk: Desk, at_end: Callable[[], None] = lambda: None) -> FastAPI:
    """The service over a desk; `at_end` is called when the server that runs it has stopped."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        at_end()

    app = FastAPI(
        lifespan=life,
        title="LAPRAS",
        version=__version__,
        docs_url=None,  # FastAPI's page loads its scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        redirect_slashes=False,
    )
    app.state.desk = desk
    bearer = [Depends(HTTPBearer(auto_error=False, description="A token that a curator made."))]
    for prefix in ("/api/v1", "/d/{dataset}/api/v1"):
        for routes in (statements, people, ledger):
            app.include_router(routes(desk), prefix=prefix, dependencies=bearer, responses=_problems())
    app.include_router(watch(desk))
    pages = Pages(desk)
    app.state.pages = pages
    for made in (sign_in_pages, ask_pages, office_pages):
        app.include_router(made(pages))
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    for kind in REFUSED:
        app.add_exception_handler(kind, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(_Around, desk=desk)
    return app


def _problems() -> dict[int | str, dict[str, Any]]:
    """The refusals in the description."""
    statuses = sorted({status for status, _ in CODES.values()} | {400, 404})
    return {status: {"description": "refused, application/problem+json"} for status in statuses}


def _told(request: Request, error: Exception) -> Response:
    if _wants_page(request):
        pages: Pages = request.app.state.pages
        return pages.refused(request, error)
    request.state.code = getattr(error, "code", None)
    return response(error)


def _wants_page(request: Request) -> bool:
    """Whether a page is at the address, and no programs' interface."""
    return "/api/v1" not in request.url.path and request.url.path not in ("/healthz", "/readyz", "/metrics")


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return _told(request, Declined("invalid", f"{where}: {first['msg']}"))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not-found", 405: "method"}.get(error.status_code, "invalid")
    return _told(request, Declined(code, "there is nothing at this address", error.headers))


class _Around:
    """What is done around every request: limits, headers, counts, one line in the log."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        desk, start, status = self._desk, time.perf_counter(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _headers(message["headers"], desk.door.tls)}
            await send(message)

        desk.open += 1
        try:
            refusal = _refused(scope, desk)
            if refusal is None:
                await self._app(scope, _counted(receive), sent)
            else:
                await response(refusal)(scope, receive, sent)
        except Declined as problem:
            await response(problem)(scope, receive, sent)
        except Exception as error:
            LOG.exception("defect", extra={"told": {"path": scope["path"], "error": type(error).__name__}})
            await response(error)(scope, receive, sent)
        finally:
            desk.open -= 1
            desk.count(status)
            state = scope.get("state", {})
            LOG.info(
                "request",
                extra={
                    "told": {
                        "method": scope["method"],
                        "path": scope["path"],
                        "status": status,
                        "ms": round(1000 * (time.perf_counter() - start), 2),
                        "principal": state.get("principal"),
                        "code": state.get("code"),
                    }
                },
            )


def _refused(scope: Scope, desk: Desk) -> Declined | None:
    """What is refused before anybody reads it."""
    if desk.stopping and scope["path"] not in ("/healthz", "/metrics"):
        return Declined(
            "stopping", "the service is stopping: ask again", {"Retry-After": "5", "Connection": "close"}
        )
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not length.isdigit() or int(length) > LONGEST:
        return Declined("too-large", f"a request has at most {LONGEST} bytes")
    return None


def _counted(receive: Receive) -> Receive:
    """The same, until more was sent than is read."""
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > LONGEST:
            raise Declined("too-large", f"a request has at most {LONGEST} bytes")
        return message

    return counted


def _headers(given: list[tuple[bytes, bytes]], tls: bool) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in given}
    wanted: Mapping[str, str] = (
        HEADERS if not tls else HEADERS | {"strict-transport-security": "max-age=31536000"}
    )
    return given + [
        (name.encode(), value.encode()) for name, value in wanted.items() if name.encode() not in there
    ]


class JsonLines(logging.Formatter):
    """A log of one JSON object a line; of statements nothing is in it, and of values neither."""

    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, Any] = {"at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")}
        row["level"] = record.levelname
        row |= {"event": record.getMessage(), **getattr(record, "told", {})}
        if record.exc_info:
            frames = traceback.extract_tb(record.exc_info[2])  # the message may hold what nobody may see
            row["traceback"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(row)
