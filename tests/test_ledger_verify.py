"""What verification finds in a ledger that was changed, what a session does with it, and what guards it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from postgres import Server
from small_ledger import SHARED, STATEMENTS, five_statements, meddle, opened, past_the_guards

import laprasdp as lp
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.rows import Head
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.record.entries import Refusal, Reply, Stamp

path = pytest.fixture(five_statements)


def found(path: Path, noted: Head | None = None) -> list[str]:
    return [str(finding) for finding in verify(SQLLedger(path), noted=noted)]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "UPDATE lapras_entry SET body = replace(body, '\"ada\"', '\"eve\"') WHERE position = 3",
            ["entry 3: it does not follow from the entry before", "entry 3: the columns beside it"],
        ),
        (
            "UPDATE lapras_entry SET digest = lower(hex(zeroblob(32))) WHERE position = 2",
            ["entry 2: it does not follow", "entry 3: it does not follow"],
        ),
        (
            "UPDATE lapras_entry SET position = position - 4 WHERE position IN (1, 3)",
            ["entry 1: it does not follow", "entry 2: it does not follow"],
        ),
        (
            "DELETE FROM lapras_entry WHERE position = 2",
            ["entry 3: the entries before it, from 2 on, are lost", "entry 3: it does not follow"],
        ),
        ("DELETE FROM lapras_entry WHERE position > 5", ["the head is at 8 entries, but there are 6"]),
        ("DELETE FROM lapras_entry", ["the head is at 8 entries, but there are 0"]),
        (
            "UPDATE lapras_head SET entries = 7",
            ["the head has another digest than the 7 entries", "there are 8 entries, but the head is at 7"],
        ),
        ("UPDATE lapras_entry SET price = '1' WHERE position = 0", ["entry 0: the columns beside it"]),
        (
            "UPDATE lapras_entry SET body = 'x' WHERE position = 1",
            ["entry 1: it does not follow", "entry 1: the text is no entry", "entry 2: entry 0 was made for"],
        ),
    ],
)
def test_verification_says_which_entry_and_what(path: Path, statement: str, says: list[str]) -> None:
    turn = "UPDATE lapras_entry SET position = -position WHERE position < 0"
    meddle(path, statement, turn)
    findings = found(path)
    for each in says:
        assert any(finding.startswith(each) for finding in findings), findings
    if "price" not in statement:  # a column beside the text decides nothing
        with pytest.raises(lp.LedgerError, match=r"changed or lost.*: verify it"):
            opened(path, horizon=3)


def test_an_older_copy_is_noticed_by_a_head_that_was_noted(path: Path) -> None:
    noted = SQLLedger(path).head
    rows = SQLLedger(path).everything()[1]
    meddle(
        path,
        "DELETE FROM lapras_entry WHERE position > 4",
        f"UPDATE lapras_head SET entries = 5, digest = '{rows[4].digest}'",
    )
    assert found(path) == []
    assert found(path, noted) == ["the noted head is at 8 entries, but there are 5"]
    assert found(path, Head(3, rows[2].digest)) == []
    assert found(path, Head(3, rows[1].digest)) == ["the noted head has another digest than the 3 entries"]


STAMP = Stamp(datetime(2024, 2, 29, tzinfo=UTC))
Edit = Callable[[dict[str, Any]], None]


def forge(path: Path, position: int, edit: Edit) -> None:
    """Change an entry and chain everything again, as somebody would who knows the format."""
    ledger = SQLLedger(path)
    digest = first_digest(ledger.dataset.text)
    with past_the_guards(path) as connection:
        for row in ledger.everything()[1]:
            form = json.loads(row.body)
            if row.position == position:
                edit(form)
            body = json.dumps(form, sort_keys=True, separators=(",", ":"))
            digest = next_digest(digest, body)
            connection.execute(
                "UPDATE lapras_entry SET body = ?, digest = ? WHERE position = ?",
                (body, digest, row.position),
            )
        connection.execute("UPDATE lapras_head SET digest = ?", (digest,))


@pytest.mark.parametrize(
    ("position", "edit", "says"),
    [
        (
            0,
            lambda form: form["charge"]["amounts"].update(weights=[1, 0]),
            "its charge is 1 units, but its meas",
        ),
        (0, lambda form: form["charge"].update(draws=0), "its charge is"),
        (0, lambda form: form["measurement"].update(multiple=2**40), "but its measurement costs"),
        (0, lambda form: form["noisy"].append(1), "it has 2 noisy values for 1 rows"),
        (1, lambda form: form.update(answers=[None]), "it has no answer to"),
        (1, lambda form: form.update(answers=[]), "it has 0 answers to 1 queries"),
        (4, lambda form: form["answers"][0].update(value=0.5), "it shows another answer"),
        (4, lambda form: form.update(measured=True), "it says that a release was made for it"),
        (5, lambda form: form.update(opening=True), "it says that a release was made for it"),
        (1, lambda form: form.update(measured=False), "entry 0 was made for a statement that has no reply"),
        (
            4,
            lambda form: form.update(
                kind="raise", old={"epsilon": 2, "delta": 1e-6}, new={"epsilon": 3, "delta": 1e-6}
            ),
            "it raises ε = 2",
        ),
        (
            4,
            lambda form: form.update(
                kind="raise", old={"epsilon": 1, "delta": 1e-6}, new={"epsilon": 0.5, "delta": 1e-6}
            ),
            "a budget is only ever raised",
        ),
    ],
)
def test_verification_does_not_trust_the_chain(path: Path, position: int, edit: Edit, says: str) -> None:
    forge(path, position, edit)
    findings = found(path)
    assert any(says in finding for finding in findings), findings
    assert not any("follow" in finding for finding in findings)


def test_verification_adds_up_the_budget(path: Path) -> None:
    ledger = SQLLedger(path)
    kept = ledger.since(0)
    with ledger.transaction(kept[0].stamp) as transaction:
        transaction.append(kept[0].entry)
        reply = kept[1].entry
        assert isinstance(reply, Reply)
        transaction.append(reply)
    assert found(path)[0] == "entry 8: the budget has no room for this: μ² would be passed"
    with pytest.raises(lp.LedgerError, match="entry 8 of the ledger: the budget has no room"):
        opened(path, horizon=3)


@pytest.mark.parametrize(
    ("position", "edit", "says"),
    [
        (0, lambda form: form["charge"]["amounts"].update(weights=[0, 0]), "its charge is 0 units"),
        (0, lambda form: form["measurement"].update(multiple=0), "it measures 0 times its queries"),
        (0, lambda form: form["measurement"].update(law="none"), "'none' is no law"),
        (1, lambda form: form["answers"][0].update(variance=0.0), "no answer has the variance 0"),
        (1, lambda form: form["answers"][0].update(value=float("nan")), "the text is no entry"),
        (1, lambda form: form["answers"][0].update(law="none"), "'none' is no law"),
        (1, lambda form: form.update(answers=[]), "0 answers to 1 queries"),
        (1, lambda form: form.update(position=7), "says that it is 7"),
    ],
)
def test_opening_checks_what_it_learns(path: Path, position: int, edit: Edit, says: str) -> None:
    forge(path, position, edit)
    with pytest.raises(lp.LedgerError, match=f"entry.*{says}"):
        opened(path, horizon=3)
    assert found(path) != []


def test_a_head_that_was_set_back_is_one_line(path: Path) -> None:
    ledger = SQLLedger(path)
    rows, session = ledger.everything()[1], opened(SQLLedger(path), horizon=3)
    meddle(path, f"UPDATE lapras_head SET entries = 5, digest = '{rows[4].digest}'")
    with pytest.raises(lp.LedgerError, match=r"entries beyond its end.*verify it and restore a backup"):
        opened(path, horizon=3)
    with pytest.raises(lp.LedgerError, match="entries beyond its end"), ledger.transaction(STAMP) as writing:
        writing.append(Refusal((), "none"))
    with pytest.raises(lp.LedgerError, match="had 8"):
        session.ask(STATEMENTS[0])


def test_bits_that_flip_in_the_file_are_noticed(path: Path) -> None:
    SQLLedger(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    place = whole.index(b'"variance":') + 12
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert any("does not follow from the entry before" in finding for finding in found(path))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(lp.LedgerError, match="damaged"):
        opened(path, horizon=3)


def test_settings_are_part_of_the_chain(path: Path) -> None:
    meddle(path, "UPDATE lapras_dataset SET settings = replace(settings, '\"horizon\":3', '\"horizon\":9')")
    with pytest.raises(lp.LedgerError, match="the settings of main were changed after it was begun"):
        opened(path, horizon=9)


def test_a_ledger_that_lost_what_a_session_has_seen_stops_it(path: Path) -> None:
    session = opened(path, horizon=3)
    rows = SQLLedger(path).everything()[1]
    meddle(
        path,
        "DELETE FROM lapras_entry WHERE position > 4",
        f"UPDATE lapras_head SET entries = 5, digest = '{rows[4].digest}'",
    )
    with pytest.raises(lp.LedgerError, match="it has 5 entries, but had 8"):
        session.ask(STATEMENTS[4])


def test_guards_that_are_gone_are_noticed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER lapras_entry_delete")
    assert found(path) == ["nothing guards lapras_entry against changes any more"]


def test_entries_are_only_ever_added(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for act in (
            "UPDATE lapras_entry SET body = ''",
            "DELETE FROM lapras_entry",
            "DELETE FROM lapras_dataset",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(act)


@SHARED
def test_entries_are_only_ever_added_in_postgresql(postgres: Server) -> None:
    ledger = SQLLedger(postgres.url, dataset="kept")
    opened(ledger).ask(STATEMENTS[0])
    for act in (
        "UPDATE lapras_entry SET body = ''",
        "DELETE FROM lapras_entry",
        "TRUNCATE lapras_entry CASCADE",
    ):
        with (
            pytest.raises(lp.LedgerError, match="what a ledger keeps is never changed"),
            ledger.database.transaction(write=True) as connection,
        ):
            connection.exec_driver_sql(act)
    assert verify(ledger) == []
