"""A study of predictions: a stream of real statements, the log before it, and streams held out of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from laprasdp import Domain
from laprasdp.predict.log import Log
from laprasdp.predict.template import Key

TABLE = "t"
HELD_OUT = 2


@dataclass(frozen=True, eq=False)
class Episode:
    """
    A stream, and the log that it may be predicted from.

    Attributes
    ----------
    log : Log
    stream : tuple of Key
    """

    log: Log
    stream: tuple[Key, ...]


@dataclass(frozen=True, eq=False)
class Study:
    """
    One stream that is tested.

    Attributes
    ----------
    user : str
        Whose it is.
    table : DataFrame
        Of which the stream asks.
    tested : Episode
    held_out : tuple of Episode
        Streams and logs from the lines of `tested.log` alone; settings are chosen on them.
    """

    user: str
    table: pd.DataFrame
    tested: Episode
    held_out: tuple[Episode, ...]


def leave_out(
    user: str,
    table: pd.DataFrame,
    domain: Domain,
    streams: Mapping[str, Sequence[Key]],
    horizon: int,
    trained: Sequence[str],
) -> Study:
    """
    The first `horizon` statements of one user, and all statements of the users trained on, each a session.

    `HELD_OUT` of these, evenly spread among those that asked `horizon` statements or more, are foretold in
    turn from the others.
    """

    def episode(name: str) -> Episode:
        others = {other: streams[other] for other in trained if other != name}
        return Episode(log_of(domain, others), tuple(streams[name][:horizon]))

    long = [name for name in trained if len(streams[name]) >= horizon] or trained
    places = (np.arange(HELD_OUT) + 0.5) * len(long) / HELD_OUT
    inner = dict.fromkeys(long[place] for place in places.astype(int))
    return Study(user, table, episode(user), tuple(episode(name) for name in inner))


def log_of(domain: Domain, streams: Mapping[str, Sequence[Key]]) -> Log:
    """One stream after another, as if they had come one after the other; each is a session."""
    numbers: dict[Key, int] = {}
    ids = [numbers.setdefault(key, len(numbers)) for own in streams.values() for key in own]
    inside = np.repeat(np.arange(len(streams)), [len(own) for own in streams.values()])
    return Log(domain, TABLE, tuple(numbers), np.array(ids, dtype=np.int32), None, inside.astype(np.int32))
