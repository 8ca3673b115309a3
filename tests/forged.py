"""Small ledgers of every kind as texts, what can be changed in one, and a ledger made of such texts."""

from __future__ import annotations

import base64
import copy
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.chain import first_digest, next_digest
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.rows import Dataset, Head, Row
from laprasdp.ledger.sql import SQLLedger
from laprasdp.pacing.pacing import Reading
from laprasdp.record.entries import Entry, Kept, Stamp
from laprasdp.record.format import canonical, read_entry, write_entry
from laprasdp.record.settings import check_settings, domain_of
from laprasdp.stream.opening import open_session

SMALL = lp.Domain(age=lp.Integers(0, 4), sex=lp.Categories(["f", "m"]))
LARGE = lp.Domain(age=lp.Integers(0, 39), z=lp.Integers(0, 39))
BUDGET, PURE = lp.Budget(1.0, 1e-6), lp.Budget(0.5, 1e-9)
COUNT = "SELECT COUNT(*) FROM t"
GROUPS = f"{COUNT} GROUP BY age"
FEW = [f"{COUNT} WHERE age > 2", f"{COUNT} WHERE age > 0"]
DENSE = lp.Domain(age=lp.Integers(0, 39))
MANY = lp.Domain(age=lp.Integers(0, 104), z=lp.Integers(0, 9))  # more groups than are learned as rows
KINDS: dict[str, dict[str, Any]] = {
    "primm, dense": {"domain": DENSE, "budget": lp.Budget(1.0, 1e-3)},
    "primm": {},
    "primm, pure": {"budget": PURE, "predictions": ()},
    "primm on marginals": {"domain": LARGE, "overlap": 0.5, "release": "gaussian"},  # so no stream is played
    "primm on a product": {"domain": LARGE, "release": "pure"},
    "primm, many groups": {"domain": MANY, "overlap": 0.5, "release": "gaussian"},
    "primm, repeats pay": {"reading": Reading(repeats="pay")},
    "laplace-counts": {"policy": "laplace-counts"},
    "static, basic": {"policy": "static", "accounting": "basic"},
    "smooth, persons": {"policy": "smooth", "unit": lp.PrivacyUnit("person", 3)},
    "smooth, repeats pay": {"policy": "smooth", "reading": Reading(repeats="pay")},
    "smooth-cache": {"policy": "smooth-cache"},
    "smooth-cache, many groups": {"policy": "smooth-cache", "domain": MANY},
    "smooth-cache, basic": {"policy": "smooth-cache", "accounting": "basic"},
    "independent, basic": {"policy": "independent", "accounting": "basic", "horizon": 4},
    "independent": {"policy": "independent", "horizon": 4},
    "laplace": {"policy": "laplace", "accounting": "basic"},
    "histogram": {"policy": "histogram"},
    "histogram-total, basic": {"policy": "histogram-total", "accounting": "basic"},
    "offline": {"policy": "offline"},
}


