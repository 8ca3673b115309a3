"""`lapras.toml`: everything public about a session, read strictly into one frozen object.

A key that is not known is an error, so a misspelt setting never falls back to its default in silence.
Reading a configuration and planning with it never open the table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from laprasdp import datasets
from laprasdp.config.domain import read_domain
from laprasdp.config.forecast import KEYS, is_forecast, read_count, read_expected
from laprasdp.config.ledger import Place, read_analysts, read_ledger
from laprasdp.config.section import Section, placed
from laprasdp.config.windows import Windows, read_windows
from laprasdp.domain import Domain
from laprasdp.errors import ConfigError, UnsupportedQuery
from laprasdp.opening import open_session, read_predictions
from laprasdp.pacing.pacing import Reading
from laprasdp.plan import Plan, make_plan, smallest_epsilon
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy, Setting
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.session import DEFAULT_POLICY, Session
from laprasdp.sql.split import split
from laprasdp.windows import WindowedSession, open_windows
from laprasdp.windows.period import Part
from laprasdp.windows.terms import Terms

FILE = "lapras.toml"


@dataclass(frozen=True)
class Prediction:
    """A predicted statement, and where it stands for messages."""

    text: str
    place: str


@dataclass(frozen=True)
class Config:
    """
    A session as `lapras.toml` declares it.

    Attributes
    ----------
    path : Path
        The file it was read from.
    source : Path
        The table's file.
    name : str
        How statements call the table.
    table : str, optional
        The table inside a database.
    public : bool
        The table is declared public.
    ledger : Place, optional
        Where what is released is kept; in memory otherwise.
    caps : mapping of analyst to float
        The ε of what may be measured for each; where there is any, only they may ask.
    windows : Windows, optional
        Periods with a budget each.
    domain, budget, unit
        As in `open_session`, like the fields after them.
    prediction_count : int
        How many statements of a log or a forecast make up the prediction set.
    expected : tuple of float
        λ, how often each of `predictions` is expected among S statements; empty where nothing tells it.
    """

    path: Path
    source: Path
    name: str
    domain: Domain
    budget: Budget
    table: str | None = None
    public: bool = False
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    horizon: int | None = 100
    policy: str = DEFAULT_POLICY
    accounting: str = "gaussian"
    split: str = "matrix-heavy"
    overlap: float | None = None
    reading: Reading = field(default_factory=Reading)
    predictions: tuple[Prediction, ...] = ()
    prediction_count: int = 100
    expected: tuple[float, ...] = ()
    ledger: Place | None = None
    caps: Mapping[str, float] = field(default_factory=dict)
    windows: Windows | None = None

    def open(self) -> Session | WindowedSession:
        """Open the table and the ledger; nothing is released yet."""
        self._check_predictions()
        declared = vars(self._terms()) | {"table": self.table, "name": self.name, "public": self.public}
        if self.windows is None:
            ledger = None if self.ledger is None else self.ledger.open(self.domain)
            return open_session(self.source, self.domain, ledger=ledger, **declared)
        shelf = None if self.ledger is None else self.ledger.shelf(self.domain, f"{self.name}@")
        parts = self.windows.parts(self.domain).values()
        own = [part.period for part in parts] if self.windows.budgets else self.windows.step
        declared |= {"attribute": self.windows.attribute, "periods": own}
        return open_windows(self.source, self.domain, ledger=shelf, **declared)

    def kept(self) -> Place:
        """
        Where the ledger is kept, for what makes no sense without one.

        Raises
        ------
        ConfigError
            It lives in memory.
        """
        if self.ledger is None:
            raise ConfigError(
                f'{self.path} names no ledger, so nothing is kept: write [ledger] with file = "lapras.ledger"'
            )
        return self.ledger

    def plan(self, *, predictions: bool = True, kinds: bool = True) -> Plan:
        """
        The expected errors; with windows, of the last period.  The table is not opened.

        Parameters
        ----------
        predictions : bool
            False plans the same session without its prediction set.
        kinds : bool
            Whether to tell unpredicted queries apart by their kind, which takes most of the time.
        """
        policy, names = self.policy_before(predictions=predictions)
        return make_plan(policy, names, kinds=kinds)

    def policy_before(
        self, part: Part | None = None, *, predictions: bool = True
    ) -> tuple[Policy, list[str]]:
        """
        The policy in its state before the stream, and how each predicted query is called.

        Parameters
        ----------
        part : Part, optional
            With windows, the period; the last otherwise.
        predictions : bool
            As in `plan`.
        """
        if predictions:
            self._check_predictions()
        terms = self._terms(predictions=predictions)
        if self.windows is not None:
            return terms.before(part or self.windows.last(self.domain), self.domain, self.name)
        predicted = read_predictions(terms.predictions, self.domain, self.name, terms.expected)
        setting = Setting(
            self.domain,
            self.budget,
            self.horizon,
            tuple(predicted),
            accounting=self.accounting,
            split=self.split,
            overlap=self.overlap,
            expected=tuple(one.count for one in predicted.values()) if terms.expected else (),
            unit=self.unit,
            reading=self.reading,
        )
        return policy_named(self.policy, setting), [one.name for one in predicted.values()]

    def with_budget(self, budget: Budget) -> Config:
        """The same with this budget; with windows, in every period."""
        windows = None if self.windows is None else replace(self.windows, budgets={})
        return replace(self, budget=budget, windows=windows)

    @property
    def planned(self) -> Domain:
        """What a budget is for: the domain, or its last period."""
        return self.domain if self.windows is None else self.windows.last(self.domain).domain

    def smallest_epsilon(self, target_std: float, *, predictions: bool = True) -> float:
        """
        The smallest ε whose plan, at the declared δ, reaches a standard deviation.

        Parameters
        ----------
        target_std : float
            In records; see `laprasdp.plan.smallest_epsilon`.
        predictions : bool
            As in `plan`.
        """
        return smallest_epsilon(
            lambda budget: self.with_budget(budget).plan(predictions=predictions, kinds=False),
            self.budget.delta,
            target_std,
        )

    def _terms(self, *, predictions: bool = True) -> Terms:
        return Terms(
            self.budget,
            self.horizon,
            tuple(prediction.text for prediction in self.predictions) if predictions else (),
            self.policy,
            self.accounting,
            self.split,
            self.overlap,
            self.expected if predictions else (),
            self.reading,
            self.unit,
            self.caps,
        )

    def _check_predictions(self) -> None:
        """Refuse a prediction that cannot be asked by the line of the user's file."""
        for prediction in self.predictions:
            try:
                read_predictions([prediction.text], self.domain, self.name)
            except UnsupportedQuery as error:
                raise type(error)(
                    f"{prediction.place}: {str(error).removeprefix('prediction 1: ')}"
                ) from None


