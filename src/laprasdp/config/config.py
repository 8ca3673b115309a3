"""`lapras.toml`: everything public about a session, read strictly into one frozen object.

A key that is not known is an error, so a misspelt setting never falls back to its default in silence.
Reading a configuration and planning with it never open the table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from laprasdp import datasets
from laprasdp.config.attributes import read_domain
from laprasdp.config.dialect import KEYS_OF_TEXT, read_dialect
from laprasdp.config.lookups import read_derived, read_lookups
from laprasdp.config.periods import Windows, read_windows
from laprasdp.config.place import Place, read_analysts, read_ledger
from laprasdp.config.predictions import read_count
from laprasdp.config.section import Section, placed
from laprasdp.config.serving import Serving, read_serving
from laprasdp.config.stream import read_stream, with_forecast
from laprasdp.data.dialect import Dialect
from laprasdp.data.open import ADDRESSES, called, on_server
from laprasdp.errors import ConfigError
from laprasdp.periods import open_windows
from laprasdp.periods.declaration import Declaration
from laprasdp.periods.period import Part
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.policy import Policy
from laprasdp.policy.promise import check_promise
from laprasdp.policy.stream import Stream
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.sql.lookup import Lookup
from laprasdp.sql.reader import Reader
from laprasdp.stream.asking import Asking
from laprasdp.stream.opening import open_session
from laprasdp.stream.plan import Plan, make_plan
from laprasdp.stream.predictions import read_prediction, read_predictions
from laprasdp.stream.target import smallest_epsilon

FILE = "lapras.toml"


@dataclass(frozen=True)
class Config:
    """
    A session as `lapras.toml` declares it.

    Attributes
    ----------
    path : Path
        The file it was read from.
    source : Path or str
        The table's file; or the address of its server, which may hold a password: not for printing.
    name : str
        How statements call the table.
    dialect : Dialect, optional
        How a text file is written.
    table : str, optional
        The table inside a database.
    public : bool
        The table is declared public.
    moved_from : str, optional
        The name under which the ledger may know the table.
    ledger : Place, optional
        Where what is released is kept; in memory otherwise.
    caps : mapping of analyst to float
        The ε of what may be measured for each; where there is any, only they may ask.
    windows : Windows, optional
        Periods with a budget each.
    lookups : mapping of name to Lookup
        Public tables that statements may join.
    serving : Serving
        How the service runs.
    derived : mapping of name to str
        Further columns that they may name, as SQL of the attributes.
    prediction_count : int
        How many statements of a log or a forecast make up the prediction set.
    stream : Stream
        Its predictions carry their places in the files of the user.
    domain, budget, unit
        As in `open_session`.
    """

    path: Path
    source: Path | str = field(repr=False)
    name: str
    domain: Domain
    budget: Budget
    stream: Stream = field(default_factory=Stream)
    prediction_count: int = 100
    dialect: Dialect | None = None
    table: str | None = None
    public: bool = False
    moved_from: str | None = None
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    ledger: Place | None = None
    caps: Mapping[str, float] = field(default_factory=dict)
    windows: Windows | None = None
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    serving: Serving = field(default_factory=Serving)
    derived: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> Asking:
        """Open the table and the ledger; nothing is released yet."""
        place = self.ledger
        opens: Callable[..., Asking]
        if self.windows is None:
            ledger = None if place is None else place.open(self.domain)
            opens = partial(open_session, ledger=ledger, moved_from=self.moved_from)
        else:
            parts = self.windows.parts(self.domain).values()
            opens = partial(
                open_windows,
                attribute=self.windows.attribute,
                periods=[part.period for part in parts] if self.windows.budgets else self.windows.step,
                ledger=None if place is None else place.shelf(self.domain, f"{self.name}@"),
            )
        return opens(
            self.source,
            self.domain,
            budget=self.budget,
            stream=self.stream,
            unit=self.unit,
            table=self.table,
            name=self.name,
            dialect=self.dialect,
            public=self.public,
            caps=self.caps,
            lookups=self.lookups,
            derived=self.derived,
        )

    @property
    def _reader(self) -> Reader:
        unit = self.unit if self.windows is None else None
        return Reader(self.domain, self.name, lookups=self.lookups, derived=self.derived, unit=unit)

    def kept(self) -> Place:
        """
        The place of the ledger, or an error that says that nothing is kept.

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

    def plan(
        self, *, predictions: bool = True, kinds: bool | Mapping[str, Sequence[Query | Groups]] = True
    ) -> Plan:
        """
        The expected errors; with windows, of the last period.  The table is not opened.

        Parameters
        ----------
        predictions : bool
            False plans the same session without its prediction set.
        kinds : bool or mapping of str to sequence of Query or Groups
            As in `make_plan`.

        Raises
        ------
        BudgetError
            The budget is not enough for what would be planned, so the table would not open either.
        """
        policy, names = self.policy_before(predictions=predictions)
        if predictions:
            check_promise(policy)
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
        stream = self.stream if predictions else replace(self.stream, predictions=())
        if self.windows is not None:
            names = self.lookups, self.derived
            declaration = Declaration(self.budget, stream, self.unit, self.caps, *names)
            return declaration.before(part or self.windows.last(self.domain), self._reader)
        predicted = read_predictions(stream.declared, self._reader)
        setting = stream.setting(self.domain, self.budget, self.unit, predicted)
        return policy_named(stream.policy, setting), [one.text for one in predicted]

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
            In records; see `laprasdp.stream.target.smallest_epsilon`.
        predictions : bool
            As in `plan`.
        """
        return smallest_epsilon(
            lambda budget: make_plan(
                *self.with_budget(budget).policy_before(predictions=predictions), kinds=False
            ),
            self.budget.delta,
            target_std,
        )

    def read(self) -> Config:
        """The same with its predictions read, so that none is read again."""
        reader = self._reader
        read = tuple(read_prediction(one, reader) for one in self.stream.declared)
        return replace(self, stream=replace(self.stream, predictions=read))


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
    except ValueError:
        raise ConfigError("the name of the configuration has a NUL in it: leave it out") from None
    return _config(path, values, predictions)


def _config(path: Path, values: dict[str, Any], predictions: bool) -> Config:
    top = Section(str(path), values)
    top.only(
        "source", "domain", "privacy", "stream", "ledger", "analysts", "windows", "lookup", "derived",
        "server",
        what="section",
    )  # fmt: skip
    settings = _source(top.section("source"), path.parent) | _privacy(top.section("privacy"))
    settings["domain"] = read_domain(top.section("domain"))
    stream = top.section("stream")
    settings |= {"stream": read_stream(stream, path.parent), "prediction_count": read_count(stream)}
    settings["caps"] = read_analysts(top.section("analysts"), settings["budget"].delta)
    settings["lookups"] = read_lookups(top.section("lookup"), path.parent)
    settings["serving"] = read_serving(top.section("server"), path.parent)
    settings["derived"] = read_derived(top.section("derived"))
    if "ledger" in top:
        settings["ledger"] = read_ledger(top.section("ledger"), path.parent)
    if "windows" in top:
        section = top.section("windows")
        settings["windows"] = read_windows(section, settings["budget"])
        if moved := settings["moved_from"]:
            raise ConfigError(f"{section.where}: periods know no table, so leave moved_from {moved} out")
        if "dataset" in top.section("ledger"):
            raise ConfigError(f"{section.where}: each period is a dataset by its date: leave dataset out")
        placed(section.where, settings["windows"].last, settings["domain"])
    config = Config(path, **settings)
    if not predictions:
        return replace(config, stream=replace(config.stream, predictions=()))
    told = with_forecast(stream, config.stream, config.domain, config.name, path.parent)
    return replace(config, stream=told)


def _source(section: Section, folder: Path) -> dict[str, Any]:
    section.only("file", "database", "url", "table", "dataset", "name", "public", "moved_from", *KEYS_OF_TEXT)
    given = {key: section.take(key, str, None) for key in ("file", "database", "url", "dataset")}
    named = {key: value for key, value in given.items() if value is not None}
    if len(named) != 1:
        raise ConfigError(f"{section.where}: name the table by one of file, database, url or dataset")
    ((key, value),) = named.items()
    in_database = key in ("database", "url")
    table = section.take("table", str) if in_database else section.take("table", str, None)
    name, public = section.take("name", str, None), section.take("public", bool, key == "dataset")
    if table is not None and not in_database:
        raise ConfigError(f"{section.where}: table is for a database; a file is one table by itself")
    if key == "url" and not on_server(value):
        raise ConfigError(f"{section.where}: url begins with {ADDRESSES}; for a file give file")
    where: Path | str = value if key == "url" else folder / value
    if key == "dataset":
        where, table_name = placed(section.where, datasets.path, value), value
    else:
        table_name = called(table) if table else value.rpartition("/")[2].split(".")[0]
    name = name or table_name or "data"
    found = {"source": where, "table": table, "name": name, "public": public}
    found["moved_from"] = section.take("moved_from", str, None)
    return {**found, "dialect": read_dialect(section)}


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