@dataclass(frozen=True)
class Text:
    """A ledger as its texts."""

    settings: str
    bodies: tuple[str, ...]

    def digests(self) -> list[str]:
        """That of the settings, and of each entry: the chain is always whole."""
        found = [first_digest(self.settings)]
        for body in self.bodies:
            found.append(next_digest(found[-1], body))
        return found

    def export(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Header and lines as `lapras ledger export` prints them."""
        lines = zip(self.bodies, self.digests()[1:], strict=True)
        header = {"dataset": "main", "format": 1, "settings": self.settings}
        return header, [{"entry": body, "digest": digest} for body, digest in lines]


class Forged(SQLLedger):
    """A ledger of any texts, with a chain that is whole; what a session adds is forgotten."""

    def __init__(self, text: Text) -> None:
        self._text, settings = text, json.loads(text.settings)
        self.name = "main"
        self._declared = Dataset(1, settings, text.settings, domain_of(settings))

    @property
    def dataset(self) -> Dataset:
        return self._declared

    def begun(self) -> Any:
        return self.dataset.settings

    def open(self, settings: Any) -> Any:
        check_settings(self.dataset.settings, json.loads(canonical(settings)))
        return self.dataset.settings

    def since(self, position: int) -> list[Kept]:
        return [read_entry(body, self.dataset.domain) for body in self._text.bodies[position:]]

    def snapshot(self, key: str, after: int, before: int) -> None:
        """None is ever kept."""

    def keep(self, snapshot: Any) -> None:
        """None is ever kept."""

    def saved(self) -> None:
        """None is ever kept."""

    def everything(self) -> tuple[Head, list[Row]]:
        rows = []
        for place, (body, digest) in enumerate(zip(self._text.bodies, self._text.digests()[1:], strict=True)):
            form, price = {"kind": "none", "analyst": None}, None
            with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error):
                form |= json.loads(body)
                price = str(_units(form["charge"]))
            rows.append(Row(place, form["kind"], form["analyst"], price, body, digest))
        return Head(len(rows), self._text.digests()[-1]), rows

    @contextmanager
    def transaction(self, stamp: Stamp) -> Iterator[Any]:
        yield _Adding(self)


class _Adding:
    def __init__(self, ledger: Forged) -> None:
        self.since = ledger.since

    def append(self, entry: Entry) -> None:
        pass


def _units(charge: dict[str, Any]) -> int:
    if "epsilon" in charge:
        return int(charge["epsilon"])
    return max(map(int, _unpacked(charge["amounts"]["weights"])))


def session(ledger: Any, kind: str, **more: Any) -> lp.Session:
    """A session of this kind."""
    given = {"domain": SMALL, "budget": BUDGET, "horizon": 8, "predictions": FEW} | KINDS[kind] | more
    domain = given.pop("domain")
    table = MemoryTable(domain, np.arange(domain.size) % 50, unit=given.get("unit"))
    return open_session(table, domain, ledger=ledger, public=True, **given)


@cache
def sound(kind: str) -> Text:
    """A ledger that a session of this kind has written: asked again, in groups, raised and refused."""
    ledger = MemoryLedger()
    opened = session(ledger, kind)
    ask(
        opened,
        f"{COUNT} WHERE age IN (1, 3)",
        FEW[0],
        f"{COUNT} WHERE age IN (1, 3)",
        f"{COUNT} WHERE age > 99",
    )
    with suppress(lp.BudgetError):
        opened.raise_budget(
            lp.Budget(opened.budget.epsilon * 1.5, opened.budget.delta * 2), analyst="curator"
        )
    ask(opened, GROUPS, f"{COUNT} WHERE age = 1", f"{COUNT} WHERE age > 1", f"{COUNT} WHERE age IN (0, 2)")
    return text_of(opened, kind, ledger)


def text_of(opened: lp.Session, kind: str, ledger: MemoryLedger) -> Text:
    """What a session of this kind has kept, as texts."""
    begun = KINDS[kind].get("budget", BUDGET)
    settings = opened.setting.settings() | {
        "policy": opened.policy,
        "budget": {"epsilon": begun.epsilon, "delta": begun.delta},
    }
    return Text(canonical(settings), tuple(map(write_entry, ledger.since(0))))


def budget_of(text: Text) -> lp.Budget:
    """The budget after the last raise."""
    found = json.loads(text.settings)["budget"]
    for body in text.bodies:
        found = json.loads(body).get("new", found)
    return lp.Budget(**found)


def ask(opened: lp.Session, *statements: str) -> None:
    """Ask, whether it is refused or not."""
    for statement in statements:
        with suppress(lp.BudgetExhausted):
            opened.ask(statement, analyst="ada")


Path = tuple[Any, ...]


def mutants(text: Text) -> Iterator[tuple[str, Text]]:
    """What was changed, and the ledger with its chain made whole again."""
    forms = [json.loads(body) for body in text.bodies]
    for place, form in enumerate(forms):
        for path in _paths(form):
            for how, value in _changes(forms, place, path):
                changed = copy.deepcopy(form)
                _put(changed, path, value)
                body = json.dumps(changed, sort_keys=True, separators=(",", ":"))
                if body != text.bodies[place]:
                    bodies = (*text.bodies[:place], body, *text.bodies[place + 1 :])
                    yield (
                        f"{place} {form['kind']} {'.'.join(map(str, path))}: {how}",
                        Text(text.settings, bodies),
                    )
        for how, order in {
            "dropped": [*forms[:place], *forms[place + 1 :]],
            "doubled": [*forms[: place + 1], *forms[place:]],
            "moved": [*forms[:place], *forms[place + 1 : place + 2], form, *forms[place + 2 :]],
        }.items():
            bodies = tuple(canonical(each | {"position": k}) for k, each in enumerate(order))
            if bodies != text.bodies:
                yield f"{place} {form['kind']} entry: {how}", Text(text.settings, bodies)


DROP = object()


def _paths(form: Any, path: Path = ()) -> Iterator[Path]:
    """Every key, and the first and last of each list."""
    if path:
        yield path
    if isinstance(form, dict) and form.keys() != {"zlib"}:
        for key in form:
            yield from _paths(form[key], (*path, key))
    elif isinstance(form, list):
        for place in sorted({0, len(form) - 1} if form else ()):
            yield from _paths(form[place], (*path, place))


def _changes(forms: Sequence[Any], place: int, path: Path) -> Iterator[tuple[str, Any]]:
    value = _get(forms[place], path)
    yield "dropped", DROP
    for name, other in {
        "null": None, "NaN": float("nan"), "infinite": float("inf"), "0": 0, "-1": -1, "0.5": 0.5,
        "2^70": 2**70, "a text": "none", "a list": [], "an object": {}, "true": True, "false": False,
    }.items():  # fmt: skip
        yield name, other
    number = _number(value)
    if number is not None:
        for factor in (0.1, 10, -1):
            scaled = number * factor
            yield f"times {factor}", scaled if isinstance(value, float) else _spelled(int(scaled))
        yield "one more", number + 1.0 if isinstance(value, float) else _spelled(number + 1)
    if isinstance(value, str):
        yield "another text", value + " "
    if isinstance(value, list) and value:
        yield "reversed", value[::-1]
        yield "longer", [*value, value[-1]]
        yield "shorter", value[:-1]
    if isinstance(value, dict) and value.keys() == {"zlib"}:
        numbers = _unpacked(value)
        for how, changed in (("reversed", numbers[::-1]), ("one more", [numbers[0] + 1, *numbers[1:]])):
            yield how, _packed(changed)
        yield "shorter", _packed(numbers[:-1])
        yield "damaged", {"zlib": value["zlib"][:-5]}
    alike = [k for k, form in enumerate(forms) if k != place and form["kind"] == forms[place]["kind"]]
    for other in {*alike[:1], *alike[-1:]}:
        with suppress(LookupError, TypeError):
            yield f"as in {other}", copy.deepcopy(_get(forms[other], path))


def _get(form: Any, path: Path) -> Any:
    for key in path:
        form = form[key]
    return form


def _put(form: Any, path: Path, value: Any) -> None:
    inner = _get(form, path[:-1])
    if value is DROP:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        with suppress(ValueError):
            return int(value)
        return None
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _spelled(value: int) -> int | str:
    return value if abs(value) < 2**53 else str(value)


def _unpacked(form: Any) -> list[int]:
    if isinstance(form, list):
        return form
    return np.frombuffer(zlib.decompress(base64.b64decode(form["zlib"])), dtype="<i8").tolist()


def _packed(numbers: list[int]) -> dict[str, str]:
    words = np.array(numbers, dtype="<i8").tobytes()
    return {"zlib": base64.b64encode(zlib.compress(words)).decode()}
