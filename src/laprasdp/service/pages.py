"""Pages: templates, who is signed in, and what every page shows; each page works without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from laprasdp.errors import LaprasError
from laprasdp.service import spelling
from laprasdp.service.desk import Desk
from laprasdp.service.door import FIELD
from laprasdp.service.marks import bar
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined, told
from laprasdp.service.served import ServedTable

HERE = Path(__file__).parent
PAGES = {
    "analyst": (("ask", "Ask"), ("history", "History"), ("plan", "Plan")),
    "service": (("ask", "Ask"), ("history", "History"), ("plan", "Plan")),
    "curator": (("budget", "Budget"), ("people", "People"), ("plan", "Plan")),
    "auditor": (("audit", "Audit"), ("history", "History"), ("budget", "Budget"), ("plan", "Plan")),
}
"""The pages of each role, the first one first."""


class Pages:
    """The pages of one service."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            three=spelling.three, percent=spelling.percent, record=spelling.record, when=spelling.when,
            plain=lambda value: f"{value:g}", query=lambda text: quote(text, safe=""),
            path=lambda text: quote(text, safe=""), sql_name=_sql_name, sql_value=_sql_value,
        )  # fmt: skip
        self._templates.globals.update(bar=bar, sources=spelling.SOURCES, reasons=spelling.REASONS)

    def entered(self, request: Request, here: str) -> Principal:
        """
        Who is signed in, if the role has this page.

        Raises
        ------
        Declined
            It has not.
        SignInFirst
            Nobody is signed in.
        """
        who = self.desk.door.by_browser(request)
        if who is None:
            raise SignInFirst
        if here not in dict(PAGES[who.role]):
            raise Declined("forbidden", f"this page is not for the role {who.role}")
        return who

    def first(self, who: Principal) -> str:
        """The address of the first page of a role."""
        return f"/d/{quote(next(iter(self.desk.tables)), safe='')}/{PAGES[who.role][0][0]}"

    def show(
        self,
        request: Request,
        template: str,
        who: Principal | None,
        here: str = "",
        status: int = 200,
        **more: Any,
    ) -> Response:
        """A page, or a part of one, as HTML."""
        values: dict[str, Any] = {"who": who, "here": here, "tables": list(self.desk.tables), **more}
        if who is not None:
            values.setdefault("table", self.desk.table(request))
            values["pages"] = PAGES[who.role]
            values["base"] = f"/d/{quote(values['table'].name, safe='')}"
            values["form_token"] = self._field(request)
        return HTMLResponse(self._templates.get_template(template).render(values), status)

    def refused(self, request: Request, error: Exception) -> Response:
        """What was refused, as a page; nobody who is not signed in sees more than a form to do so."""
        if isinstance(error, SignInFirst):
            return RedirectResponse("/sign-in", 303)
        status, body, headers = told(error)
        request.state.code = body["code"]
        try:
            who = self.desk.door.by_browser(request)
        except Declined:
            who = None
        if who is not None and request.path_params.get("dataset") not in self.desk.tables:
            table: ServedTable = next(iter(self.desk.tables.values()))
            page = self.show(
                request,
                "refused.html",
                who,
                "",
                status,
                table=table,
                title=_title(status),
                detail=body["detail"],
            )
        else:
            page = self.show(
                request, "refused.html", who, "", status, title=_title(status), detail=body["detail"]
            )
        page.headers.update(headers)
        return page

    def _field(self, request: Request) -> Markup:
        return Markup('<input type="hidden" name="{}" value="{}">').format(
            FIELD, self.desk.door.form_token(request)
        )


class SignInFirst(Exception):
    """Nobody is signed in."""


REFUSED = (Declined, LaprasError, SignInFirst)
"""What becomes a page."""


def partial(request: Request) -> bool:
    """Whether a part of a page is wanted."""
    return request.headers.get("hx-request") == "true"


def problem_of(error: Exception) -> dict[str, Any]:
    """A refusal for a template."""
    return told(error)[1]


def text(form: Mapping[str, Any], key: str) -> str:
    """
    A field of a form, without blanks around it.

    Raises
    ------
    Declined
        It is a file, or has what no database keeps.
    """
    value = form.get(key, "")
    if not isinstance(value, str) or "\0" in value or any(0xD800 <= ord(one) <= 0xDFFF for one in value):
        raise Declined("invalid", f"{key}: this is no text")
    return value.strip()


def number(form: Mapping[str, Any], key: str) -> float | None:
    """
    A positive number of a form; None where the field is empty.

    Raises
    ------
    Declined
        It is none.
    """
    given = text(form, key)
    if not given:
        return None
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise Declined("invalid", f"{key}: write a positive number, such as 0.5")
    return value


def _title(status: int) -> str:
    return {403: "This is not for you", 404: "Nothing is here", 429: "Too fast", 503: "Not yet"}.get(
        status, "This cannot be done"
    )


def _sql_name(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return (name if plain else '"' + name.replace('"', '""') + '"') + " "


def _sql_value(value: object) -> str:
    if value is None:
        return "NULL "
    if isinstance(value, bool | int | float):
        return json.dumps(value) + " "
    return "'" + str(value).replace("'", "''") + "' "
