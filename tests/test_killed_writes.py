"""Commands that write a file or raise a budget, killed anywhere: it is done whole or not at all."""

from __future__ import annotations

import functools
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import SMALL, invoke, write_small
from query_logs import made, ranges
from test_ledger_crash import Steps, die
from witness import STATEMENTS, Child, Witness, opened

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.predict.forecast import make_forecast, write_forecast
from laprasdp.predict.frequency import Frequency
from laprasdp.stream.spending import budget_of
from laprasdp.whole import write_whole

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
KEPT = SMALL + '[ledger]\nfile = "lapras.ledger"\n'


def steps(work: Callable[[], object], place: int | None = None) -> int:
    """Do `work`, up to a call or return of a function; how many there are."""
    count = 0

    def step(*_: Any) -> None:
        nonlocal count
        if count == place:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    gc.disable()  # what it would end of other tests are no steps of this
    sys.setprofile(step)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def killed(work: Callable[[], object], place: int) -> None:
    """A child does `work` and is killed in front of a call or return."""
    assert Child(lambda _: steps(work, place) and None).end() == (True, [])


@pytest.fixture
def forecast() -> Any:
    log = made(ranges(30))
    predictor = Frequency()
    predictor.fit(log)
    return make_forecast(predictor, log, 40, 20)


@pytest.mark.parametrize("there", [False, True], ids=["new", "over"])
@pytest.mark.parametrize("what", ["text", "forecast"])
def test_a_file_is_whole_wherever_the_writing_is_killed(
    tmp_path: Path, forecast: Any, what: str, there: bool
) -> None:
    path = tmp_path / "out"

    def write() -> None:
        if what == "text":
            write_whole(path, "new\n" * 5000, new=not there)
        else:
            write_forecast(forecast, path)

    write()
    whole = path.read_text()
    path.unlink()
    total = steps(write)
    seen = set()
    for place in range(max(total - 90, 0), total):  # the writing is at the end
        path.unlink(missing_ok=True)
        if there:
            path.write_text("before")
        killed(write, place)
        seen.add(path.read_text() if path.exists() else None)
    assert seen == {"before" if there else None, whole}


def test_what_is_written_over_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    write_whole(path, "one")
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask()
    path.chmod(0o640)
    link.symlink_to(path)
    write_whole(link, "two")
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("two", 0o640, True)
    for name in (path, link):
        with pytest.raises(FileExistsError):
            write_whole(name, "three", new=True)
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]
    assert path.read_text() == "two"


def mask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


