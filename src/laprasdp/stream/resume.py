"""Snapshots: a state written beside its ledger, and read where all that it hangs on is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from laprasdp.privacy.budget import Budget
from laprasdp.record.format import canonical
from laprasdp.record.settings import Settings
from laprasdp.record.snapshot import Snapshot
from laprasdp.stream.plain import read_plain, write_plain
from laprasdp.stream.state import State

LEAST = 1_000
"""Entries that are worth a snapshot: to replay them takes longer than to write and read it."""
_SHARE, _LAST = 16, 64  # of all entries, one part in so many: while a session goes on, and when it ends


def due(state: State, kept: int, *, last: bool = False) -> bool:
    """Whether a snapshot of the state is worth its writing, where the one before has so many entries."""
    new = state.position - kept
    if last:
        return new * _LAST >= max(state.position, LEAST * 8)
    return new >= LEAST and new * _SHARE >= state.position


def key_of(settings: Settings) -> str:
    """What a state hangs on beside the entries and its caps: settings, and every line of this package."""
    told = canonical({"numpy": np.__version__, "settings": settings, "source": _source()})
    return hashlib.sha256(told.encode()).hexdigest()


def take(state: State, key: str) -> Snapshot:
    """
    The snapshot of a state.

    Raises
    ------
    TypeError
        The state has parts that are not written.
    """
    learned = write_plain(state.learned(), state.policy.settled(), state.policy.setting.domain)
    return Snapshot(state.position, key, sums_of(state), learned)


def restored(state: State, snapshot: Snapshot) -> State:
    """
    The state of a snapshot, with the caps of `state`, which is another one of the same settings.

    Raises
    ------
    LookupError, TypeError, ValueError, LaprasError
        It is no such state, or its sums are other ones than the snapshot says.

    Notes
    -----
    **Privacy.**  Assumes that `take` wrote the snapshot after these entries, with the same key: the key has
    the source of everything that learns.  Guarantees nothing where somebody else wrote it: `verify` compares
    the sums with those of the entries (docs/proofs/session.md).
    """

    def read(of: State) -> Mapping[str, Any]:
        found: Mapping[str, Any] = read_plain(snapshot.state, of.policy.settled(), of.policy.setting.domain)
        return found

    found = state.resumed(Budget(**json.loads(snapshot.sums)["budget"]), read)
    if (found.position, sums_of(found)) != (snapshot.entries, snapshot.sums):
        raise ValueError("it is another state than it says")
    return found


def sums_of(state: State) -> str:
    """Budget and what is spent of it, as canonical JSON."""
    return canonical(state.filter.sums)


@cache
def _source() -> str:
    """SHA-256 of this package's source."""
    root, digest = Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()
