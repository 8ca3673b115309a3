"""The stand-alone script of the examples agrees with every export, and with no tampered one."""

import hashlib
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.stream.opening import open_session

SCRIPT = Path(__file__).parent.parent / "examples" / "replay_ledger"
SMALL = lp.Domain(age=lp.Integers(0, 7), Sex=lp.Categories(["f", "m"], nullable=True))
LARGE = lp.Domain(z=lp.Integers(0, 39), age=lp.Integers(0, 39))  # its marginals are measured
GROUPS = "SELECT COUNT(*) FROM t GROUP BY age"
SETTINGS = {
    "primm": (SMALL, {}),
    "primm on marginals": (LARGE, {"release": "gaussian"}),
    "primm on a product": (LARGE, {"release": "pure"}),
    "smooth-cache": (SMALL, {"policy": "smooth-cache"}),
    "basic": (SMALL, {"policy": "smooth", "accounting": "basic"}),
    "laplace": (SMALL, {"policy": "laplace", "accounting": "basic"}),
    "histogram": (SMALL, {"policy": "histogram-total"}),
    "persons": (SMALL, {"unit": lp.PrivacyUnit("person", 3)}),
}


def replay(path):
    """Isolated and without site-packages: only the standard library is there."""
    return subprocess.run([sys.executable, "-I", "-S", SCRIPT, path], capture_output=True, text=True)


def export(folder, domain=SMALL, **settings):
    ledger = SQLLedger(folder / "some.ledger")
    table = MemoryTable(domain, np.arange(domain.size) % 5, unit=settings.get("unit"))
    budget = lp.Budget(1.0, 1e-6)
    session = open_session(
        table, domain, budget=budget, horizon=12, predictions=[GROUPS], ledger=ledger, public=True, **settings
    )
    for text in ("age > 3", "age IN (1, 4, 6)", "age > 3", "age < 2"):
        session.ask(f"SELECT COUNT(*) FROM t WHERE {text}", analyst="ada")
    session.ask(GROUPS)
    with suppress(lp.BudgetError):  # beside a release that has everything
        session.raise_budget(lp.Budget(1.5, 1e-6))
    session.ask("SELECT COUNT(*) FROM t WHERE age IN (2, 5)")
    for text in ("SELECT COUNT(*) FROM t WHERE age > 3", GROUPS, "SELECT COUNT(*) FROM t WHERE age = 1"):
        with suppress(lp.BudgetExhausted):  # a histogram measures nothing for a statement
            session.ask(text, remeasure=True)
        session.ask(text)
    with suppress(lp.BudgetExhausted):
        session.ask("SELECT COUNT(*) FROM t WHERE age IN (2, 4)", max_std=20.0)
    assert verify(ledger) == []
    path = folder / "export.jsonl"
    path.write_text("".join(line + "\n" for line in ledger.lines()))
    return path, ledger.head, session


@pytest.mark.parametrize(("domain", "settings"), SETTINGS.values(), ids=SETTINGS)
def test_a_real_export_is_sound(domain, settings, tmp_path):
    path, head, session = export(tmp_path, domain, **settings)
    done = replay(path)
    assert (done.returncode, done.stderr) == (0, "")
    unit = session.unit
    units = round(session.spent * 2**40)
    assert (
        done.stdout
        == f"main: {head.entries} entries, all sound; {units} units of {unit} spent; head {head.digest}\n"
    )


def rewritten(path, change, *, chained=True):
    """The export after a change of its entries, by somebody who can compute digests, or cannot."""
    header, *lines = map(json.loads, path.read_text().splitlines())
    entries = [json.loads(line["entry"]) for line in lines]
    change(entries)
    digest = hashlib.sha256(header["settings"].encode()).hexdigest()
    out = [header]
    for entry, line in zip(entries, lines, strict=False):
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(f"{digest}{text}".encode()).hexdigest()
        out.append({"entry": text, "digest": digest if chained else line["digest"]})
    path.write_text("".join(json.dumps(line) + "\n" for line in out))


def first(entries, kind):
    return next(entry for entry in entries if entry["kind"] == kind and not entry.get("opening"))


def cheaper(entries):
    amounts = first(entries, "release")["charge"]["amounts"]
    amounts["weights"] = [max(value - 1, 0) for value in amounts["weights"]]


def stronger(entries):
    first(entries, "release")["measurement"]["bits"] -= 1


def other_answer(entries):
    replies = [entry for entry in entries if entry["kind"] == "reply"]
    replies[2]["answers"][0]["value"] += 1


def fewer(entries):
    charge = next(entry["charge"] for entry in entries if "persons" in json.dumps(entry.get("measurement")))
    if "amounts" in charge:
        charge["amounts"]["weights"] = [value - 1 for value in charge["amounts"]["weights"]]
    else:
        charge["epsilon"] -= 10**6  # its noise is in whole steps, which a unit is no part of


