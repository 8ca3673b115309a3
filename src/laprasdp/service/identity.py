"""The identity provider: people are sent to it, and what it signs says who they are (OpenID Connect)."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from laprasdp.config.oidc import Oidc
from laprasdp.errors import ConfigError, DomainError
from laprasdp.service.accounts import Accounts
from laprasdp.service.pending import Errand, Pending
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined

try:
    from authlib.common.errors import AuthlibBaseError
    from authlib.integrations.httpx_client import OAuth2Client
    from authlib.oidc.core import CodeIDToken
    from httpx2 import HTTPError, Response
    from joserfc import jwt
    from joserfc.errors import InvalidKeyIdError, JoseError
    from joserfc.jwk import KeySet
    from joserfc.jws import JWSRegistry
except ModuleNotFoundError as error:
    raise ConfigError(f"install {error.name}, as pip install 'lapras-dp[oidc]' does") from None

BACK = "/sign-in/oidc/back"
"""Where the provider sends a browser back to."""
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"]
"""What may be signed by: with a key of the provider, which nobody else has."""
LEEWAY = 30
"""Seconds by which its clock and this one may differ."""
_SIGNED = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
_KNOWN_FOR = 3600.0  # seconds that what describes the provider is believed
_LONGEST = 1_000_000  # bytes of an answer of it


class IdentityProvider:
    """
    Signs people in by what a provider says of them.

    Parameters
    ----------
    declared : Oidc
    accounts : Accounts

    Notes
    -----
    Assumes that the provider is reached by TLS and gives nobody another one's name.  Guarantees that whoever
    is let in has signed in there, in this very browser, for this service, since it was sent there.
    """

    def __init__(self, declared: Oidc, accounts: Accounts) -> None:
        self._declared, self._accounts = declared, accounts
        self._pending = Pending(accounts)
        self._lock = threading.Lock()
        self._described: tuple[float, Mapping[str, Any], Any] | None = None

    @property
    def name(self) -> str:
        """How a page calls it."""
        return urlsplit(self._declared.issuer).netloc

    def send(self) -> tuple[str, str]:
        """
        Where a browser is sent to, and the cookie that it comes back with.

        Raises
        ------
        Declined
            The provider cannot be reached.
        """
        state, cookie, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(4))
        errand = Errand(state, cookie, nonce, verifier)
        described, _ = self._provider()
        with self._client() as client:
            address, _ = client.create_authorization_url(
                described["authorization_endpoint"], state=errand.state, nonce=errand.nonce,
                code_verifier=errand.verifier,
            )  # fmt: skip
        self._pending.send(errand)
        return address, errand.cookie

    def back(self, query: Mapping[str, str], cookie: str | None) -> Principal:
        """
        Whom the provider says a browser is of that comes back.

        Raises
        ------
        Declined
            It was not sent there by us, or is back already; what the provider says does not hold; or nobody
            of this name may come in.
        """
        errand = self._pending.back(query.get("state", ""), cookie or "")
        if errand is None:
            raise Declined(
                "identity", "this sign-in was not begun in this browser, or has ended: begin again"
            )
        described, _ = self._provider()
        if query.get("iss", described["issuer"]) != described["issuer"]:
            raise Declined("identity", "another identity provider has answered: begin again")
        if "code" not in query:
            raise Declined(
                "identity", "the identity provider let nobody in: begin again, or ask whoever runs it"
            )
        with self._client() as client, _reached():
            token = client.fetch_token(
                described["token_endpoint"], code=query["code"], code_verifier=errand.verifier,
                grant_type="authorization_code",
            )  # fmt: skip
        return self._named(self._claims(token, errand))

    def _claims(self, token: Mapping[str, Any], errand: Errand) -> Mapping[str, Any]:
        """What the provider has signed, once it was checked."""
        signed = token.get("id_token")
        if not isinstance(signed, str):
            raise Declined("identity", "the identity provider does not say who it is")
        own = self._declared
        try:
            try:
                decoded = jwt.decode(signed, self._provider()[1], registry=_SIGNED)
            except InvalidKeyIdError:  # it has new keys
                decoded = jwt.decode(signed, self._provider(anew=True)[1], registry=_SIGNED)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self._provider()[0]["issuer"]},
                    "aud": {"essential": True, "value": own.client_id},
                    "nonce": {"essential": True, "value": errand.nonce},
                },
                {
                    "client_id": own.client_id,
                    "nonce": errand.nonce,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(leeway=LEEWAY)
        except (JoseError, AuthlibBaseError, ValueError, TypeError):  # what they say may quote what was sent
            raise Declined("identity", "what the identity provider says does not hold: begin again") from None
        found: Mapping[str, Any] = claims
        return found

    def _named(self, claims: Mapping[str, Any]) -> Principal:
        """The principal whom the claims name; who is allowed to is made one."""
        own, name = self._declared, claims.get(self._declared.claim)
        if not isinstance(name, str) or not name:
            raise Declined("identity", f"the identity provider tells no {own.claim} of you")
        if own.claim == "email" and claims.get("email_verified") is not True:
            raise Declined("identity", "the identity provider has not verified your address of mail")
        known = self._accounts.named(name)
        if known is None and own.allows(name):
            try:
                known = self._accounts.add(name, "analyst", own.cap)
            except DomainError:
                known = self._accounts.named(name)  # somebody was quicker, or it is no name
        if known is None or not known.active or known.role == "service":
            raise Declined("identity", "nobody of your name may come in here: ask a curator")
        return known

    def _provider(self, *, anew: bool = False) -> tuple[Mapping[str, Any], Any]:
        """What describes the provider, and its keys; both are fetched anew every hour."""
        with self._lock:
            if self._described is None or anew or time.monotonic() - self._described[0] > _KNOWN_FOR:
                address = self._declared.issuer.rstrip("/") + "/.well-known/openid-configuration"
                with self._client() as client, _reached():
                    described = _read(client, address)
                    if described["issuer"] != self._declared.issuer:
                        raise Declined("provider", "the identity provider calls itself something else")
                    keys = KeySet.import_key_set(_read(client, described["jwks_uri"]))
                self._described = time.monotonic(), described, keys
            return self._described[1:]

    def _client(self) -> Any:
        own = self._declared
        return OAuth2Client(
            own.client_id, own.secret or None, scope=own.scope, redirect_uri=own.url + BACK,
            code_challenge_method="S256", timeout=10.0,
            token_endpoint_auth_method="client_secret_basic" if own.secret else "none",
        )  # fmt: skip


@contextmanager
def _reached() -> Iterator[None]:
    """What the provider may do wrong, as a refusal that quotes nothing of it."""
    try:
        yield
    except (HTTPError, KeyError, TypeError, ValueError, JoseError):
        raise Declined("provider", "the identity provider cannot be reached, or answers wrongly") from None
    except AuthlibBaseError:
        raise Declined(
            "identity", "the identity provider does not take what it has sent: begin again"
        ) from None


def _read(client: Any, address: str) -> Any:
    """What stands at an address of the provider."""
    response: Response = client.request("GET", address, withhold_token=True)
    response.raise_for_status()
    if len(response.content) > _LONGEST:
        raise ValueError("the answer is too long")
    return json.loads(response.content)
