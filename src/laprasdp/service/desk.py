"""The desk: the tables, the accounts and the door of one service, and how a statement goes over it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request

from laprasdp.config.serving import Serving
from laprasdp.service.accounts import Accounts
from laprasdp.service.door import Door
from laprasdp.service.principal import Principal
from laprasdp.service.problem import Declined
from laprasdp.service.repeated import Repeated
from laprasdp.service.served import ServedTable
from laprasdp.stream.asking import Told
from laprasdp.wire import Plain, write_told

if TYPE_CHECKING:
    from laprasdp.service.identity import IdentityProvider

T = TypeVar("T")
THREADS = 40
"""Statements that are worked on at once; pages that are only looked at have threads of their own."""


class Desk:
    """
    What every request is answered from.

    Attributes
    ----------
    tables : dict of name to ServedTable
        The first is the one that addresses without a name are about.
    accounts, door, serving, repeated
    provider : IdentityProvider or None
    outcomes : Counter
        How many requests ended with each status; public.
    stopping : bool
        New requests are refused.
    threads : ThreadPoolExecutor
        What statements are worked on by.
    """

    def __init__(
        self,
        tables: list[ServedTable],
        accounts: Accounts,
        door: Door,
        serving: Serving,
        provider: IdentityProvider | None = None,
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self.accounts, self.door, self.serving, self.provider = accounts, door, serving, provider
        self.repeated = Repeated(accounts)
        self.outcomes: Counter[int] = Counter()
        self.open = 0
        self.stopping = False
        self._lock = threading.Lock()
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="turn")

    def table(self, request: Request) -> ServedTable:
        """
        The table that an address names.

        Raises
        ------
        Declined
            There is none of that name.
        """
        name = request.path_params.get("dataset")
        if name is None:
            return next(iter(self.tables.values()))
        if name not in self.tables:
            raise Declined("not-found", f"there is no table of this name; there are {', '.join(self.tables)}")
        return self.tables[name]

    def count(self, status: int) -> None:
        """Count a request that has ended."""
        with self._lock:
            self.outcomes[status] += 1

    async def later(self, work: Callable[[], T]) -> T:
        """Do something in a thread, and tell of it, or of its refusal, no sooner than `answer_after`."""
        start = time.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(self.threads, work)
        finally:
            left = self.serving.answer_after - (time.monotonic() - start)
            if left > 0:
                await _slept(left)

    def ask(
        self,
        table: ServedTable,
        who: Principal,
        statement: str,
        *,
        max_std: float | None = None,
        remeasure: bool = False,
        key: str | None = None,
    ) -> Plain:
        """
        The answer of a statement as plain data; with a key, that of the first request that had it.

        Raises
        ------
        LaprasError
            As from `Session.ask`.
        Declined
            The key was used for another request.
        """

        def asked(again: bool) -> Told:
            return table.ask(who, statement, max_std=max_std, remeasure=again)

        if key is None:
            return self._shown(table, asked(remeasure))
        told = json.dumps([table.name, statement, max_std, remeasure])
        request = hashlib.sha256(told.encode()).hexdigest()
        whole = f"{table.name} {key}"
        before = self.repeated.begin(who, whole, request, table.entries if remeasure else int)
        if before.answer is not None:
            found: Plain = json.loads(before.answer)
            return found
        if remeasure and before.known:  # it was cut off: perhaps after it was measured
            journals = table.journals().values()
            remeasure = not any(one.measured_again(who.name, statement, before.entries) for one in journals)
        form = self._shown(table, asked(remeasure))
        self.repeated.end(who, whole, json.dumps(form))
        return form

    def _shown(self, table: ServedTable, answer: Told) -> Plain:
        return {**write_told(answer), "unit": table.session.unit}


def plain(value: Any) -> Any:
    """A value as JSON has it: infinity and what is no number are null."""
    return None if isinstance(value, float) and value - value != 0 else value


async def _slept(seconds: float) -> None:
    sleeping: Awaitable[None] = asyncio.sleep(seconds)
    await sleeping
