"""`lapras ledger`: verify and export what is kept; the table is not opened."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from laprasdp.cli.show import say
from laprasdp.config import read_config
from laprasdp.errors import LedgerError
from laprasdp.ledger.chain import first_digest
from laprasdp.ledger.sql import Head, SQLLedger
from laprasdp.ledger.verify import Finding
from laprasdp.ledger.verify import verify as verified


def verify(config: Path, noted: str | None, *, as_json: bool) -> int:
    """Print every finding; the exit code is 1 if there is any."""
    ledger = read_config(config).kept().existing()
    head, found = _head(ledger), verified(ledger)  # what comes after this head is verified, too
    if noted is not None and noted not in _digests(ledger):
        what = f"no entry has the digest {noted}: what came after it is lost, or this is an older copy"
        found.insert(0, Finding(None, what))
    name, dataset = ledger.database.name, ledger.name
    if as_json:
        row = {"ledger": name, "dataset": dataset, "sound": not found}
        row |= {"entries": head and head.entries, "head": head and head.digest}
        findings = [{"position": finding.position, "what": finding.what} for finding in found]
        print(json.dumps(row | {"findings": findings}))
    elif found or head is None:
        print("\n".join(map(str, found)))
    else:
        print(f"{name}, dataset {dataset}: {head.entries} entries, all sound.")
        print(f"Head, to write down elsewhere: {head.digest}")
    return 1 if found else 0


def export(config: Path) -> int:
    """Print the ledger as JSON lines."""
    ledger = read_config(config).kept().existing()
    count, line = -1, ""
    for count, line in enumerate(ledger.lines()):  # noqa: B007 (the last one is used)
        print(line)
    digest = json.loads(line).get("digest", first_digest(ledger.dataset.text))
    say(f"{count} entries; head {digest}")
    return 0


def _head(ledger: SQLLedger) -> Head | None:
    with suppress(LedgerError):
        return ledger.head
    return None


def _digests(ledger: SQLLedger) -> set[str]:
    with suppress(LedgerError):
        header, *lines = map(json.loads, ledger.lines())
        return {first_digest(header["settings"]), *(line["digest"] for line in lines)}
    return set()
