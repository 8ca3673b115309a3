"""A small identity provider of the tests' own: discovery, keys, the page that lets in, and tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "lapras", "only-for-tests"


def plain(data: bytes) -> str:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Provider:
    """
    Lets in whoever comes as `person`; what it does wrong is set by a test.

    Attributes
    ----------
    person : dict
        The claims of whoever signs in.
    wrong : dict
        Claims of the next tokens that are other ones than they should be; None leaves one out.
    algorithm : str
        "RS256"; "HS256" signs with the public key as if it were a secret, "none" does not sign.
    refuses : bool
        It lets nobody in.
    sent : list of dict
        What browsers were sent with.
    fetched : int
        How often its keys were.
    """

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "1", "email": "ada@office.example", "email_verified": True}
        self.wrong: dict[str, Any] = {}
        self.described: dict[str, Any] = {}
        self.algorithm, self.refuses, self.kid = "RS256", False, "first"
        self.sent: list[dict[str, str]] = []
        self.fetched = 0
        self.key = RSAKey.generate_key(2048, {"kid": self.kid})
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._answering())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def renew_keys(self) -> None:
        """Another key, under another name."""
        self.kid = "second"
        self.key = RSAKey.generate_key(2048, {"kid": self.kid})

    def description(self) -> dict[str, Any]:
        own = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        ends = {"authorization_endpoint": f"{self.issuer}/enter", "token_endpoint": f"{self.issuer}/token"}
        return {**own, **ends, **self.described}

    def enter(self, query: dict[str, str]) -> str:
        """Where a browser goes on to that came with a query."""
        assert query["client_id"] == CLIENT
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        self.sent.append(query)
        if self.refuses:
            back = {"error": "access_denied", "error_description": "<b>no</b>"}
        else:
            code = secrets.token_urlsafe(8)
            self._codes[code] = query
            back = {"code": code}
        return f"{query['redirect_uri']}?{urlencode({**back, 'state': query['state'], 'iss': self.issuer})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        query = self._codes.pop(form.get("code", ""), None)
        challenge = plain(hashlib.sha256(form["code_verifier"].encode()).digest())
        if (
            query is None
            or authorization != f"Basic {known}"
            or challenge != query["code_challenge"]
            or form["redirect_uri"] != query["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": query["nonce"]}
        claims |= self.person | self.wrong
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.algorithm == "RS256":
            header = {"alg": "RS256", "kid": self.kid}
            signed = jwt.encode(header, claims, self.key, algorithms=["RS256"])
        else:  # by hand: no library does this
            header = {"alg": self.algorithm, "kid": self.kid}
            signed = f"{plain(json.dumps(header).encode())}.{plain(json.dumps(claims).encode())}"
            public = self.key.as_pem(private=False)
            seal = hmac.digest(public, signed.encode(), "sha256") if self.algorithm == "HS256" else b""
            signed = f"{signed}.{plain(seal)}"
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": signed}

    def _answering(provider) -> type[BaseHTTPRequestHandler]:
        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(address.query).items()}
                if address.path == "/enter":
                    self.send_response(302)
                    self.send_header("Location", provider.enter(query))
                    self.end_headers()
                elif address.path == "/keys":
                    provider.fetched += 1
                    self.say(200, {"keys": [provider.key.as_dict(private=False)]})
                elif address.path == "/.well-known/openid-configuration":
                    self.say(200, provider.description())
                else:
                    self.say(404, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self.say(*provider.token(form, self.headers.get("Authorization", "")))

            def say(self, status: int, told: dict[str, Any]) -> None:
                body = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Answering