@pytest.mark.parametrize("command", ["init", "fit"])
def test_commands_that_are_killed_write_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    (tmp_path / "log.csv").write_text('sql\n"SELECT COUNT(*) FROM t"\n"SELECT COUNT(*) FROM t WHERE n < 3"\n')
    out = tmp_path / "out"
    arguments = {
        "init": ["init", "t.csv", "--out", "out"],
        "fit": ["predict", "fit", "log.csv", "--log-is", "public", "--model", "frequency", "-o", "out"],
    }[command]
    invoke(*arguments)
    whole = out.read_text()
    out.unlink()
    total = steps(lambda: invoke(*arguments))
    draw = random.Random(0)
    for place in sorted(draw.sample(range(total * 4 // 5, total), 4)):
        out.unlink()
        killed(lambda: invoke(*arguments), place)
        if not out.exists():
            invoke(*arguments)
        assert out.read_text() == whole


def test_a_raise_that_is_killed_anywhere_is_whole_or_not_at_all(tmp_path: Path) -> None:
    def make() -> SQLLedger:
        return SQLLedger(tmp_path / "ledger.db")

    session, witness = opened(make()), Witness(make)
    witness.ask(session, STATEMENTS[0])
    told = Steps(session)
    session.raise_budget(lp.Budget(1.01, 1e-6))
    told.stop()
    assert told.names[-1] == "after COMMIT"
    for place, name in enumerate(told.names):
        old, new = session.budget, lp.Budget(session.budget.epsilon + 0.01, 1e-6)
        head = make().head

        def work(_: Any, place: int = place, new: lp.Budget = new) -> None:
            Steps(session, place, die)
            session.raise_budget(new)

        assert Child(work).end() == (True, [])
        ledger = make()
        kept = name == "after COMMIT"
        assert budget_of(ledger.dataset.settings, ledger.since(0)) == (new if kept else old)
        assert ledger.head.entries == head.entries + kept
        assert verify(ledger) == []
        assert session.ask(STATEMENTS[0]).value == witness.shown[STATEMENTS[0]]  # type: ignore[union-attr]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    (tmp_path / "lapras.toml").write_text(KEPT)
    return tmp_path


def test_the_command_that_raises_is_whole_or_not_at_all(small: Path) -> None:
    invoke("ask", STATEMENTS[0].partition(" WHERE")[0])
    total = steps(lambda: invoke("budget", "raise", "--epsilon", 1.5, "--yes"))
    (small / "lapras.toml").write_text(KEPT.replace("epsilon = 1.0", "epsilon = 1.5"))
    draw, epsilon = random.Random(0), 1.5
    for place in sorted(draw.sample(range(total // 4, total), 6)):
        arguments = ["budget", "raise", "--epsilon", str(epsilon + 1), "--yes"]
        killed(functools.partial(invoke, *arguments), place)
        ledger = SQLLedger(small / "lapras.ledger")
        found = budget_of(ledger.dataset.settings, ledger.since(0))
        assert verify(ledger) == []
        assert found.epsilon in (epsilon, epsilon + 1)
        epsilon = found.epsilon


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "t.csv", "--out", "lapras.toml", "--force"], ["run", "q.sql"],
        ["ask", "SELECT COUNT(*) FROM t"], ["budget"], ["budget", "raise", "--epsilon", "2", "--yes"],
        ["ledger", "verify"], ["ledger", "export"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
def test_every_command_refuses_a_log_without_its_ledger(
    small: Path, arguments: list[str], empty: bool
) -> None:
    (small / "q.sql").write_text("SELECT COUNT(*) FROM t")
    before = (small / "lapras.toml").read_text()
    with read_config(small / "lapras.toml").open() as session:
        session.ask("SELECT COUNT(*) FROM t")
        log = (small / "lapras.ledger-wal").read_bytes()
    (small / "lapras.ledger").unlink()
    (small / "lapras.ledger-wal").write_bytes(log)
    if empty:
        (small / "lapras.ledger").touch()
    done = invoke(*arguments, code=1)
    (line,) = done.stderr.splitlines()
    assert "lapras.ledger-wal, is there, but lapras.ledger is missing or empty: answers that were" in line
    assert (small / "lapras.ledger-wal").read_bytes() == log
    assert (small / "lapras.ledger").exists() == empty
    assert (small / "lapras.toml").read_text() == before


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user may read and not write, with a table, a log and a ledger."""
    made = Path(tempfile.mkdtemp(prefix="lapras-"))
    write_small(made)
    (made / "lapras.toml").write_text(KEPT)
    (made / "log.csv").write_text('sql\n"SELECT COUNT(*) FROM t"\n')
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.mark.parametrize("begun", [False, True], ids=["new", "begun"])
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["init", "t.csv", "--out", "new.toml"], "new.toml: Permission denied"),
        (["init", "t.csv", "--out", "lapras.toml", "--force"], "lapras.toml: Permission denied"),
        (["predict", "fit", "log.csv", "--log-is", "public"], "predictions.json: Permission denied"),
        (["ask", "SELECT COUNT(*) FROM t"], "lapras.ledger: "),
        (["run", "q.sql"], "lapras.ledger: "),
        (["budget", "raise", "--epsilon", "2", "--yes"], "lapras.ledger"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_folder_that_may_not_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str, begun: bool
) -> None:
    monkeypatch.chdir(folder)
    (folder / "q.sql").write_text("SELECT COUNT(*) FROM t")
    if begun:
        invoke("ask", "SELECT COUNT(*) FROM t")
    folder.chmod(0o555)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def work(tell: Callable[[str, float], None]) -> None:
        if os.geteuid() == 0:  # whom no mode stops
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        done = invoke(*arguments, code=1)
        tell(done.stderr, 0.0)

    invoke("--version")
    _, ((text, _),) = Child(work).end()
    (line,) = text.splitlines()
    assert says in line
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
