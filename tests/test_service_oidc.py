"""Signing in by OpenID Connect: who is let in, and that nothing that is forged, old or another's lets in."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from browser import ROLES, Service, chromium, needs_browser
from identity import CLIENT, SECRET, Provider
from office import COUNT, Office, write_office

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.config.oidc import Oidc
from laprasdp.config.serving import Serving
from laprasdp.service.accounts import Accounts
from laprasdp.service.sign_in_pages import AWAY

pytest.importorskip("authlib")
URL = "http://127.0.0.1:8000"
ADA = "ada@office.example"


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.person = {"sub": "1", "email": ADA, "email_verified": True}
    running.wrong, running.described, running.algorithm, running.refuses = {}, {}, "RS256", False
    return running


@pytest.fixture
def office(tmp_path: Path, provider: Provider) -> Iterator[Office]:
    made = opened(tmp_path, provider)
    made.desk.accounts.add(ADA, "analyst", 0.5)
    yield made
    made.close()


def opened(folder: Path, provider: Provider, **more: Any) -> Office:
    declared = Oidc(provider.issuer, CLIENT, URL, secret=SECRET, **more)
    return Office(folder, serving=Serving(rate=1e5, burst=100_000, oidc=declared))


def back(office: Office, provider: Provider) -> str:
    """Send a browser away, and the address that it comes back by."""
    sent = office.client.get("/sign-in/oidc")
    assert sent.status_code == 303
    away = urlsplit(sent.headers["location"])
    assert sent.headers["location"].startswith(f"{provider.issuer}/enter?")
    cookie = sent.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=lax", "path=/sign-in/oidc"))
    query = {name: values[0] for name, values in parse_qs(away.query).items()}
    address = provider.enter(query)
    assert address.startswith(f"{URL}/sign-in/oidc/back?")
    return address.removeprefix(URL)


def refused(answer: Any, says: str, status: int = 403) -> None:
    assert answer.status_code == status, answer.text
    assert re.search(says, answer.text)
    assert "lapras_session" not in answer.headers.get("set-cookie", "")


def test_whom_a_curator_has_made_is_let_in(office: Office, provider: Provider) -> None:
    assert "/sign-in/oidc" in office.client.get("/sign-in").text
    let_in = office.client.get(back(office, provider))
    assert let_in.status_code == 200
    assert ADA in let_in.text
    cookies = let_in.headers.get_list("set-cookie")
    (session,) = [one for one in cookies if one.startswith("lapras_session=")]
    assert "SameSite=strict" in session
    page = office.client.get("/d/t/ask")
    assert f"{ADA}, analyst" in page.text
    assert "ε = 0 of 0.5" in page.text
    (token,) = office.desk.accounts.tokens(ADA)
    office.client.get(back(office, provider))
    assert len(office.desk.accounts.tokens(ADA)) == 1  # of all its browsers
    office.desk.accounts.revoke(ADA, token.number)
    assert office.client.get("/d/t/ask").status_code == 303
    office.client.get(back(office, provider))
    assert office.client.get("/d/t/ask").status_code == 200
    office.desk.accounts.change(ADA, active=False)
    assert office.client.get("/d/t/ask").status_code == 303
    refused(office.client.get(back(office, provider)), "ask a curator")


def test_what_a_browser_is_sent_with_is_new_each_time(office: Office, provider: Provider) -> None:
    provider.sent.clear()
    for _ in range(3):
        back(office, provider)
    for part in ("state", "nonce", "code_challenge"):
        assert len({query[part] for query in provider.sent}) == 3
    assert {query["scope"] for query in provider.sent} == {"openid email"}


WRONG = {
    "another nonce": {"nonce": "n"},
    "no nonce": {"nonce": None},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "expired": {"exp": int(time.time()) - 3600},
    "no end": {"exp": None},
    "from the future": {"iat": int(time.time()) + 3600},
    "for somebody else": {"aud": "other"},
    "for nobody": {"aud": None},
    "handed on": {"aud": [CLIENT, "other"], "azp": "other"},
    "of another access token": {"at_hash": "eA"},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_token_that_does_not_hold_lets_nobody_in(office: Office, provider: Provider, what: str) -> None:
    address = back(office, provider)
    provider.wrong = WRONG[what]
    refused(office.client.get(address), "does not hold")
    assert office.client.get("/d/t/ask").status_code == 303


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_what_others_can_sign_lets_nobody_in(office: Office, provider: Provider, algorithm: str) -> None:
    address = back(office, provider)
    provider.algorithm = algorithm
    refused(office.client.get(address), "does not hold")


def test_what_another_key_has_signed_lets_nobody_in(office: Office, provider: Provider) -> None:
    office.client.get(back(office, provider))
    own, address = provider.key, back(office, provider)
    provider.key = type(own).generate_key(2048, {"kid": provider.kid})  # the same name, another key
    refused(office.client.get(address), "does not hold")
    provider.key = own
    fetched = provider.fetched
    provider.renew_keys()
    assert office.client.get(back(office, provider)).status_code == 200
    assert provider.fetched == fetched + 1


def test_a_state_comes_back_once_and_in_the_browser_that_was_sent(office: Office, provider: Provider) -> None:
    address = back(office, provider)
    cookie = office.client.cookies[AWAY]
    assert office.client.get(address).status_code == 200
    office.client.cookies.clear()
    again = office.client.get(address, headers={"Cookie": f"{AWAY}={cookie}"})
    refused(again, "has ended")
    other = back(office, provider)
    office.client.cookies.clear()
    refused(office.client.get(other), "not begun in this browser")
    refused(office.client.get(other, headers={"Cookie": f"{AWAY}={cookie}"}), "not begun in this browser")
    refused(office.client.get("/sign-in/oidc/back?code=x&state=y"), "not begun in this browser")
    late = back(office, provider)
    clock = office.desk.accounts.clock
    office.desk.accounts.clock = lambda: clock() + 3600
    refused(office.client.get(late), "has ended")


def test_a_code_of_another_sign_in_or_another_provider_lets_nobody_in(
    office: Office, provider: Provider
) -> None:
    stolen = parse_qs(urlsplit(back(office, provider)).query)["code"][0]
    query = {name: values[0] for name, values in parse_qs(urlsplit(back(office, provider)).query).items()}
    swapped = urlencode({**query, "code": stolen})  # its challenge is another one
    refused(office.client.get(f"/sign-in/oidc/back?{swapped}"), "does not take")
    mixed = back(office, provider).replace("iss=", "iss=https%3A%2F%2Fevil.example%2F")
    refused(office.client.get(mixed), "another identity provider")
    provider.refuses = True
    denied = office.client.get(back(office, provider))
    refused(denied, "let nobody in")
    assert "<b>no</b>" not in denied.text


def test_a_provider_that_is_another_or_away_is_told(office: Office, provider: Provider) -> None:
    provider.described = {"issuer": "https://evil.example"}
    refused(office.client.get("/sign-in/oidc"), "calls itself something else", 502)
    provider.described = {"authorization_endpoint": None, "jwks_uri": f"{provider.issuer}/nothing"}
    refused(office.client.get("/sign-in/oidc"), "cannot be reached", 502)


@pytest.mark.parametrize(
    ("person", "says"),
    [
        ({"email": "eve@elsewhere.example"}, "ask a curator"),
        ({"email_verified": False}, "not verified"),
        ({"email": None}, "tells no email"),
        ({"email": ["ada"]}, "tells no email"),
        ({"email": "bot"}, "ask a curator"),  # a program signs in by its token alone
        ({"email": "x" * 200 + "@new.example"}, "ask a curator"),
    ],
)
def test_whom_nobody_knows_gets_no_account(
    tmp_path: Path, provider: Provider, person: dict[str, Any], says: str
) -> None:
    office = opened(tmp_path, provider, allow=("@new.example",))
    known = [one.name for one in office.desk.accounts.principals()]
    provider.person |= person
    refused(office.client.get(back(office, provider)), says)
    assert [one.name for one in office.desk.accounts.principals()] == known
    office.close()


def test_whom_the_configuration_allows_becomes_an_analyst(tmp_path: Path, provider: Provider) -> None:
    office = opened(tmp_path, provider, allow=("@new.example", "mia@other.example"), cap=0.2)
    for name in ("zoe@new.example", "mia@other.example"):
        provider.person["email"] = name
        assert office.client.get(back(office, provider)).status_code == 200
        made = office.desk.accounts.named(name)
        assert made is not None
        assert (made.role, made.cap) == ("analyst", 0.2)
        assert f"{name}, analyst" in office.client.get("/d/t/ask").text
    office.close()


def test_a_provider_is_declared_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def declared(lines: str) -> Serving:
        return read_config(write_office(tmp_path, more=f"[server.oidc]\n{lines}")).serving

    own = 'issuer = "https://id.example/realm"\nclient_id = "lapras"\nurl = "https://lapras.example/"\n'
    monkeypatch.setenv("LAPRAS_OIDC_SECRET", "hush")
    found = declared(f'{own}claim = "preferred_username"\nallow = ["@id.example"]\ncap = 0.5').oidc
    assert found == Oidc(
        "https://id.example/realm", "lapras", "https://lapras.example", "preferred_username",
        "openid email", ("@id.example",), 0.5, "hush",
    )  # fmt: skip
    assert "hush" not in repr(found)
    assert (found.allows("eve@id.example"), found.allows("eve@evil.example")) == (True, False)
    assert read_config(write_office(tmp_path)).serving.oidc is None
    for lines in (
        own + 'secret = "hush"', own.replace("https://id", "http://id"), own + "cap = 0", own + "allow = [1]",
        own + 'scope = "email"', "issuer = 1", own.replace("lapras.example/", "lapras.example/?q"),
    ):  # fmt: skip
        with pytest.raises(lp.ConfigError, match=r"server\.oidc"):
            declared(lines)


def test_accounts_of_before_get_the_tables(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "a.accounts")
    with accounts.database.transaction(write=True) as connection:
        for name in ("pending", "drafted"):
            connection.exec_driver_sql(f"DROP TABLE lapras_{name}")
        connection.exec_driver_sql("UPDATE lapras_accounts_version SET version_num = '1'")
    accounts.add("ada", "analyst")
    accounts.close()
    again = Accounts(tmp_path / "a.accounts")
    assert [one.name for one in again.principals()] == ["ada"]
    with again.database.transaction(write=False) as connection:
        for name in ("pending", "drafted"):
            assert connection.exec_driver_sql(f"SELECT COUNT(*) FROM lapras_{name}").scalar_one() == 0
    with pytest.raises(lp.DomainError, match="name"):
        again.issue("ada", "signed in by the identity provider")
    again.close()


@needs_browser()
def test_a_browser_comes_back_signed_in(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its Strict cookie, under the strict content policy, with scripts and without."""
    path = write_office(tmp_path)
    monkeypatch.setenv("LAPRAS_OIDC_SECRET", SECRET)
    settings = f'[server.oidc]\nissuer = "{provider.issuer}"\nclient_id = "{CLIENT}"\n'
    port = free_port()
    path.write_text(f'{path.read_text()}{settings}url = "http://127.0.0.1:{port}"\nclaim = "sub"\n')
    service = Service(tmp_path, PORT=str(port))
    provider.person = {"sub": next(iter(ROLES))}
    with chromium() as browser:
        for scripts in (True, False):
            with browser.fresh(java_script_enabled=scripts) as page:
                page.goto(f"{service.url}/sign-in")
                page.click("text=Go to 127.0.0.1")
                page.wait_for_url("**/d/t/ask")
                page.fill("#statement", f"{COUNT} WHERE n = 2")
                page.click("main button.main")
                page.wait_for_selector("#told .figure")
                page.click("text=Sign out")
                assert page.url.endswith("/sign-in")
        assert browser.complaints == []
        own = (service.url, provider.issuer)
        assert [url for url in browser.requests if not url.startswith(own)] == []
    assert service.stop() == 0


def free_port() -> int:
    import socket

    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port
