"""The stages of a session's life, and what moves it from one to another; nothing else sets them.

In each row a stage, in each column an event; a dash is a move that nothing makes.

```text
              LEARN        KEEP    RENEW   FOLLOW  OVERTAKEN  QUIET  DOUBT        CLOSE
ALONE         TORN         ALONE   -       ALONE   -          ALONE  TORN         CLOSED
SHARED        TORN_SHARED  SHARED  -       SHARED  -          ALONE  TORN_SHARED  CLOSED
TORN          TORN         ALONE   ALONE   ALONE   SHARED     -      TORN         CLOSED
TORN_SHARED   TORN_SHARED  SHARED  SHARED  SHARED  SHARED     -      TORN_SHARED  CLOSED
CLOSED        -            -       -       -       -          -      CLOSED       CLOSED
```
"""

from __future__ import annotations

from enum import Enum

from laprasdp.errors import LedgerError


class Stage(Enum):
    """How a session's state stands to its ledger."""

    ALONE = "what it has learned is kept, and nobody else has written lately"
    SHARED = "the same, but others have written: it learns of them before a transaction, too"
    TORN = "it may have learned what is not kept, or a part of an entry"
    TORN_SHARED = "the same, and others have written"
    CLOSED = "it is asked nothing more"


class Event(Enum):
    """What happens to a session's state."""

    LEARN = "an entry begins to be learned"
    KEEP = "what was appended is kept"
    RENEW = "the state is made anew, before the first entry"
    FOLLOW = "it is at the end of the ledger"
    OVERTAKEN = "it is at the end of the ledger, which others had moved"
    QUIET = "it was asked ahead, and nobody had written"
    DOUBT = "what was kept last may be taken back"
    CLOSE = "the session is closed"


_ALONE, _SHARED, _TORN, _TORN_SHARED, _CLOSED = Stage

MOVES: dict[tuple[Stage, Event], Stage] = {
    (_ALONE, Event.LEARN): _TORN,
    (_ALONE, Event.KEEP): _ALONE,
    (_ALONE, Event.FOLLOW): _ALONE,
    (_ALONE, Event.QUIET): _ALONE,
    (_ALONE, Event.DOUBT): _TORN,
    (_ALONE, Event.CLOSE): _CLOSED,
    (_SHARED, Event.LEARN): _TORN_SHARED,
    (_SHARED, Event.KEEP): _SHARED,
    (_SHARED, Event.FOLLOW): _SHARED,
    (_SHARED, Event.QUIET): _ALONE,
    (_SHARED, Event.DOUBT): _TORN_SHARED,
    (_SHARED, Event.CLOSE): _CLOSED,
    (_TORN, Event.LEARN): _TORN,
    (_TORN, Event.KEEP): _ALONE,
    (_TORN, Event.RENEW): _ALONE,
    (_TORN, Event.FOLLOW): _ALONE,
    (_TORN, Event.OVERTAKEN): _SHARED,
    (_TORN, Event.DOUBT): _TORN,
    (_TORN, Event.CLOSE): _CLOSED,
    (_TORN_SHARED, Event.LEARN): _TORN_SHARED,
    (_TORN_SHARED, Event.KEEP): _SHARED,
    (_TORN_SHARED, Event.RENEW): _SHARED,
    (_TORN_SHARED, Event.FOLLOW): _SHARED,
    (_TORN_SHARED, Event.OVERTAKEN): _SHARED,
    (_TORN_SHARED, Event.DOUBT): _TORN_SHARED,
    (_TORN_SHARED, Event.CLOSE): _CLOSED,
    (_CLOSED, Event.DOUBT): _CLOSED,
    (_CLOSED, Event.CLOSE): _CLOSED,
}


class Life:
    """The stage of one session."""

    def __init__(self) -> None:
        self._stage = Stage.ALONE

    @property
    def stage(self) -> Stage:
        """Where it is now."""
        return self._stage

    @property
    def torn(self) -> bool:
        """Whether the state has to be made anew from the ledger."""
        return self._stage in (Stage.TORN, Stage.TORN_SHARED)

    @property
    def shared(self) -> bool:
        """Whether others wrote lately."""
        return self._stage in (Stage.SHARED, Stage.TORN_SHARED)

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._stage is Stage.CLOSED

    def check_open(self) -> None:
        """
        Whether the session may be asked.

        Raises
        ------
        LedgerError
            It is closed.
        """
        if self.closed:
            raise LedgerError("the session is closed: open another one to go on")

    def move(self, event: Event) -> None:
        """
        Go to the stage that follows.

        Raises
        ------
        LedgerError
            The session is closed.
        AssertionError
            Nothing makes this move.
        """
        following = MOVES.get((self._stage, event))
        if following is None:
            self.check_open()
            raise AssertionError(f"{event.name} does not happen to a session that is {self._stage.name}")
        self._stage = following
