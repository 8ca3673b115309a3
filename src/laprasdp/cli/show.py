"""How numbers, tables and progress look, on a terminal and elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from laprasdp.data.patience import watcher

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from laprasdp.stream.asking import Account, Asking
    from laprasdp.stream.spending import Spending

PLAIN_WIDTH = 140  # columns of a table that goes to a file or a pipe


def say(line: str) -> None:
    """One line on stderr, if somebody listens."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def refusal(code: str, message: str, line: int | None = None, *, as_json: bool) -> str:
    """Why something was refused or failed, in one line: for people, or as JSON with the error's `code`."""
    message = " ".join(message.split())
    if as_json:
        place = {} if line is None else {"line": line}
        return json.dumps({**place, "code": code, "message": message})
    return f"lapras: {message}" if line is None else f"line {line}: {message}"


def console() -> Console:
    """Standard output: colours on a terminal only, and not under NO_COLOR."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(width=PLAIN_WIDTH, highlight=False, no_color=True, force_terminal=False)


def table(*headers: str) -> Table:
    """A table without frame: ">" before a header is for numbers, "<" for text that never wraps."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        made.add_column(
            header.lstrip("<>"),
            justify="right" if header.startswith(">") else "left",
            no_wrap=header.startswith((">", "<")),
        )
    return made


def records(value: float | None) -> str:
    """A number of records."""
    if value is None:
        return "refused"
    text = f"{value:,.1f}"
    return "0.0" if text == "-0.0" else text


def price(value: float) -> str:
    """A charge; most are free."""
    return "free" if value == 0 else f"{value:.3g}"


def shorten(text: str, limit: int | None) -> str:
    """One line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if limit is None or len(line) <= limit else line[: max(limit - 1, 0)] + "…"


def bar(share: float, size: int = 40) -> str:
    """A bar that is filled up to `share`."""
    filled = round(min(max(share, 0.0), 1.0) * size)
    return "█" * filled + "░" * (size - filled)


def what_is_left(session: Asking) -> str:
    """What is spent of the budget, and what is left; with windows, of the period that has the least."""
    from laprasdp.stream.asking import tightest

    accounts = session.accounts
    least = tightest(accounts)
    where = f" in the period from {least.period}, the least of {len(accounts)}" if least.period else ""
    return budget_line(least) + where


def budget_line(of: Account | Spending) -> str:
    """What is spent of a budget, and what is left."""
    spent, remaining = of.spent, of.remaining
    total = spent + remaining
    line = f"spent ε = {of.epsilon_spent:.4g} of {of.budget.epsilon:g}"
    if of.unit != "ε":
        line += f" ({of.unit} = {spent:.4g} of {total:.4g})"
    left = remaining / total if total else 0.0
    return f"{line} at δ = {of.budget.delta:g}; {left:.0%} of the budget remains"


@contextmanager
def opening() -> Iterator[None]:
    """Which share of a table is read, where its engine says so; on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("opening the table"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)

        def told(share: float | None) -> None:
            if share is not None:
                bars.update(task, total=1.0, completed=share)

        token = watcher.set(told)
        try:
            yield
        finally:
            watcher.reset(token)


@contextmanager
def progress(text: str, total: int | None = None, *, shown: bool = True) -> Iterator[Callable[[], None]]:
    """
    A progress bar on stderr, if that is a terminal.

    Parameters
    ----------
    text : str
        What is going on.
    total : int, optional
        Steps to come; without it the bar only says that something goes on.
    shown : bool
        False shows nothing.

    Yields
    ------
    callable
        To be called after each step.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(text, total=total)
        yield lambda: bars.advance(task)
