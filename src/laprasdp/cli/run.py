"""`lapras run`: statements in, answers out, one after another; what is refused costs nothing."""

from __future__ import annotations

import csv
import io
import json
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal, TextIO

from laprasdp.answer import Answer, GroupedAnswer
from laprasdp.cli.show import budget_line, price, progress, records, shorten
from laprasdp.config import read_config
from laprasdp.errors import ConfigError, LaprasError, QuerySyntaxError
from laprasdp.session import Session
from laprasdp.sql.split import Fragment, split
from laprasdp.windows import WindowedSession

Format = Literal["json", "csv", "text"]
Post = Literal["nonnegative", "rounded", "consistent"]
Write = Callable[[int, list[Answer], list[float] | None], None]
FIELDS = (
    *("line", "query", "group", "value", "nonnegative", "std"),
    *("low", "high", "source", "charge", "remaining"),
)


def run(file: str, config: Path, form: Format, level: float, post: Post | None = None) -> int:
    """Answer the statements of `file`; the exit code is 1 if any was refused."""
    settings = read_config(config)
    with _opened(file) as lines:
        with progress("opening the table"):
            session = settings.open()
        return _Stream(session, _writer(form, level, session, post), file, post).answer(lines)


class _Stream:
    """One pass over a stream of statements."""

    def __init__(
        self, session: Session | WindowedSession, write: Write, file: str, post: Post | None
    ) -> None:
        self._session, self._write, self._file, self._post = session, write, file, post
        self._answered = self._refused = 0

    def answer(self, lines: TextIO) -> int:
        """Answer each statement as soon as it is complete; whatever the end, say what was spent."""
        bar = progress(f"answering {self._file}", _count(self._file), shown=not sys.stdout.isatty())
        try:
            with _Patience() as patience, bar as step:
                for fragment in split(lines):
                    with patience.hold():
                        self._one(fragment)
                    step()
        except UnicodeDecodeError:
            raise ConfigError(f"{self._file} is not UTF-8 text") from None
        finally:
            counts = f"{self._answered} answered, {self._refused} refused"
            _say(f"{counts}; {budget_line(self._session)}")
        return 1 if self._refused else 0

    def _one(self, fragment: Fragment) -> None:
        try:
            if fragment.error is not None:
                raise QuerySyntaxError(fragment.error)
            answer = self._session.ask(fragment.text)
        except LaprasError as refusal:
            self._refused += 1
            _say(f"line {fragment.line}: {' '.join(str(refusal).split())}")
            return
        self._answered += 1
        answers = list(answer) if isinstance(answer, GroupedAnswer) else [answer]
        self._write(fragment.line, answers, None if self._post is None else adjusted(answer, self._post))
        sys.stdout.flush()


def adjusted(answer: Answer | GroupedAnswer, post: Post) -> list[float]:
    """
    One value an answer, to stand beside the unbiased one.

    Notes
    -----
    **Privacy.**  A function of released numbers: it costs nothing.
    """
    if isinstance(answer, GroupedAnswer) and post == "consistent":
        return list(answer.consistent())
    answers = list(answer) if isinstance(answer, GroupedAnswer) else [answer]
    return [one.rounded if post == "rounded" else one.nonnegative for one in answers]


class _Patience:
    """
    Ctrl-C waits until the statement at work is answered and printed; a second one does not wait.

    So what was charged is shown, and what is shown was charged.
    """

    def __init__(self) -> None:
        self._holding = self._asked = False
        self._before: Any = None

    def __enter__(self) -> _Patience:
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


def _say(line: str) -> None:
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _writer(form: Format, level: float, session: Session | WindowedSession, post: Post | None) -> Write:
    return {"json": _json_lines, "csv": _csv, "text": _text}[form](level, session, post)


def _rows(line: int, answers: list[Answer], values: list[float] | None, level: float) -> Iterator[Any]:
    for place, answer in enumerate(answers):
        row = {"line": line, **answer.row(level)}
        yield row if values is None else row | {"post": values[place]}


def _json_lines(level: float, session: Session | WindowedSession, post: Post | None) -> Write:
    def write(line: int, answers: list[Answer], values: list[float] | None) -> None:
        for row in _rows(line, answers, values, level):
            print(json.dumps(row))

    return write


def _csv(level: float, session: Session | WindowedSession, post: Post | None) -> Write:
    fields = FIELDS if post is None else (*FIELDS, "post")
    made = csv.DictWriter(sys.stdout, fields, extrasaction="ignore", lineterminator="\n")
    made.writeheader()
    sys.stdout.flush()

    def write(line: int, answers: list[Answer], values: list[float] | None) -> None:
        for row in _rows(line, answers, values, level):
            if "group" in row:
                row["group"] = json.dumps(row["group"], ensure_ascii=False)
            made.writerow(row)

    return write


def _text(level: float, session: Session | WindowedSession, post: Post | None) -> Write:
    column = "" if post is None else "  {:>11}"
    layout = "{:>4}  {:>11}  {:>8}  {:>11} … {:<11}" + column + " {:<9} {:>9}  {}"
    width = 74 if post is None else 87
    limit = shutil.get_terminal_size().columns - width if sys.stdout.isatty() else None
    charge, added = f"charge {session.unit}", [] if post is None else [post]
    header = layout.format("line", "answer", "std", "low", "high", *added, "source", charge, "statement")
    print(header, flush=True)

    def write(line: int, answers: list[Answer], values: list[float] | None) -> None:
        if answers[0].group is not None:
            print(f"{line:>4}  {shorten(answers[0].query, limit and limit + width - 6)}")
        for place, answer in enumerate(answers):
            what = answer.query if answer.group is None else _group(answer.group)
            numbers = [records(number) for number in (answer.value, answer.std, *answer.interval(level))]
            if values is not None:
                numbers.append(f"{values[place]:,}" if post == "rounded" else records(values[place]))
            shown = shorten(what, limit and max(limit, 12))
            print(layout.format(line, *numbers, answer.source, price(answer.charge), shown).rstrip())

    return write


def _group(group: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in group.items())