@pytest.mark.parametrize("policy", ["primm", "smooth-cache", "independent", "laplace"])
def test_counts_of_persons_are_worked_out_again(policy, tmp_path):
    """Also where their groups are charged by the rows a person has, and not by their number."""
    rng = np.random.default_rng(3)
    columns = {"who": rng.integers(0, 300, 900), "age": rng.integers(0, 8, 900)}
    columns["Sex"] = rng.choice(list("fm"), 900)
    settings = {"policy": policy, "release": "gaussian", "unit": lp.PrivacyUnit("who", 3), "horizon": 6}
    settings |= {"accounting": "basic"} if policy == "laplace" else {}
    ledger = SQLLedger(tmp_path / "some.ledger")
    session = open_session(
        pa.table(columns), SMALL, budget=lp.Budget(1.0, 1e-6), name="t", ledger=ledger, **settings
    )
    for text in ("WHERE age < 3", "GROUP BY Sex", "GROUP BY age", "WHERE age < 3"):
        session.ask(f"SELECT COUNT(DISTINCT who), COUNT(*) FROM t {text}")
        session.ask(f"SELECT COUNT(DISTINCT who) FROM t {text}")
    path = tmp_path / "export.jsonl"
    path.write_text("".join(line + "\n" for line in ledger.lines()))
    assert verify(ledger) == []
    assert replay(path).returncode == 0
    rewritten(path, fewer)
    done = replay(path)
    assert done.returncode == 1
    assert "its charge is not what" in done.stdout or "too small for its charge" in done.stdout


def lost(entries):
    del entries[entries.index(first(entries, "release"))]


def lost_reply(entries):
    del entries[-1]


def lowered(entries):
    first(entries, "raise")["new"]["epsilon"] = 0.9


def false_start(entries):
    first(entries, "raise")["old"]["epsilon"] = 0.9


def another_statement(entries):
    entries[1]["statement"] = "SELECT 1"


def renewed(entries, change):
    again = next(entry for entry in entries if entry.get("again"))
    change(again)


def other_renewed(entries):
    renewed(entries, lambda reply: reply["answers"][0].update(value=reply["answers"][0]["value"] + 1))


def more_exact(entries):
    renewed(entries, lambda reply: reply["answers"][0].update(variance=reply["answers"][0]["variance"] / 2))


def never_again(entries):
    renewed(entries, lambda reply: (reply.pop("again"), reply.pop("format")))


def unmeasured(entries):
    reply = first(entries, "reply")
    reply |= {"again": True, "format": 3, "measured": False}


TAMPERED = {
    "an answer measured again": (other_renewed, True, "its answer is not what was measured"),
    "its error": (more_exact, True, "its answer is not what was measured"),
    "that it was measured again": (never_again, True, "it shows another answer to the same query"),
    "a reply that nothing was measured for": (unmeasured, True, "it was not measured again"),
    "a text": (another_statement, False, "it does not follow from the entry before"),
    "a charge": (cheaper, True, "its charge is not what its measurement costs"),
    "a scale": (stronger, True, "its charge is not what its measurement costs"),
    "an answer": (other_answer, True, "it shows another answer to the same query than before"),
    "a lost release": (lost, True, "do not stand together"),
    "a lost end": (lost_reply, True, "the last release has no reply"),
    "a lowered budget": (lowered, True, "it is no raise of the budget"),
    "a false start": (false_start, True, "it is no raise of the budget"),
}


@pytest.mark.parametrize(("change", "chained", "finding"), TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_export_is_not(change, chained, finding, tmp_path):
    path, _, _ = export(tmp_path, policy="smooth")
    rewritten(path, lambda entries: None)
    assert replay(path).returncode == 0
    rewritten(path, change, chained=chained)
    done = replay(path)
    assert (done.returncode, done.stderr) == (1, "")
    assert finding in done.stdout


@pytest.mark.parametrize("accounting", ["gaussian", "basic"])
def test_a_passed_budget_is_found(accounting, tmp_path):
    path, _, session = export(tmp_path, policy="independent", accounting=accounting)
    header, *lines = path.read_text().splitlines()
    settings = json.loads(json.loads(header)["settings"])
    settings["budget"]["epsilon"] = session.epsilon_spent / 4
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    path.write_text("\n".join([json.dumps({"format": 1, "settings": text}), *lines]) + "\n")
    rewritten(path, lambda entries: first(entries, "raise")["old"].update(settings["budget"]))
    done = replay(path)
    assert done.returncode == 1
    assert "the budget is passed" in done.stdout
    assert "its charge" not in done.stdout


def test_the_page_names_every_key(tmp_path):
    page = (SCRIPT.parent.parent / "docs" / "ledger-format.md").read_text()
    path, _, _ = export(tmp_path, LARGE)
    header, *lines = map(json.loads, path.read_text().splitlines())
    names = {*header, *json.loads(header["settings"])}
    for line in lines:
        entry = json.loads(line["entry"])
        names |= {*line, *entry, *entry.get("measurement", ()), *entry.get("charge", ())}
        names |= {key for answer in entry.get("answers", ()) for key in answer or ()}
    assert len(names) > 30
    assert [name for name in names if f"`{name}`" not in page] == []
