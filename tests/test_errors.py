"""Every error has a code and a status that stay, in the tree that is drawn and on the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from command import invoke, write_small

import laprasdp as lp
from laprasdp import errors

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"


def tree(of: type[lp.LaprasError] = lp.LaprasError) -> Iterator[type[lp.LaprasError]]:
    yield of
    for kind in of.__subclasses__():
        yield from tree(kind)


EVERY = list(tree())


def test_codes_and_statuses() -> None:
    assert all("code" in vars(kind) and "status" in vars(kind) for kind in EVERY)
    codes = [kind.code for kind in EVERY]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", code) for code in codes)
    assert all(HTTPStatus(kind.status).value >= 400 for kind in EVERY)
    asked = (lp.UnsupportedQuery, lp.BudgetExhausted, lp.DomainError, errors.UnknownAnalyst)
    for kind in EVERY:  # 4xx is for whoever asks to mend
        assert (kind.status < 500) == issubclass(kind, (*asked, lp.BudgetError)), kind
    assert {kind.__name__ for kind in EVERY} <= set(lp.__all__)
    assert {kind.__module__ for kind in EVERY} == {errors.__name__}


def test_codes_never_change() -> None:
    """A class may be added; what a program has learned to tell apart stays."""
    stay = {
        "error": 500, "domain": 400, "unsupported-query": 422, "query-syntax": 400, "other-table": 404,
        "budget": 400, "budget-exhausted": 403, "data": 500, "ledger": 503, "config": 500,
        "unknown-analyst": 403,
    }  # fmt: skip
    assert stay.items() <= {kind.code: kind.status for kind in EVERY}.items()


def test_the_tree_is_drawn_as_it_is() -> None:
    drawing = [
        (len(indent) // 4, name, code, int(status))
        for indent, name, code, status in re.findall(
            r"^    ((?:│   |    )*(?:[├└]── )?)(\w+) +([a-z-]+) +(\d{3})", errors.__doc__ or "", re.M
        )
    ]
    depth = {
        kind: len([base for base in kind.__mro__ if issubclass(base, lp.LaprasError)]) - 1 for kind in EVERY
    }
    assert drawing == [(depth[kind], kind.__name__, kind.code, kind.status) for kind in EVERY]


def test_the_page_has_every_error() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \| (\d{3}) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
    assert [(code, name, int(status)) for code, name, status, *_ in rows] == [
        (kind.code, kind.__name__, kind.status) for kind in EVERY
    ]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path)
    return tmp_path


def test_a_failure_of_a_command_carries_the_code(small: Path) -> None:
    with open("lapras.toml", "a") as settings:
        settings.write('[ledger]\nfile = "lapras.ledger"\n[analysts]\nada = 0.5\n')
    asked: dict[str, list[str]] = {
        "ledger": ["ledger", "verify"],  # it is not begun
        "unsupported-query": ["ask", "SELECT MAX(n) FROM t", "--analyst", "ada"],
        "query-syntax": ["ask", "SELECT COUNT(* FROM t", "--analyst", "ada"],
        "other-table": ["ask", "SELECT COUNT(*) FROM s", "--analyst", "ada"],
        "unknown-analyst": ["ask", "SELECT COUNT(*) FROM t"],
        "config": ["plan", "-c", "none.toml"],
        "data": ["init", "none.csv", "--out", "new.toml"],
    }
    for code, command in asked.items():
        plain = invoke(*command, code=1)
        done = invoke(*command, "--json", code=1)
        (line,) = done.stderr.splitlines()
        assert json.loads(line) == {"code": code, "message": plain.stderr.strip().removeprefix("lapras: ")}
        assert done.stdout == ""
    spent = invoke("budget", "-c", "none.toml", "--json", code=1)  # the one that is called in another way
    assert json.loads(spent.stderr)["code"] == "config"


def test_a_refused_statement_of_a_file_carries_its_line(small: Path) -> None:
    Path("q.sql").write_text("SELECT COUNT(*) FROM t;\nSELECT MAX(n)\nFROM t;\nSELECT 'open;\n")
    done = invoke("run", "q.sql", "--json", code=1)
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [(one["line"], one["code"]) for one in told] == [(2, "unsupported-query"), (4, "query-syntax")]
    assert "MAX" in told[0]["message"]
    assert len(done.stdout.splitlines()) == 1


def test_a_file_that_the_system_refuses(small: Path) -> None:
    done = invoke("run", "none.sql", "--json", code=1)
    assert json.loads(done.stderr)["code"] == "file"
