"""A client of the service: the protocol of sessions over HTTP, so that programs ask there as here."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from laprasdp.errors import (
    BudgetExhausted,
    ConfigError,
    LaprasError,
    LedgerError,
    UnknownAnalyst,
    UnsupportedQuery,
)
from laprasdp.record.settings import domain_of
from laprasdp.sql.parse import Statement
from laprasdp.sql.reader import Reader
from laprasdp.stream.answer import Released
from laprasdp.stream.asking import Account, Asking, Question, Told
from laprasdp.stream.plan import Plan
from laprasdp.stream.price import Price
from laprasdp.wire import read_account, read_plan, read_price, read_told

if TYPE_CHECKING:
    import httpx2


def connect(url: str, token: str, *, table: str | None = None, timeout: float = 300.0) -> RemoteSession:
    """
    Connect to a service that `lapras serve` runs.

    Parameters
    ----------
    url : str
        Such as ``https://lapras.example``.
    token : str
        That a curator made.
    table : str, optional
        One of several that it serves; else its first.
    timeout : float
        Seconds to wait for an answer.

    Returns
    -------
    RemoteSession

    Raises
    ------
    ConfigError
        The address is none, or the extra `server` is not installed.
    UnknownAnalyst
        The token lets nobody in.
    LedgerError
        The service cannot be reached.
    """
    session = RemoteSession(url, token, table=table, timeout=timeout)
    try:
        session.name  # noqa: B018 (an address or a token that is wrong is told here)
    except LaprasError:
        session.close()
        raise
    return session


class RemoteSession(Asking):
    """
    A session that a service holds; made by `connect`.

    Statements are asked by whom the token is of.  A request that was cut off is sent again once: what was
    answered is free, and what is measured anew is measured once.

    Notes
    -----
    **Privacy.**  It holds a token and what was shown, and nothing else.
    """

    def __init__(self, url: str, token: str, *, table: str | None = None, timeout: float = 300.0) -> None:
        try:
            import httpx2
        except ModuleNotFoundError as error:
            raise ConfigError(f"install {error.name}, as pip install 'lapras-dp[server]' does") from None
        if not url.startswith(("http://", "https://")):
            raise ConfigError("the address of a service begins with https:// or http://")
        path = "" if table is None else f"/d/{quote(table, safe='')}"
        headers = {"Authorization": f"Bearer {token}"}
        self._url, self._lost = f"{url.rstrip('/')}{path}", httpx2.TransportError
        self._client: httpx2.Client = httpx2.Client(
            base_url=f"{self._url}/api/v1/", headers=headers, timeout=timeout
        )

    def __repr__(self) -> str:
        return self._line(self.name)

    @property
    def name(self) -> str:
        """How statements call the table."""
        name: str = self._schema["table"]
        return name

    @property
    def analyst(self) -> str:
        """Whom the token is of."""
        name: str = self._schema["you"]["name"]
        return name

    @property
    def unit(self) -> str:
        """What charges are measured in: ε or μ²."""
        unit: str = self._schema["unit"]
        return unit

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The account of each budget."""
        return tuple(map(read_account, self._get("budget")["accounts"]))

    @cached_property
    def _schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self._get("schema")
        return schema

    @cached_property
    def _reader(self) -> Reader:
        return Reader(domain_of({"domain": self._schema["domain"]}), self.name, self._schema["types"] or None)

    def parse(self, text: str) -> Statement:
        """Read a statement here, without lookups; the service reads it by itself when it is asked."""
        return self._reader.parse(text)

    def admit(self, analyst: str | None) -> None:
        """Whether this analyst may ask: nobody but whom the token is of."""
        if analyst not in (None, self.analyst):
            raise UnknownAnalyst(f"this token is of {self.analyst}: connect with a token of {analyst}")

    def allot(self, caps: Mapping[str, float]) -> None:
        """Not by a session: a curator sets caps in the service."""
        raise UnknownAnalyst("caps are set by a curator, in the service")

    def plan(self) -> Plan:
        """Expected error of every predicted query and of typical others; no data, no charge."""
        return read_plan(self._get("plan"))

    def price(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Price:
        """What a statement would be charged, and how exact it would be; errors as from `Session.price`."""
        self.admit(analyst)
        return read_price(self._post("price", statement, max_std, remeasure))

    def ask(
        self,
        statement: Question,
        *,
        analyst: str | None = None,
        max_std: float | None = None,
        remeasure: bool = False,
    ) -> Told:
        """
        Answer one statement, at once; errors as from `Session.ask`.

        Of a GROUP BY the joint covariance is not sent; of a quantile the intervals at the levels of
        `laprasdp.wire.LEVELS` are.
        """
        self.admit(analyst)
        return read_told(self._post("ask", statement, max_std, remeasure))

    def close(self) -> None:
        """Close its connections; closing twice does nothing."""
        self._client.close()

    def _get(self, path: str) -> Any:
        return self._sent("GET", path)

    def _post(self, path: str, statement: Question, max_std: float | None, remeasure: bool) -> Any:
        text = statement.text if isinstance(statement, Statement) else statement
        if not isinstance(text, str):
            raise UnsupportedQuery("a service is asked in SQL: give the statement as text")
        body = {"statement": text, "max_std": max_std, "remeasure": remeasure}
        headers = {"Idempotency-Key": secrets.token_hex(16)} if remeasure and path == "ask" else {}
        return self._sent("POST", path, json=body, headers=headers)

    def _sent(self, method: str, path: str, **more: Any) -> Any:
        if self._client.is_closed:
            raise LedgerError("the session is closed: connect again to go on")
        for last in (False, True):
            try:
                response = self._client.request(method, path, **more)
                break
            except self._lost as error:
                if last:
                    raise LedgerError(f"the service at {self._url} cannot be reached: {error}") from None
        if response.is_success:
            return response.json()
        raise _refusal(response.status_code, response.headers.get("content-type", ""), response)


def _refusal(status: int, kind: str, response: Any) -> LaprasError:
    """The error that the service was refused with."""
    if kind.partition(";")[0] != "application/problem+json":
        return LedgerError(f"the service answered {status}: is a service of LAPRAS at this address?")
    body = response.json()
    classes = {one.code: one for one in _tree(LaprasError)}
    other = UnknownAnalyst if status in (401, 403) else LedgerError if status >= 429 else ConfigError
    error: LaprasError = classes.get(body["code"], other)(body["detail"])
    if isinstance(error, BudgetExhausted):
        error.released = tuple(Released(**one) for one in body["released"])
    return error


def _tree(of: type[LaprasError]) -> Iterator[type[LaprasError]]:
    yield of
    for kind in of.__subclasses__():
        yield from _tree(kind)
