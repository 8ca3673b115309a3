"""A ledger's address shows nothing secret, and what a server refuses is one line with advice."""

from __future__ import annotations

import itertools
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from command import SMALL, invoke, lapras, write_small
from hypothesis import example, given
from hypothesis import strategies as st
from postgres import SECRET, Server
from small_ledger import STATEMENTS, opened
from sqlalchemy import create_engine, text

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.ledger.address import read_address
from laprasdp.ledger.sql import SQLLedger

HIDDEN = "hush7"
ASKED = "SELECT COUNT(*) FROM t WHERE n > 3"
AWAY = "127.0.0.1:1/x"  # nobody answers there
COMMANDS = [
    ["run", "q.sql", "--json"],
    ["ask", ASKED, "--json"],
    ["budget", "--json"],
    ["budget", "raise", "--epsilon", "2", "--yes", "--json"],
    ["ledger", "verify", "--json"],
    ["ledger", "export"],
    ["plan", "--json"],
]
ADDRESSES = [
    f"postgresql://me:{HIDDEN}@{AWAY}",
    f"postgresql://me@{AWAY}?password={HIDDEN}",
    f"postgres://me@{AWAY}?sslmode=prefer&sslpassword={HIDDEN}",
    f"postgresql://me@{AWAY}?passfile=/{HIDDEN}",
    f"postgresql://me@{AWAY}?options=-c%20x.y%3D{HIDDEN}",
    f"postgresql://me@{AWAY}?sslmode={HIDDEN}",
    f"postgresql://me@{AWAY}?{HIDDEN}=1",
    f"postgresql://me@{AWAY}?port={HIDDEN}",
    f"postgresql://me:p@{HIDDEN}@{AWAY}",
    f"postgresql://me:p@{HIDDEN}/x@{AWAY}",
    f"postgresql://me:p@{HIDDEN}?x=y@{AWAY}",
    f"postgresql://me:{HIDDEN}:x@{AWAY}",
    f"postgresql://me%3A{HIDDEN}@{AWAY}",
    f"postgresql://me:%68{HIDDEN}@{AWAY}",
    f"postgresql://me@127.0.0.1:{HIDDEN}/x",
    f"postgresql://me@127.0.0.1:70000/x?password={HIDDEN}",
    f"postgresql://me:{HIDDEN}@a b/x",
]
BESIDE = [  # no addresses that are read at all
    f"postgresql:me:{HIDDEN}@{AWAY}",
    f"host=127.0.0.1 password={HIDDEN}",
    f"://me:{HIDDEN}@{AWAY}",
    f"mysql://me:{HIDDEN}@{AWAY}",
    f"{HIDDEN}!://me@{AWAY}",
    f"postgresql://me:{HIDDEN}\0@{AWAY}",
]
numbers = itertools.count()


def declare(where: Path, url: str) -> None:
    write_small(where)
    settings = SMALL.replace("horizon = 10", 'horizon = 10\npolicy = "independent"')
    (where / "lapras.toml").write_text(f"{settings}[ledger]\nurl = {json.dumps(url)}\n")
    (where / "q.sql").write_text(ASKED)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_command_shows_what_is_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    declare(tmp_path, address)
    for command in COMMANDS:
        failed = command[0] != "plan"
        done = invoke(*command, code=int(failed))
        assert HIDDEN not in done.output + str(done.exception)
        assert len(done.stderr.splitlines()) == failed
    assert HIDDEN not in repr(read_config("lapras.toml"))


@pytest.mark.parametrize("address", [*ADDRESSES, *BESIDE])
def test_no_error_in_python_shows_what_is_secret(address: str) -> None:
    with pytest.raises(lp.LedgerError) as caught:
        opened(address)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert HIDDEN not in told
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", [f'["postgresql://me:{HIDDEN}@h/x"]', f"'sqlite:///{HIDDEN}'", f"'{HIDDEN}'"])
def test_what_is_no_address_in_the_configuration(tmp_path: Path, url: str) -> None:
    write_small(tmp_path)
    (tmp_path / "lapras.toml").write_text(f"{SMALL}[ledger]\nurl = {url}\n")
    with pytest.raises(lp.ConfigError) as caught:
        read_config(tmp_path / "lapras.toml")
    assert HIDDEN not in str(caught.value)


