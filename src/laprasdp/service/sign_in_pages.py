"""The way in and out: by a token, or by what an identity provider says."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from laprasdp.service.door import FIELD, check_site
from laprasdp.service.pages import Pages, problem_of, text
from laprasdp.service.pending import SECONDS
from laprasdp.service.problem import Declined

AWAY = "lapras_away"
"""The cookie of a browser that was sent to the provider; Lax, since it comes back from there."""


def sign_in_pages(pages: Pages) -> APIRouter:
    """The routes."""
    router, desk = APIRouter(include_in_schema=False), pages.desk
    door, accounts = desk.door, desk.accounts

    @router.get("/")
    def root(request: Request) -> Response:
        who = door.by_browser(request)
        return RedirectResponse("/sign-in" if who is None else pages.first(who), 303)

    @router.get("/sign-in")
    def sign_in(request: Request, token: str = "") -> Response:
        return _shown(pages, request, token=token)

    @router.post("/sign-in")
    async def signed_in(request: Request) -> Response:
        check_site(request)
        secret = text(await request.form(), "token")

        def work() -> Response:
            cookie = accounts.sign_in(secret, hours=desk.serving.session_hours)
            if cookie is None:
                return _shown(pages, request, 403, failed=True)
            return _let_in(pages, RedirectResponse("/", 303), cookie)

        return await run_in_threadpool(work)

    @router.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        door.check_form(request, (await request.form()).get(FIELD))
        await run_in_threadpool(accounts.sign_out, request.cookies.get(door.cookie, ""))
        found = RedirectResponse("/sign-in", 303)
        found.delete_cookie(door.cookie, path="/", httponly=True, samesite="strict", secure=door.tls)
        return found

    if desk.provider is not None:
        provider = desk.provider

        @router.get("/sign-in/oidc")
        def away(request: Request) -> Response:
            door.check_rate("sign-in by the identity provider")
            try:
                address, cookie = provider.send()
            except Declined as error:
                return _shown(pages, request, error.status, problem=error)
            found = RedirectResponse(address, 303)
            found.set_cookie(
                AWAY, cookie, max_age=round(SECONDS), path="/sign-in/oidc", httponly=True, samesite="lax",
                secure=door.tls,
            )  # fmt: skip
            return found

        @router.get("/sign-in/oidc/back")
        def back(request: Request) -> Response:
            door.check_rate("sign-in by the identity provider")
            found: Response
            try:
                who = provider.back(request.query_params, request.cookies.get(AWAY))
            except Declined as error:
                found = _shown(pages, request, error.status, problem=error)
            else:
                cookie = accounts.sign_in_as(who.name, hours=desk.serving.session_hours)
                # a page and no redirect: what begins at another site brings no cookie that is Strict
                found = _let_in(pages, pages.show(request, "signed_in.html", None, name=who.name), cookie)
            found.delete_cookie(AWAY, path="/sign-in/oidc", httponly=True, samesite="lax", secure=door.tls)
            return found

    return router


def _shown(
    pages: Pages,
    request: Request,
    status: int = 200,
    *,
    token: str = "",
    failed: bool = False,
    problem: Declined | None = None,
) -> Response:
    provider = None if pages.desk.provider is None else pages.desk.provider.name
    told = None if problem is None else problem_of(problem)
    request.state.code = None if problem is None else problem.code
    return pages.show(
        request, "sign_in.html", None, "", status, token=token, failed=failed, provider=provider, problem=told
    )


def _let_in(pages: Pages, found: Response, cookie: str) -> Response:
    seconds, door = round(pages.desk.serving.session_hours * 3600), pages.desk.door
    found.set_cookie(
        door.cookie, cookie, max_age=seconds, path="/", httponly=True, samesite="strict", secure=door.tls
    )
    return found
