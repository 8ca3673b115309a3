"""`lapras ledger`: verify and export what is kept; the table is not opened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from laprasdp.cli.show import say
from laprasdp.config import Config, read_config
from laprasdp.config.begun import PeriodName, existing
from laprasdp.errors import LedgerError
from laprasdp.ledger.chain import first_digest
from laprasdp.ledger.rows import Head
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import Finding, damage
from laprasdp.ledger.verify import verify as verified


@dataclass(frozen=True)
class _Verified:
    """One ledger, its head before it was verified, and what was found."""

    dataset: str
    head: Head | None
    found: list[Finding]

    def row(self) -> dict[str, Any]:
        findings = [{"position": finding.position, "what": finding.what} for finding in self.found]
        head = {"entries": self.head and self.head.entries, "head": self.head and self.head.digest}
        return {"dataset": self.dataset, "sound": not self.found, **head, "findings": findings}


def verify(path: Path, noted: Sequence[str], period: str | None, *, as_json: bool) -> int:
    """Print every finding; the exit code is 1 if there is any."""
    config = read_config(path)
    if not noted and (untouched := _untouched(config)):
        row = {"ledger": untouched, "sound": True, "entries": 0, "findings": []}
        print(json.dumps(row) if as_json else f"{untouched}: nothing was asked yet.")
        return 0
    ledgers = existing(config, period)
    database = next(iter(ledgers.values())).database
    known: set[str] = set()
    each: dict[PeriodName, _Verified] = {}
    for name, ledger in ledgers.items():
        head = _head(ledger)  # what comes after this head is verified, too
        each[name] = _Verified(ledger.name, head, _found(ledger))
        known |= _digests(ledger) if noted else set()
    lost = "no entry has the digest {}: what came after it is lost, or this is an older copy"
    found = [Finding(None, lost.format(digest)) for digest in noted if digest not in known]
    found += damage(database)
    if None in each:
        whole = replace(each[None], found=found + each[None].found)
        row = {"ledger": database.name, **whole.row()}
        lines = _lines(database.name, whole)
    else:
        sound = not found and not any(one.found for one in each.values())
        findings = [{"position": None, "what": finding.what} for finding in found]
        periods = [{"period": name, **one.row()} for name, one in each.items()]
        row = {"ledger": database.name, "sound": sound, "findings": findings, "periods": periods}
        lines = [*map(str, found), *_lines_of_periods(database.name, each)]
    print(json.dumps(row) if as_json else "\n".join(lines))
    return 0 if row["sound"] else 1


def _untouched(config: Config) -> str:
    """Name of a ledger that is whole and where nothing was begun; else empty."""
    database, names = None, [""]
    with suppress(LedgerError):
        shelf = config.kept().existing_shelf()
        database, names = shelf.database, shelf.names()
    return "" if database is None or names or damage(database) else database.name


def export(path: Path, period: str | None) -> int:
    """Print the ledger as JSON lines; with windows, that of each period, one after another."""
    for ledger in existing(read_config(path), period).values():
        count, line = -1, ""
        for count, line in enumerate(ledger.lines()):  # noqa: B007 (the last one is used)
            print(line)
        digest = json.loads(line).get("digest", first_digest(ledger.dataset.text))
        say(f"{ledger.name}: {count} entries; head {digest}")
    return 0


def _lines(where: str, one: _Verified) -> list[str]:
    if one.found or one.head is None:
        return list(map(str, one.found))
    found = f"{one.head.entries} entries, all sound" if one.head.entries else "nothing was asked yet"
    return [
        f"{where}, dataset {one.dataset}: {found}.",
        f"Head, to write down elsewhere: {one.head.digest}",
    ]


def _lines_of_periods(where: str, each: Mapping[PeriodName, _Verified]) -> list[str]:
    lines = [f"period {name}: {finding}" for name, one in each.items() for finding in one.found]
    sound = {name: one.head for name, one in each.items() if not one.found and one.head}
    if sound:
        entries = sum(head.entries for head in sound.values())
        periods = "1 period" if len(sound) == 1 else f"{len(sound)} periods"
        lines += [f"{where}: {entries} entries in {periods}, all sound.", "Heads, to write down elsewhere:"]
        lines += [f"{name}  {head.entries:>6} entries  {head.digest}" for name, head in sound.items()]
    return lines


def _found(ledger: SQLLedger) -> list[Finding]:
    try:
        return verified(ledger, database=False)
    except LedgerError as error:
        return [Finding(None, str(error))]


def _head(ledger: SQLLedger) -> Head | None:
    with suppress(LedgerError):
        return ledger.head
    return None


def _digests(ledger: SQLLedger) -> set[str]:
    with suppress(LedgerError):
        header, *lines = map(json.loads, ledger.lines())
        return {first_digest(header["settings"]), *(line["digest"] for line in lines)}
    return set()