@given(st.text(min_size=1, max_size=12), st.sampled_from(["url", "parameter"]))
@example("p@ss/w?rd#:%", "url")
@example("a&b=c", "parameter")
def test_a_password_that_is_written_as_it_should_be_is_read_and_hidden(password: str, place: str) -> None:
    secret = f"{HIDDEN}{password}"
    if "\0" in secret or any(0xD800 <= ord(letter) < 0xE000 for letter in secret):
        return
    written = quote(secret, safe="")
    whole = f"me:{written}@h/x" if place == "url" else f"me@h/x?password={written}"
    address = read_address(f"postgresql://{whole}")
    assert address.name == "postgresql://me@h/x"
    assert secret in (address.url.password, address.url.query.get("password"))
    assert HIDDEN not in repr(address)


@given(st.text(alphabet="ab@:/?#&=%[] ", max_size=24))
def test_any_text_behind_a_scheme_is_read_or_refused(rest: str) -> None:
    try:
        name = read_address(f"postgresql://me:{HIDDEN}{rest}").name
    except lp.LedgerError as error:
        name = str(error)
    if "@" in rest:
        assert HIDDEN not in name


@pytest.fixture
def url(postgres: Server) -> str:
    """A database of its own."""
    name = f"address{next(numbers)}"
    execute(postgres.url, f"CREATE DATABASE {name}")
    return postgres.url.replace("/postgres?", f"/{name}?")


