"""The address of people: who may do what, and their tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request

from laprasdp.service.bodies import ChangeBody, PrincipalBody, TokenBody
from laprasdp.service.desk import Desk
from laprasdp.service.principal import Principal, Token
from laprasdp.service.problem import Declined
from laprasdp.wire import Plain


def people(desk: Desk) -> APIRouter:
    """The routes, for one prefix."""
    router, door, accounts = APIRouter(), desk.door, desk.accounts

    @router.get("/principals", summary="Everybody; for a curator")
    def principals(request: Request) -> Plain:
        door.by_token(request, "curator")
        return {"principals": [principal_row(one) for one in accounts.principals()]}

    @router.post("/principals", status_code=201, summary="Somebody new")
    def add(request: Request, body: PrincipalBody) -> Plain:
        door.by_token(request, "curator")
        return principal_row(accounts.add(body.name, body.role, body.cap))

    @router.patch("/principals/{name}", summary="Another cap, or nobody to be let in")
    def change(request: Request, name: str, body: ChangeBody) -> Plain:
        door.by_token(request, "curator")
        return principal_row(accounts.change(known(desk, name).name, cap=body.cap, active=body.active))

    @router.get("/tokens", summary="Your tokens, or for a curator anybody's; never the secrets")
    def tokens(request: Request, principal: Annotated[str | None, Query(max_length=100)] = None) -> Plain:
        of = _owner(desk, request, principal)
        return {"tokens": [token_row(one, accounts.clock()) for one in accounts.tokens(of.name)]}

    @router.post("/tokens", status_code=201, summary="A new token, shown this once; for a curator")
    def issue(request: Request, body: TokenBody) -> Plain:
        door.by_token(request, "curator")
        of = known(desk, body.principal)
        return {"principal": of.name, "token": accounts.issue(of.name, body.name, days=body.days)}

    @router.delete("/tokens/{number}", summary="Let nobody in by this token from now on")
    def revoke(
        request: Request, number: int, principal: Annotated[str | None, Query(max_length=100)] = None
    ) -> Plain:
        of = _owner(desk, request, principal)
        if number not in {one.number for one in accounts.tokens(of.name)}:
            raise Declined("not-found", f"{of.name} has no such token")
        accounts.revoke(of.name, number)
        return {"revoked": number}

    return router


def known(desk: Desk, name: str) -> Principal:
    """
    The principal of a name.

    Raises
    ------
    Declined
        There is nobody of this name.
    """
    found = (
        None
        if any(0xD800 <= ord(one) <= 0xDFFF or one == "\0" for one in name)
        else desk.accounts.named(name)
    )
    if found is None:
        raise Declined("not-found", "there is nobody of this name")
    return found


def principal_row(who: Principal) -> Plain:
    """A principal as plain data."""
    return {key: getattr(who, key) for key in ("name", "role", "cap", "active", "made", "seen")}


def token_row(token: Token, now: float) -> Plain:
    """A token as plain data, without its secret."""
    own = {key: getattr(token, key) for key in ("number", "name", "made", "expires", "revoked")}
    return own | {"dead": token.dead(now)}


def _owner(desk: Desk, request: Request, name: str | None) -> Principal:
    """Whose tokens are meant: one's own, or for a curator anybody's."""
    who = desk.door.by_token(request)
    if name is None or name == who.name:
        return who
    if who.role != "curator":
        raise Declined("forbidden", "the tokens of others are for a curator")
    return known(desk, name)
