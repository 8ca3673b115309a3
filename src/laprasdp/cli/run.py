"""`lapras run`: statements in, answers out, one after another; what is refused costs nothing."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from laprasdp.cli.ask import at_std
from laprasdp.cli.printing import Format, Post, Write, fitting, members, writer
from laprasdp.cli.show import opening, progress, refusal, say, what_is_left
from laprasdp.config import read_config
from laprasdp.errors import ConfigError, LaprasError, QuerySyntaxError
from laprasdp.sql.statements import Fragment, split
from laprasdp.stream.asking import Asking
from laprasdp.stream.resultset import ResultSet


def run(
    file: str, config: Path, form: Format, level: float, post: Post | None = None, analyst: str | None = None
) -> int:
    """Answer the statements of `file`; the exit code is 1 if any was refused."""
    settings, post = fitting(read_config(config), post)
    with _opened(file) as lines:
        with opening():
            session = settings.open()
        session.admit(analyst)
        if settings.ledger is None and not settings.public:
            say(f"lapras: {config} names no [ledger]: what is spent is forgotten when this process ends")
        write = writer(form, level, session, post)
        return _Stream(session, write, file, analyst, as_json=form == "json").answer(lines)


class _Stream:
    """One pass over a stream of statements."""

    def __init__(
        self,
        session: Asking,
        write: Write,
        file: str,
        analyst: str | None,
        *,
        as_json: bool,
    ) -> None:
        self._session, self._write, self._file, self._analyst = session, write, file, analyst
        self._json = as_json
        self._answered = self._again = self._refused = 0

    def answer(self, lines: TextIO) -> int:
        """Answer each statement as soon as it is complete; whatever the end, say what was spent."""
        bar = progress(f"answering {self._file}", _count(self._file), shown=not sys.stdout.isatty())
        try:
            with Patience() as patience, bar as step:
                for fragment in split(lines):
                    with patience.hold():
                        self._one(fragment)
                    step()
        except UnicodeDecodeError:
            raise ConfigError(f"{self._file} is not UTF-8 text") from None
        finally:
            counts = f"{self._answered} answered, {self._refused} refused"
            again = f" ({self._again} answered before, for free)" if self._again else ""
            say(f"{counts}{again}; {what_is_left(self._session)}")
        return 1 if self._refused else 0

    def _one(self, fragment: Fragment) -> None:
        try:
            if fragment.error is not None:
                raise QuerySyntaxError(fragment.error)
            text, std = at_std(fragment.text)
            answer = self._session.ask(text, analyst=self._analyst, max_std=std)
        except LaprasError as error:
            self._refused += 1
            say(refusal(error.code, str(error), fragment.line, as_json=self._json))
            return
        self._answered += 1
        sources = [answer] if isinstance(answer, ResultSet) else members(answer)
        self._again += all(one.source == "replay" for one in sources)
        self._write(fragment.line, answer)
        sys.stdout.flush()


class Patience:
    """
    Ctrl-C waits until the statement at work is answered and printed; a second one does not wait.

    So what was charged is shown, and what is shown was charged.
    """

    def __init__(self) -> None:
        self._holding = self._asked = False
        self._before: Any = None

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """While the block runs, the first Ctrl-C is kept for its end."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._asked:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._holding or self._asked:
            raise KeyboardInterrupt
        self._asked = True


def _opened(file: str) -> AbstractContextManager[TextIO]:
    if file != "-":
        try:
            return open(file, encoding="utf-8-sig")
        except ValueError:
            raise ConfigError(f"{file!r} is no name of a file") from None
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8")
    return nullcontext(sys.stdin)


def _count(file: str) -> int | None:
    """How many statements a file has, for the progress bar; unknown for a pipe."""
    if not sys.stderr.isatty() or not Path(file).is_file():
        return None
    with open(file, encoding="utf-8", errors="replace") as lines:
        return sum(1 for _ in split(lines))