def execute(url: str, *statements: str) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.mark.filterwarnings("ignore:.*two ledgers:UserWarning")
def test_success_shows_no_secret_either(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_url = url.replace(f":{SECRET}", "")
    declare(tmp_path, f"{open_url}&password={SECRET}")
    for command in [["ask", ASKED, "--json"], *COMMANDS]:
        done = invoke(*command)
        assert SECRET not in done.output
    twin = (tmp_path / "lapras.toml").read_text().replace("[ledger]", '[ledger]\ndataset = "twin"')
    (tmp_path / "lapras.toml").write_text(twin)
    with pytest.warns(UserWarning, match="two ledgers") as told:
        read_config("lapras.toml").open()
    assert not any(SECRET in str(one.message) for one in told)
    assert SECRET not in "".join(row.body for row in SQLLedger(url).everything()[1])


def gone(url: str) -> str:
    execute(url, "DROP TABLE lapras_head, lapras_entry, lapras_dataset CASCADE")
    return url


def foreign(url: str) -> str:
    execute(url, "DROP TABLE lapras_version", "ALTER TABLE lapras_entry RENAME COLUMN body TO words")
    return url


def changed(url: str) -> str:
    execute(url, "ALTER TABLE lapras_head RENAME COLUMN digest TO words")
    return url


def nobody(url: str) -> str:
    return url.replace("postgres:", "nobody_here:")


def a_reader(url: str) -> str:
    name = url.split("?")[0].rpartition("/")[2]
    execute(
        url, f"CREATE ROLE r_{name} LOGIN PASSWORD '{SECRET}'", f"GRANT USAGE ON SCHEMA public TO r_{name}"
    )
    execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO r_{name}")
    return url.replace("postgres:", f"r_{name}:")


def closed(url: str) -> str:
    return url.replace("/address", "/none")


def with_option(option: str) -> Callable[[str], str]:
    return lambda url: f"{url}&{option}"


@pytest.mark.parametrize(
    ("meddle", "says"),
    [
        (gone, "its tables are missing or are not a ledger's"),
        (foreign, "it has other tables of a ledger's names"),
        (changed, "its tables are missing or are not a ledger's"),
        (nobody, "user or password is wrong"),
        (a_reader, "this user may not write there"),
        (closed, "there is no such database: create it first"),
        (with_option("options=-cdefault_transaction_read_only%3Don"), "the database is read-only"),
        (with_option("options=-cno.such=1%20-cnothing=2"), "an option|cannot be connected"),
        (with_option("options=-cstatement_timeout=1"), None),
        (with_option("options=-csearch_path=nowhere"), "its schema is not there"),
    ],
)
def test_what_a_server_refuses_is_one_line_with_advice(
    url: str, meddle: Callable[[str], str], says: str | None
) -> None:
    opened(url).ask(STATEMENTS[0])
    where = meddle(url)
    try:
        opened(where).ask(STATEMENTS[1])
    except lp.LedgerError as error:
        told = str(error)
        assert "\n" not in told
        assert SECRET not in told
        if says is not None:
            assert any(part in told for part in says.split("|")), told
    else:
        assert says is None


def test_too_many_clients(url: str) -> None:
    name = url.split("?")[0].rpartition("/")[2]
    session = opened(url)
    execute(
        url,
        f"CREATE ROLE c_{name} LOGIN PASSWORD '{SECRET}' CONNECTION LIMIT 0",
    )
    with pytest.raises(lp.LedgerError, match="it has no connection left"):
        opened(url.replace("postgres:", f"c_{name}:"))
    session.ask(STATEMENTS[0])


def test_a_lost_connection_is_one_line(url: str, tmp_path: Path, capfd: Any) -> None:
    session = opened(SQLLedger(url))
    session.ask(STATEMENTS[0])
    name = url.split("?")[0].rpartition("/")[2]
    execute(
        url.replace(f"/{name}?", "/postgres?"),
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    )
    capfd.readouterr()
    with pytest.raises(lp.LedgerError, match=r"the connection was lost: ask again$"):
        session.ask(STATEMENTS[1])
    assert capfd.readouterr() == ("", "")
    assert session.ask(STATEMENTS[1]).source == "measured"


def test_the_driver_says_nothing_beside_it(url: str, tmp_path: Path) -> None:
    assert logging.getLogger("sqlalchemy").handlers
    assert logging.getLogger("psycopg").handlers
    declare(tmp_path, closed(url))
    done = lapras("ask", ASKED, code=1, cwd=tmp_path)
    assert done.stderr.splitlines() == [done.stderr.strip()]


@pytest.mark.parametrize("key", ["source", "ledger", "predictions", "log"])
def test_a_nul_in_the_name_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    named = {
        "source": SMALL.replace('"t.csv"', '"t\\u0000.csv"'),
        "ledger": f'{SMALL}[ledger]\nfile = "t\\u0000.ledger"\n',
        "predictions": SMALL.replace('["SELECT COUNT(*) FROM t"]', '"p\\u0000.sql"'),
        "log": SMALL.replace(
            'predictions = ["SELECT COUNT(*) FROM t"]', 'log = "p\\u0000.csv"\nlog_is = "public"'
        ),
    }
    (tmp_path / "lapras.toml").write_text(named[key])
    (line,) = invoke("ask", ASKED, code=1).stderr.splitlines()
    assert line.endswith("has a NUL in it: leave it out")


def test_a_nul_in_python() -> None:
    with pytest.raises(lp.ConfigError, match="has a NUL in it"):
        read_config("a\0b")
    for where in ("a\0b", Path("a\0b"), "sqlite:///a\0b", "sqlite:////tmp/a%00b"):
        with pytest.raises(lp.LedgerError, match="has a NUL in it"):
            SQLLedger(where)
    for where in ("\ud800", Path("\ud800"), "sqlite:///\ud800", "postgresql://\ud800"):
        with pytest.raises(lp.LedgerError, match="surrogate"):
            SQLLedger(where)