def read_config(path: str | Path = FILE, *, predictions: bool = True) -> Config:
    """
    Read a configuration.

    Parameters
    ----------
    path : path
        Relative paths inside the file start at its folder.
    predictions : bool
        False leaves the prediction set out, which may not be there yet.

    Raises
    ------
    ConfigError
        The file is missing or not TOML; a section, key or value is missing, unknown or wrong.
    DomainError, BudgetError
        An attribute or the budget makes no sense; the message names the section.
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; `lapras init TABLE` writes one") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a directory; name the {FILE} in it") from None
    except PermissionError:
        raise ConfigError(f"{path} cannot be read: permission denied") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    return _config(path, values, predictions)


def _config(path: Path, values: dict[str, Any], predictions: bool) -> Config:
    top = Section(str(path), values)
    top.only("source", "domain", "privacy", "stream", "ledger", "analysts", "windows", what="section")
    settings = _source(top.section("source"), path.parent) | _privacy(top.section("privacy"))
    settings["domain"] = read_domain(top.section("domain"))
    stream = top.section("stream")
    settings |= _stream(stream, path.parent)
    settings["caps"] = read_analysts(top.section("analysts"), settings["budget"].delta)
    if "ledger" in top:
        settings["ledger"] = read_ledger(top.section("ledger"), path.parent)
    if "windows" in top:
        section = top.section("windows")
        settings["windows"] = read_windows(section, settings["budget"])
        if "dataset" in top.section("ledger"):
            raise ConfigError(f"{section.where}: each period is a dataset by its date: leave dataset out")
        placed(section.where, settings["windows"].last, settings["domain"])
    config = Config(path, **settings)
    if not predictions:
        return replace(config, predictions=())
    forecast = read_expected(stream, config.domain, config.name, config.horizon, path.parent)
    if forecast is None:
        return config
    return replace(
        config,
        predictions=tuple(Prediction(one.text, f"{stream.where}: {one.text}") for one in forecast.expected),
        expected=tuple(one.count for one in forecast.expected),
        overlap=forecast.overlap if config.overlap is None else config.overlap,
    )


def _source(section: Section, folder: Path) -> dict[str, Any]:
    section.only("file", "database", "table", "dataset", "name", "public")
    file, database, dataset = (section.take(key, str, None) for key in ("file", "database", "dataset"))
    if [file, database, dataset].count(None) != 2:
        raise ConfigError(f"{section.where}: name the table by one of file, database or dataset")
    table = section.take("table", str) if database is not None else section.take("table", str, None)
    name, public = section.take("name", str, None), section.take("public", bool, dataset is not None)
    if table is not None and database is None:
        raise ConfigError(f"{section.where}: table is for a database; a file is one table by itself")
    where = (
        placed(section.where, datasets.path, dataset) if dataset is not None else folder / (file or database)
    )
    name = name or dataset or (table.rpartition(".")[2] if table else where.name.split(".")[0]) or "data"
    return {"source": where, "table": table, "name": name, "public": public}


def _privacy(section: Section) -> dict[str, Any]:
    section.only("epsilon", "delta", "unit", "column", "max_rows")
    number = (int, float)
    epsilon, delta = section.take("epsilon", number), section.take("delta", number)
    unit, column = section.take("unit", str, "row"), section.take("column", str, None)
    if unit != "row":
        raise ConfigError(f'{section.where}: unit is "row"; for persons give column and max_rows instead')
    if column is not None and "unit" in section:
        raise ConfigError(f'{section.where}: unit = "row" and column contradict each other')
    rows = section.take("max_rows", int, 1) if column is None else section.take("max_rows", int)
    return {
        "budget": placed(section.where, Budget, epsilon, delta),
        "unit": placed(section.where, PrivacyUnit, column, rows),
    }


def _stream(section: Section, folder: Path) -> dict[str, Any]:
    section.only(
        "horizon", "policy", "accounting", "split", "overlap", "predictions", *KEYS, *vars(Reading())
    )
    horizon = section.take("horizon", (int, str), 100)
    if horizon != "unknown" and (isinstance(horizon, str) or horizon < 1):
        raise ConfigError(
            f'{section.where}: horizon is a whole number of at least 1, or "unknown", not {horizon!r}'
        )
    found: dict[str, Any] = {"horizon": None if horizon == "unknown" else horizon}
    for key, default in (("policy", DEFAULT_POLICY), ("accounting", "gaussian"), ("split", "matrix-heavy")):
        found[key] = section.take(key, str, default)
    found["overlap"] = section.take("overlap", (int, float), None)
    plain = Reading()
    reading = {
        key: section.take(key, str, getattr(plain, key)) for key in ("estimate", "overflow", "repeats")
    }
    reading["warm_up"] = section.take("warm_up", (int, str), plain.warm_up)
    predictions = section.take("predictions", (list, str), [])
    found["reading"] = placed(section.where, lambda: Reading(**reading))
    found["prediction_count"] = read_count(section)
    found["predictions"] = (
        () if is_forecast(predictions) else _predictions(section.where, predictions, folder)
    )
    return found


def _predictions(where: str, given: list[Any] | str, folder: Path) -> tuple[Prediction, ...]:
    if isinstance(given, list):
        for text in given:
            if not isinstance(text, str):
                raise ConfigError(f"{where}: predictions are texts in quotes, not {text!r}")
        return tuple(Prediction(t, f"{where}: prediction {i}") for i, t in enumerate(given, start=1))
    path, found = folder / given, []
    try:
        with open(path, encoding="utf-8-sig") as lines:
            for fragment in split(lines):
                if fragment.error:
                    raise ConfigError(f"{path}, line {fragment.line}: {fragment.error}")
                found.append(Prediction(fragment.text, f"{path}, line {fragment.line}"))
    except OSError as error:
        raise ConfigError(
            f"{where}: predictions: {path}: {(error.strerror or 'cannot be read').lower()}"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: predictions: {path} is not UTF-8 text") from None
    return tuple(found)
