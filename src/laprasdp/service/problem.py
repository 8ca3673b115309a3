"""Problems: whatever is refused, as application/problem+json (RFC 9457), with a code and its charge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from laprasdp.errors import BudgetExhausted, ConfigError, LaprasError, LedgerError, UnknownAnalyst

CODES = {
    "invalid": (422, "the request is not as the description says"),
    "unauthenticated": (401, "no token, or one that lets nobody in"),
    "identity": (403, "nobody is signed in by what the identity provider says"),
    "forbidden": (403, "the role may not do this"),
    "cross-site": (403, "a page of another site has sent it"),
    "not-found": (404, "there is no such thing"),
    "method": (405, "the address knows no such method"),
    "begun": (409, "the ledger was begun: its predictions stay"),
    "waiting": (503, "a curator has not begun: nothing can be asked yet"),
    "mismatch": (409, "the idempotency key was used for another request"),
    "too-large": (413, "the request is longer than is read"),
    "rate": (429, "more requests than the principal may make"),
    "internal": (500, "a defect of the service; nothing was shown"),
    "provider": (502, "the identity provider cannot be reached, or answers wrongly"),
    "stopping": (503, "the service is stopping"),
}
"""What the service itself refuses, beside the errors of `laprasdp.errors`: code to status and meaning."""


class Declined(Exception):
    """
    What the service itself refuses.

    Attributes
    ----------
    code : str
        A key of `CODES`.
    detail : str
        One line that says what to do.
    headers : mapping
    """

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code, self.detail, self.headers = code, detail, dict(headers or {})

    @property
    def status(self) -> int:
        """Of HTTP."""
        return CODES[self.code][0]


def told(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """
    Status, body and headers of what was refused; of a defect nothing is told.

    A refusal is charged 0; what was released before it, whatever was asked, stands in `released`.  After a
    defect, or where the ledger failed, it is open whether a charge was kept: it is null.
    """
    headers: dict[str, str] = {}
    more: dict[str, Any] = {"charge": 0}
    if isinstance(error, Declined):
        status, code, detail, headers = error.status, error.code, error.detail, error.headers
    elif isinstance(error, LaprasError):
        status, code, detail = error.status, error.code, " ".join(str(error).split())
        if isinstance(error, ConfigError) and not isinstance(error, UnknownAnalyst):
            status = 422  # an argument of the request: what is declared was read when the service began
        if isinstance(error, BudgetExhausted):
            more |= {"released": [one.row() for one in error.released]}
        if isinstance(error, LedgerError):
            more, headers = {"charge": None}, {"Retry-After": "5"}
    else:
        status, code, detail = (
            500,
            "internal",
            "the service has a defect: nothing was shown",
        )
        more = {"charge": None}
    body = {"type": f"urn:lapras:{code}", "title": code, "status": status, "detail": detail, "code": code}
    return status, {**body, **more}, headers


def response(error: Exception) -> Response:
    """The answer to a request that was refused."""
    status, body, headers = told(error)
    return JSONResponse(body, status, headers, media_type="application/problem+json")
