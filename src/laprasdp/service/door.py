"""The door: who a request is from, whether the role may do it, and whether it comes from our own pages."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from laprasdp.service.accounts import Accounts
from laprasdp.service.bucket import Buckets
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined

COOKIE, TLS_COOKIE = "lapras_session", "__Host-lapras_session"
FIELD = "form_token"
"""The hidden field that a form of our own carries."""


class Door:
    """
    Lets requests in.

    Parameters
    ----------
    accounts : Accounts
    buckets : Buckets
    tls : bool
        Cookies are for TLS alone.
    """

    def __init__(self, accounts: Accounts, buckets: Buckets, *, tls: bool) -> None:
        self.accounts, self._buckets, self.tls = accounts, buckets, tls

    @property
    def cookie(self) -> str:
        """The name of the cookie."""
        return TLS_COOKIE if self.tls else COOKIE

    def by_token(self, request: Request, *roles: str) -> Principal:
        """
        The principal whose token a request carries; a cookie lets nobody in here, so no page can use it.

        Raises
        ------
        Declined
            There is none, its role is none of `roles`, or it asks too often.
        """
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        who = self.accounts.by_token(secret.strip()) if kind.lower() == "bearer" else None
        if who is None:
            told = {"WWW-Authenticate": 'Bearer realm="lapras"'}
            raise Declined("unauthenticated", "send a token that is valid: Authorization: Bearer …", told)
        return self._let_in(request, who, roles)

    def by_browser(self, request: Request, *roles: str) -> Principal | None:
        """
        The principal who is signed in, if somebody is.

        Raises
        ------
        Declined
            The role is none of `roles`, or it asks too often.
        """
        cookie = request.cookies.get(self.cookie)
        who = None if cookie is None else self.accounts.by_browser(cookie)
        return None if who is None else self._let_in(request, who, roles)

    def form_token(self, request: Request) -> str:
        """What forms of this browser carry: it follows from the cookie, which no other site can read."""
        cookie = request.cookies.get(self.cookie, "")
        return hashlib.sha256(f"form {cookie}".encode()).hexdigest()

    def check_form(self, request: Request, token: object) -> None:
        """
        Whether a form of our own was sent.

        Raises
        ------
        Declined
            It was not: the browser says so, or it carries no form token.
        """
        check_site(request)
        own = self.form_token(request)
        if not (isinstance(token, str) and hmac.compare_digest(own.encode(), token.encode())):
            raise Declined(
                "cross-site", "open the page again and send its form: this one is not of this browser"
            )

    def check_rate(self, key: object) -> None:
        """
        Count a request of one principal, or of all who are none yet.

        Raises
        ------
        Declined
            There are too many.
        """
        seconds = self._buckets.wait(key)
        if seconds:
            raise Declined("rate", f"too many requests: wait {seconds} s", {"Retry-After": str(seconds)})

    def _let_in(self, request: Request, who: Principal, roles: tuple[str, ...]) -> Principal:
        request.state.principal = who.name
        self.check_rate(who.number)
        if roles and who.role not in roles:
            raise Declined(
                "forbidden", f"this is for the role {' or '.join(roles)}; {who.name} is {who.role}"
            )
        return who


def check_site(request: Request) -> None:
    """
    Whether a request may come from a page of ours, by what the browser itself says of it.

    Raises
    ------
    Declined
        A page of another site has sent it.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        own = site in ("same-origin", "none")
    else:  # an old browser: the form token decides where there is no origin either
        own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not own:
        raise Declined("cross-site", "this was sent by a page of another site")
